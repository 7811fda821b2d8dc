"""Who does not want to be in a release: the ledger of opt-outs, and the section that names its files."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path

from schemas.errors import ConfigError

_KEY = "optout"
_REPOSITORY = re.compile(r"[\w.*?~+-]+(?:/[\w.*?~+-]+)+")


@dataclass(frozen=True, slots=True)
class OptOutConfig:
    """Ledgers of opt-outs (`[optout]`)."""

    files: tuple[str, ...] = ()
    """TOML files with entries (docs/github.md); a relative path starts at the configuration's folder."""


@dataclass(frozen=True, slots=True)
class OptOut:
    """One entry of a ledger: rows for which all of its patterns hold are left out."""

    date: date
    """Day of the wish."""
    reason: str
    """Why, or who asked; never published."""
    repository: str | None = None
    """owner/name, capitals apart; `*` and `?` stand for any characters, so `owner/*` is all of an owner's."""
    repo_id: int | None = None
    """The host's numeric id of the repository, which outlives renames."""
    path: str | None = None
    """Pattern of the file's path in the repository; `*` stands for any characters, slashes too."""
    author: str | None = None
    """Pattern of the author's or a co-author's name, address, or `name <address>`, capitals apart."""


def read_opt_outs(paths: Sequence[Path]) -> list[OptOut]:
    """Return the entries of all files in order; raise ConfigError for a file or entry that cannot be used."""
    return [entry for path in paths for entry in _read(path)]


def ledger_paths(config: OptOutConfig, base: Path) -> list[Path]:
    """Return the ledgers' paths; relative ones start at `base`, the configuration's folder."""
    return [base / Path(name).expanduser() for name in config.files]


def _read(path: Path) -> list[OptOut]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no opt-out ledger {path}; correct optout.files") from None
    except OSError as error:
        raise ConfigError(f"cannot read the opt-out ledger {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the opt-out ledger {path} is no valid TOML: {error}") from None
    entries = data.pop(_KEY, [])
    if data or not isinstance(entries, list):
        raise ConfigError(f"the opt-out ledger {path} must hold [[{_KEY}]] entries only")
    return [_entry(item, f"{path}, entry {number}") for number, item in enumerate(entries, 1)]


def _entry(item: object, where: str) -> OptOut:
    """Check one entry."""
    known = [field.name for field in fields(OptOut)]
    if not isinstance(item, dict) or set(item) - set(known):
        raise ConfigError(f"{where}: known keys are {', '.join(known)}")
    if type(item.get("date")) is not date:
        raise ConfigError(f"{where} needs a date, such as date = 2026-01-31")
    if "repo_id" in item and (type(item["repo_id"]) is not int or item["repo_id"] < 1):
        raise ConfigError(f"{where}: repo_id must be the host's positive number")
    for name in ("reason", "repository", "path", "author"):
        if name in item and (not isinstance(item[name], str) or not item[name].strip()):
            raise ConfigError(f"{where}: {name} must be text")
    if "reason" not in item:
        raise ConfigError(f"{where} needs a reason")
    if not {"repository", "repo_id", "path", "author"} & set(item):
        raise ConfigError(f"{where} needs a repository, repo_id, path or author")
    if "repository" in item and not _REPOSITORY.fullmatch(item["repository"]):
        raise ConfigError(f"{where}: repository must be owner/name, not {item['repository']!r}")
    return OptOut(**item)


def entry_text(entry: OptOut) -> str:
    """Return an entry as TOML; `read_opt_outs` reads it back."""
    values = [(field.name, getattr(entry, field.name)) for field in fields(OptOut)]
    lines = [f"{name} = {_toml(value)}" for name, value in values if value is not None]
    return "\n".join([f"[[{_KEY}]]", *lines]) + "\n"


def _toml(value: object) -> str:
    if not isinstance(value, str):
        return str(value)
    escaped = "".join(
        f"\\u{ord(char):04x}" if ord(char) < 32 or ord(char) == 127 else "\\" + char if char in '"\\' else char
        for char in value
    )
    return f'"{escaped}"'
