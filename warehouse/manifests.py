"""Reads a release's manifest as plain values; `publishing.manifest` gives them types."""

import json
from pathlib import Path
from typing import Any

from schemas.errors import ConfigError

MANIFEST_NAME = "manifest.json"


def read_values(path: Path) -> dict[str, Any]:
    """Return what a manifest says; ConfigError for one that is not there, cannot be read, or is no JSON object."""
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{path.parent} is no release: {path.name} cannot be read ({error.strerror or error})"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} is damaged ({error})") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} is damaged (it holds no object)")
    return values
