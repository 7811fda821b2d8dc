"""Reads a repository's small text files without leaving its tree: nothing it names is followed outside or executed."""

import configparser
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

# Far above any packaging file; a larger one is not for us.
_MAX_BYTES = 1 << 20


def read_text(root: Path, name: str) -> str | None:
    """Return a file of the tree as text, undecodable bytes replaced; null when it is none, too large or outside."""
    place = inside(root, name)
    try:
        if place is None or not place.is_file() or place.stat().st_size > _MAX_BYTES:
            return None
        return place.read_bytes().decode("utf-8-sig", "replace")
    except OSError:  # too long a name among others
        return None


def inside(root: Path, name: str) -> Path | None:
    """Return where a relative name leads when that is below `root`, links resolved; null otherwise."""
    if PurePosixPath(name).is_absolute() or "\0" in name:
        return None
    try:
        place = (root / name).resolve()
    except (OSError, RuntimeError):  # links in a circle
        return None
    return place if place.is_relative_to(root.resolve()) else None


def read_toml(root: Path, name: str) -> dict[str, Any]:
    """Return a TOML file as a table; empty when there is none or it is malformed."""
    text = read_text(root, name)
    try:
        return tomllib.loads(text) if text else {}
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def read_ini(root: Path, name: str) -> dict[str, dict[str, str]]:
    """Return an INI file as sections of strings, keys in lower case; empty when there is none or it is malformed."""
    return parse_ini(read_text(root, name) or "")


def parse_ini(text: str) -> dict[str, dict[str, str]]:
    """Return an INI text as sections of strings, keys in lower case; empty when it is malformed."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, default_section="\0")
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return {section: {key: value or "" for key, value in parser.items(section)} for section in parser.sections()}


def table(value: object, *keys: str) -> dict[str, Any]:
    """Return a nested table; empty where a key is missing or leads to something else."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return dict(value) if isinstance(value, Mapping) else {}


def strings(value: object) -> tuple[str, ...]:
    """Return the strings of a list; a lone string is a list of one, anything else is empty."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()


def python_files(root: Path) -> Iterator[str]:
    """Yield the paths of `*.py` files, hidden folders, environments and links left out, sorted within each folder."""
    stack = [(root, "")]
    while stack:
        folder, prefix = stack.pop()
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink() or entry.name.startswith("."):
                continue
            if entry.is_dir() and entry.name not in ("node_modules", "venv", "__pycache__"):
                stack.append((entry, f"{prefix}{entry.name}/"))
            elif entry.name.endswith(".py") and entry.is_file():
                yield prefix + entry.name
