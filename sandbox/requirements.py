"""Requirements as text: PEP 508 lines, requirements files, and the dialects of Poetry and Pipenv."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from sandbox.tree_files import read_text, table

_MAX_DEPTH = 8
_LOCAL = re.compile(r"\.{0,2}/|\.$|\.\[|\.\.$|file:")
_URL = re.compile(r"(?:git|hg|svn|bzr)\+|https?://|ssh://|git@")


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements found in one place."""

    found: str
    """Where: `dependency-groups: test`, `requirements-dev.txt`."""
    lines: tuple[str, ...] = ()
    """PEP 508 requirements that an index can serve, in order of the file, each once."""
    constraints: tuple[str, ...] = ()
    """PEP 508 requirements that only bound versions (`-c`)."""
    extras: tuple[str, ...] = ()
    """Extras of the project itself that are asked for."""
    urls: tuple[str, ...] = ()
    """Requirements by a direct URL, which no index serves."""
    local: tuple[str, ...] = ()
    """Folders of the tree that are asked for as packages, relative, `.` left out."""
    unread: tuple[str, ...] = ()
    """Lines that are no requirement."""


def sort_lines(found: str, texts: Iterable[str], own_name: str | None) -> Needs:
    """Sort requirement texts; those of the project itself become its extras."""
    lines: dict[str, None] = {}
    extras: dict[str, None] = {}
    urls: dict[str, None] = {}
    local: dict[str, None] = {}
    unread: dict[str, None] = {}
    for text in texts:
        match parse(text):
            case None:
                unread[text] = None
            case Requirement() as item if own_name and canonicalize_name(item.name) == own_name:
                extras.update(dict.fromkeys(sorted(item.extras)))
            case Requirement(url=str(url)) as item:
                folder = _folder(url)
                (local if folder else urls)[folder or f"{item.name} @ {url}"] = None
            case Requirement() as item:
                lines[str(item)] = None
    return Needs(found, tuple(lines), (), tuple(extras), tuple(urls), tuple(local), tuple(unread))


def parse(text: str) -> Requirement | None:
    """Return a PEP 508 requirement, null for anything else."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _folder(url: str) -> str | None:
    """Return the folder of a relative `file:` URL inside the tree; null for others."""
    path = _normal(PurePosixPath(url.removeprefix("file://").removeprefix("file:")))
    return path if url.startswith("file:") and not path.startswith(("/", "..")) else None


def merge(found: str, parts: Iterable[Needs]) -> Needs:
    """Return several needs as one."""
    parts = tuple(parts)

    def each(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item for part in parts for item in getattr(part, name)))

    return Needs(found, each("lines"), each("constraints"), each("extras"), each("urls"), each("local"), each("unread"))


def read_requirements_file(root: Path, name: str, own_name: str | None, depth: int = 0) -> Needs:
    """Read a requirements file of the tree with the files it includes.

    Hashes and other options of a line are left out: the lock gets hashes of its own. `-e .` and the like ask for the
    project and its extras; other folders are local packages.
    """
    parts = []
    folder = PurePosixPath(name).parent
    for line in _logical_lines(read_text(root, name) or ""):
        option, value = _option(line)
        if option in ("-r", "--requirement", "-c", "--constraint"):
            if depth < _MAX_DEPTH:
                inner = read_requirements_file(root, _join(folder, value), own_name, depth + 1)
                parts.append(inner if option in ("-r", "--requirement") else _as_constraints(inner))
        elif option in ("-e", "--editable") or (not option and (_LOCAL.match(value) or _URL.match(value))):
            parts.append(_place(value, folder, name))
        elif not option:
            parts.append(sort_lines(name, [value], own_name))
    return merge(name, parts)


def _logical_lines(text: str) -> list[str]:
    """Return the lines of a requirements file: continued ones joined, comments and empty ones left out."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(?:^|\s)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def _option(line: str) -> tuple[str, str]:
    """Split a line into its option (empty for a requirement) and value; per-requirement options are cut off."""
    if line.startswith("-"):
        match = re.match(r"(-[a-zA-Z]|--[a-z-]+)(?:\s*=\s*|\s+|(?<=-[a-zA-Z]))?(.*)$", line)
        return (match[1], match[2].strip().strip("\"'")) if match else (line, "")
    return "", re.split(r"\s+--?[a-z]", line, maxsplit=1)[0].strip()


def _join(folder: PurePosixPath, name: str) -> str:
    return str(folder / name)


def _as_constraints(needs: Needs) -> Needs:
    """Return requirements as bounds, which have no extras."""
    bounds = [item for line in needs.lines if (item := parse(line)) is not None]
    for item in bounds:
        item.extras = set()
    return Needs(needs.found, constraints=(*needs.constraints, *map(str, bounds)), unread=needs.unread)


def _place(value: str, folder: PurePosixPath, found: str) -> Needs:
    """Sort a requirement that names a place: the project itself, another folder of the tree, or a URL."""
    value = value.split(";")[0].strip()
    if _URL.match(value) or not (_LOCAL.match(value) or re.fullmatch(r"[\w./-]+(?:\[.*\])?", value)):
        return Needs(found, urls=(value,))
    match = re.fullmatch(r"(?:file:(?://)?)?([^\[\]#]*)(?:\[([^\]]*)\])?.*", value)
    path, extras = (match[1], match[2] or "") if match else (value, "")
    where = _normal(PurePosixPath(path))  # pip starts at the folder it runs in, which is the root
    if where.startswith(".."):
        where = _normal(folder / path)
    if where == ".":
        return Needs(found, extras=tuple(part.strip() for part in extras.split(",") if part.strip()))
    if where.startswith(("..", "/")):
        return Needs(found, urls=(value,))
    return Needs(found, local=(where,))


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) or "."


def words(text: str) -> list[str]:
    """Split as a shell would; by blanks where quotes are unbalanced."""
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


# -- Poetry and Pipenv


def poetry_requirements(dependencies: Mapping[str, Any]) -> list[str]:
    """Return Poetry's or Pipenv's table of dependencies as PEP 508 texts; `python` and optional ones left out."""
    texts = []
    for name, value in dependencies.items():
        if name.lower() == "python":
            continue
        for item in value if isinstance(value, list) else [value]:
            text = _poetry_item(name, item)
            if text:
                texts.append(text)
    return texts


def _poetry_item(name: str, value: object) -> str | None:
    """Return one dependency as PEP 508 text."""
    if isinstance(value, str):
        return name + poetry_specifier(value)
    options = table(value)
    if not options or options.get("optional"):
        return None
    extras = ",".join(str(item) for item in options.get("extras") or ())
    name = f"{name}[{extras}]" if extras else name
    place = options.get("path") or options.get("file")
    if place:
        return f"{name} @ file:{place}"
    url = options.get("url") or (f"git+{options['git']}" if options.get("git") else None)
    if url:
        return f"{name} @ {url}"
    markers = [str(options["markers"])] if options.get("markers") else []
    markers += _python_markers(str(options.get("python") or ""))
    text = name + poetry_specifier(str(options.get("version") or "*"))
    return f"{text}; {' and '.join(f'({marker})' for marker in markers)}" if markers else text


def _python_markers(constraint: str) -> list[str]:
    """Return a constraint on the interpreter as markers."""
    text = poetry_specifier(constraint or "*")
    return [
        f'python_version {item.operator} "{item.version}"'
        for item in sorted(SpecifierSet(text), key=str)
        if "*" not in item.version
    ]


def poetry_specifier(constraint: str) -> str:
    """Return a Poetry constraint (`^1.2`, `~1.2`, `1.2.*`, `>=1,<2`) as a PEP 440 specifier.

    https://python-poetry.org/docs/dependency-specification/. A choice (`||`), which PEP 440 cannot express, and what is
    no constraint at all admit every version.
    """
    if "||" in constraint or "|" in constraint:
        return ""
    try:
        parts = [_clause(part) for part in re.split(r"\s*,\s*|\s+(?=[\^~<>=!])", constraint.strip()) if part]
        return str(SpecifierSet(",".join(part for part in parts if part)))
    except (InvalidSpecifier, InvalidVersion):
        return ""


def _clause(part: str) -> str:
    """Return one clause of a Poetry constraint in PEP 440's words."""
    part = part.replace(" ", "")
    if part in ("*", ""):
        return ""
    if part[0] == "^":
        return _range(part[1:], caret=True)
    if part[0] == "~" and part[1:2] != "=":
        return _range(part[1:], caret=False)
    if part[0].isdigit():
        return f"=={part}"
    return part


def _range(version: str, *, caret: bool) -> str:
    """Return `>=version,<next`: caret keeps the first non-zero number, tilde the second one."""
    release = Version(version).release
    if caret:
        kept = next((index for index, number in enumerate(release) if number), len(release) - 1)
    else:
        kept = min(1, len(release) - 1)
    upper = [*release[:kept], release[kept] + 1]
    return f">={version},<{'.'.join(str(number) for number in upper)}"
