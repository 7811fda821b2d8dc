"""Packages that stand in the same tree: members of a workspace, and requirements that lead to a folder."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from sandbox.requirements import Needs, parse
from sandbox.tree_files import inside, read_toml, strings, table

# Folders down to this depth are looked through for members of a workspace that is named by patterns.
_MAX_MEMBERS = 200


def local_sources(root: Path, pyproject: Mapping[str, Any]) -> dict[str, str | None]:
    """Return where `[tool.uv.sources]` sends requirements by canonical name: a folder of the tree, null for a URL.

    A member of the workspace is found by the name in its own pyproject.toml. One that cannot be found, and an index of
    its own, leave a requirement as it is.
    """
    sources = table(pyproject, "tool", "uv", "sources")
    members: dict[str, str] | None = None
    found: dict[str, str | None] = {}
    for name, value in sources.items():
        source = table(value[0] if isinstance(value, list) and value else value)
        key = canonicalize_name(name)
        if source.get("workspace"):
            members = _members(root, pyproject) if members is None else members
            if key in members:
                found[key] = members[key]
        elif isinstance(source.get("path"), str):
            folder = inside(root, source["path"])
            found[key] = None if folder is None else folder.relative_to(root.resolve()).as_posix()
        elif source.get("git") or source.get("url"):
            found[key] = None
    return found


def _members(root: Path, pyproject: Mapping[str, Any]) -> dict[str, str]:
    """Return the folders of a workspace's members by canonical name."""
    found: dict[str, str] = {}
    for pattern in strings(table(pyproject, "tool", "uv", "workspace").get("members")):
        if ".." in pattern or pattern.startswith("/"):
            continue
        for folder in sorted(root.glob(pattern))[:_MAX_MEMBERS]:
            where = folder.relative_to(root).as_posix()
            name = table(read_toml(root, f"{where}/pyproject.toml"), "project").get("name")
            if isinstance(name, str):
                found[canonicalize_name(name)] = where
    return found


def redirect(needs: Needs, sources: Mapping[str, str | None]) -> Needs:
    """Return needs with the requirements that the sources send elsewhere among `local` or `urls`."""
    if not sources:
        return needs
    lines, local, urls = [], list(needs.local), list(needs.urls)
    for line in needs.lines:
        item = parse(line)
        key = canonicalize_name(item.name) if item is not None else ""
        folder = sources.get(key)
        if folder is not None:
            local.append(folder)
        elif key in sources:
            urls.append(line)
        else:
            lines.append(line)
    return replace(needs, lines=tuple(lines), local=tuple(local), urls=tuple(urls))


def redirect_all(places: Iterable[Needs], sources: Mapping[str, str | None]) -> tuple[Needs, ...]:
    """Redirect several needs."""
    return tuple(redirect(needs, sources) for needs in places)
