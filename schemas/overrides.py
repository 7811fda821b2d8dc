"""Values that replace those of a configuration file, named by dotted keys: for scheduled runs."""

import copy
from collections.abc import Mapping
from typing import Any

from schemas.errors import ConfigError


def override(data: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a configuration file with other values, as `{"release.version": "2026.12.01"}`.

    A key names a value inside a table; whether there is such a one is told when the configuration is read. Raises
    ConfigError for a key that leads into something that is no table, such as `sources.git`.
    """
    changed = copy.deepcopy(dict(data))
    for key, value in overrides.items():
        *path, last = key.split(".")
        table = changed
        for name in path:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"override {key!r}: {name} is no table of single values; change the file instead")
        if not last or not all(path):
            raise ConfigError(f"override {key!r} must be dotted names, as release.version")
        table[last] = value
    return changed
