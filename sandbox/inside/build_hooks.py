"""Runs inside the sandbox: builds a project as an editable wheel by its PEP 517 and PEP 660 hooks.

Reads /w/in/request.json, works in the current folder, and writes `result.json`, the wheel and an archive of the files
that the build left in the tree to the folder that the request names. Standard library only, Python 3.9 or later.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tarfile
import traceback
from importlib import metadata
from typing import Any


def main() -> None:
    """Do what the request says; every failure of the backend becomes part of the result."""
    with open("/w/in/request.json", encoding="utf-8") as file:
        request = json.load(file)
    out = request["out"]
    os.makedirs(out, exist_ok=True)
    for name, text in request["extra_files"].items():
        if not os.path.lexists(name):
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
    if request["git"]:
        make_repository()
    before = survey(request)
    result: dict[str, Any] = {"stage": "metadata", "requires": [], "wheel": None, "error": None, "archive": 0}
    try:
        build(request, out, result)
        result["archive"] = archive(request, before, out)
    except BaseException as error:  # noqa: BLE001 - whatever a build backend raises, SystemExit too, is its result
        traceback.print_exc()
        result["error"] = f"{type(error).__name__}: {error}"
    with open(os.path.join(out, "result.json"), "w", encoding="utf-8") as file:
        json.dump(result, file)


def make_repository() -> None:
    """Make the tree a git repository with one tagged commit, for builds that ask git for more than a version."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["tag", "v1.0.0"]):
        subprocess.run([*git, *words], check=True)


def build(request: dict[str, Any], out: str, result: dict[str, Any]) -> None:
    """Ask for requirements, and build when they are all there."""
    sys.argv = ["setup.py"]
    sys.path[:] = [os.path.abspath(path) for path in request["backend_path"]] + sys.path[1:]
    module, _, attribute = request["backend"].partition(":")
    backend: Any = importlib.import_module(module)
    for part in attribute.split(".") if attribute else ():
        backend = getattr(backend, part)
    kind = "editable" if hasattr(backend, "build_editable") else "wheel"
    ask = getattr(backend, "get_requires_for_build_" + kind, None)
    requires = list(ask({}) or ()) if ask else []
    result["requires"] = [text for text in requires if not present(text)]
    if result["requires"]:
        return
    result["stage"] = "build"
    result["wheel"] = getattr(backend, "build_" + kind)(out, {}, None)


def present(text: str) -> bool:
    """Say whether a requirement's package is installed; its version is the resolver's business."""
    name = ""
    for char in text.strip():
        if not (char.isalnum() or char in "-_."):
            break
        name += char
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def survey(request: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return size and time of every file of the tree that a build may leave changed."""
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, files in os.walk("."):
        folders[:] = [name for name in folders if not skipped(name, folder, request)]
        for name in files:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            found[path] = (status.st_size, status.st_mtime_ns)
    return found


def skipped(name: str, folder: str, request: dict[str, Any]) -> bool:
    """Say whether a folder holds nothing that is needed after the build."""
    if folder == "." and name in request["skip_folders"]:
        return True
    return name in ("__pycache__", ".git", ".eggs") or name.endswith((".egg-info", ".dist-info"))


def archive(request: dict[str, Any], before: dict[str, tuple[int, int]], out: str) -> int:
    """Pack files that are new or changed; return how many."""
    changed = sorted(
        path
        for path, status in survey(request).items()
        if before.get(path) != status and os.path.isfile(path) and not os.path.islink(path)
    )
    if changed:
        with tarfile.open(os.path.join(out, "left.tar"), "w") as file:
            for path in changed:
                file.add(path, arcname=path[2:], recursive=False)
    return len(changed)


if __name__ == "__main__":
    main()
