"""Generate docs/configuration.md from the configuration's dataclasses, or check that it is up to date.

python -m tools.configuration            # write docs/configuration.md
python -m tools.configuration --check    # exit 1 when the file is stale
"""

import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from schemas.config import Config
from tools.data_dictionary import field_docs
from tools.generated import Document

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "configuration.md"

HEADER = """# Configuration

Made by `python -m tools.configuration` from `schemas/`; do not edit. A test and `make check` compare it with the code.

A configuration is a TOML file. `[window]` with `since` and either `[[sources]]` or `[search]` are needed; all else has
a default. An unknown key is an error that names the known ones. Times without a zone are UTC. The resolved
configuration stands in the manifest of every release.
"""


def sections(section: type, name: str = "", many: bool = False) -> Iterator[tuple[str, type]]:
    """Yield the heading of every table of the file and the dataclass that reads it, outer ones first."""
    if name:
        yield (f"[[{name}]]" if many else f"[{name}]"), section
    for item in fields(section):
        kind, repeated = _inner(get_type_hints(section)[item.name])
        if is_dataclass(kind) and isinstance(kind, type):
            yield from sections(kind, f"{name}.{item.name}" if name else item.name, repeated)


def render() -> str:
    """Return the whole page; raise ValueError for a field without a docstring line."""
    docs: dict[str, dict[str, str]] = {}
    for path in sorted((ROOT / "schemas").glob("*.py")):
        docs |= field_docs(path)
    return "\n".join([HEADER, *(_section(title, section, docs) for title, section in sections(Config))])


def _section(title: str, section: type, docs: dict[str, dict[str, str]]) -> str:
    summary = " ".join((section.__doc__ or "").split())
    lines = [f"## `{title}`", "", summary, "", "| key | type | default | meaning |", "|---|---|---|---|"]
    hints = get_type_hints(section)
    for item in fields(section):
        kind, _ = _inner(hints[item.name])
        if is_dataclass(kind):
            continue
        meaning = docs[section.__name__].get(item.name, "")
        if not meaning:
            raise ValueError(f"{section.__name__}.{item.name} has no docstring line under it")
        cells = [f"`{item.name}`", _type_name(hints[item.name]), _default(item), meaning]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _inner(annotation: Any) -> tuple[Any, bool]:  # noqa: ANN401 - any annotation
    """Return the type behind `| None` or inside a tuple, and whether it was inside one."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _inner(next(arg for arg in args if arg is not type(None)))
    if origin is tuple:
        return args[0], True
    return annotation, False


def _type_name(annotation: Any) -> str:  # noqa: ANN401 - any annotation
    kind, repeated = _inner(annotation)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        name = "one of " + ", ".join(f"`{choice}`" for choice in kind)
    else:
        names = {str: "text", int: "whole number", float: "number", bool: "true or false", datetime: "date or time"}
        name = names[kind]
    return f"list of {name}" if repeated else name


def _default(item: "Field[Any]") -> str:
    """Return a field's default as TOML would have it."""
    value = item.default if item.default is not MISSING else None
    if item.default_factory is not MISSING:
        value = item.default_factory()
    elif item.default is MISSING:
        return "needed"
    return "none" if value is None else f"`{_toml(value)}`"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value >= 10_000:
        return f"{value:_}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with --check compare it; return the exit code."""
    return Document(OUTPUT, "docs/configuration.md", "tools.configuration").write_or_check(render(), arguments)


if __name__ == "__main__":
    sys.exit(main())
