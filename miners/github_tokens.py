"""Tokens for GitHub: from the environment, from the `gh` command's configuration, or none."""

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

VARIABLE = "GITHUB_TOKEN"


def find_tokens(host: str, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the tokens for a host such as `github.com`, none when there are none.

    `GITHUB_TOKEN` holds one or several, separated by commas, and comes first; else the `gh` command's `hosts.yml`
    counts (newer versions of `gh` may keep the token in the system's keyring instead, where it is not looked for).
    """
    environment = os.environ if environment is None else environment
    stated = tuple(dict.fromkeys(token.strip() for token in environment.get(VARIABLE, "").split(",") if token.strip()))
    return stated or _from_gh(host, environment)


def _from_gh(host: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the token that `gh auth login` stored for a host; none when the file cannot be read as such."""
    path = _gh_folder(environment) / "hosts.yml"
    try:
        hosts = yaml.safe_load(path.read_text(encoding="utf-8"))
        token = hosts[host]["oauth_token"]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return ()
    return (token,) if isinstance(token, str) and token else ()


def _gh_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of `gh`'s configuration, by the rules of `gh help environment`."""
    if environment.get("GH_CONFIG_DIR"):
        return Path(environment["GH_CONFIG_DIR"])
    if environment.get("XDG_CONFIG_HOME"):
        return Path(environment["XDG_CONFIG_HOME"]) / "gh"
    return Path(environment.get("HOME", "/nonexistent")) / ".config" / "gh"
