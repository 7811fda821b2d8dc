"""Builds a project as an editable wheel by its own build backend: inside a sandbox, without network.

The backend can write to nothing of the host: the wheel and what it left in the tree are read out of the sandbox.
"""

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.utils import canonicalize_name

from sandbox.environment import PYTHON, SourceCommit
from sandbox.project import Project
from sandbox.protocol import ENVIRONMENT, HANDED_IN, Bind, Limits, SandboxSpec, Session
from sandbox.uv import REASONS, Workbench, excerpt
from schemas.errors import DataError
from schemas.execution import ExecResult, KilledBy

_SCRIPT = Path(__file__).with_name("inside") / "build_hooks.py"
_OUT = "/tmp/postquem-build"  # noqa: S108 - a path inside
_MAX_REPORT = 1 << 20
_DETAIL = 600
# A tree without .git has no version to be read; any one will do, and this one is below none that others ask for.
PRETENDED_VERSION = "1.0.0"
# How the tools that ask git are told: setuptools-scm, hatch-vcs and vcs-versioning; pbr; PDM;
# poetry-dynamic-versioning; uv-dynamic-versioning. versioningit reads PKG-INFO, as it does in source distributions.
_VERSION_VARIABLES = (
    "SETUPTOOLS_SCM_PRETEND_VERSION", "VCS_VERSIONING_PRETEND_VERSION", "PBR_VERSION", "PDM_BUILD_SCM_VERSION",
    "POETRY_DYNAMIC_VERSIONING_BYPASS", "UV_DYNAMIC_VERSIONING_BYPASS",
)  # fmt: skip
# Folders of builds that nothing needs afterwards; some backends' editable installs import from their `build`.
_LEFT_FOLDERS = (".pdm-build", "dist")
_SETUPTOOLS_FOLDERS = (*_LEFT_FOLDERS, "build")


@dataclass(frozen=True, slots=True)
class BuiltProject:
    """A project's editable wheel."""

    wheel_name: str
    """File name of the wheel."""
    wheel: bytes
    """Its contents."""
    name: str
    """Canonical name of the project."""
    version: str
    """Its version."""
    dependencies: tuple[str, ...]
    """What it needs, with the requirements of its extras under a marker `extra == "..."`."""
    extras: tuple[str, ...]
    """Names of its extras."""
    left: Mapping[str, bytes]
    """Files of the tree that the build made or changed."""


@dataclass(frozen=True, slots=True)
class MissingRequirements:
    """The backend needs more packages before it can build."""

    requires: tuple[str, ...]
    """Its requirements."""


def build_project(
    bench: Workbench, source: Path, project: Project, at: SourceCommit
) -> BuiltProject | MissingRequirements:
    """Build the project of a tree; DataError `metadata_hook_failed`, `project_build_failed` or a limit's reason.

    A build that fails is tried once more in a tree that is a git repository: some ask git for more than a version.
    """
    try:
        return _build(bench, source, project, at, git=False)
    except DataError as error:
        if error.reason not in ("metadata_hook_failed", "project_build_failed"):
            raise
        try:
            return _build(bench, source, project, at, git=True)
        except DataError:
            raise error from None


def _build(
    bench: Workbench, source: Path, project: Project, at: SourceCommit, *, git: bool
) -> BuiltProject | MissingRequirements:
    """Run the hooks once."""
    request = {
        "git": git,
        "backend": project.backend,
        "backend_path": project.backend_path,
        "out": _OUT,
        "skip_folders": _SETUPTOOLS_FOLDERS if project.backend.startswith("setuptools.") else _LEFT_FOLDERS,
        "extra_files": _extra_files(project),
    }
    files = {f"{HANDED_IN}/request.json": json.dumps(request).encode(), f"{HANDED_IN}/build.py": _SCRIPT.read_bytes()}
    binds = (*bench.interpreter.binds, Bind(bench.folder, ENVIRONMENT))
    limits = _limits(bench)
    with bench.backend.open(SandboxSpec(source, binds, build_variables(at), limits)) as session:
        result = session.exec((PYTHON, f"{HANDED_IN}/build.py"), files=files, limits=limits)
        report = _report(session, result)
        if report["error"] is not None:
            reason = "metadata_hook_failed" if report["stage"] == "metadata" else "project_build_failed"
            raise DataError(reason, f"{report['error']}\n{excerpt(result)}"[:_DETAIL].strip())
        if report["requires"]:
            return MissingRequirements(tuple(str(item) for item in report["requires"]))
        wheel = session.read(f"{_OUT}/{PurePosixPath(report['wheel']).name}", limits.disk_bytes)
        left = session.read(f"{_OUT}/left.tar", limits.disk_bytes) if report["archive"] else None
    return _read_wheel(PurePosixPath(report["wheel"]).name, wheel or b"", _unpack(left) if left else {})


def build_variables(at: SourceCommit) -> dict[str, str]:
    """Return the variables of a build."""
    return {
        "PATH": f"{ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",  # noqa: S108 - the sandbox's own
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOURCE_DATE_EPOCH": str(int(at.date.timestamp())),
        "VIRTUAL_ENV": ENVIRONMENT,
        **dict.fromkeys(_VERSION_VARIABLES, PRETENDED_VERSION),
    }


def _extra_files(project: Project) -> dict[str, str]:
    """Return files that stand in for git where a tool has no variable for it."""
    if not any("versioningit" in line for line in project.build_requires.lines):
        return {}
    name = project.name or "project"
    return {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {PRETENDED_VERSION}\n"}


def _limits(bench: Workbench) -> Limits:
    config = bench.config
    return Limits(bench.deadline.left(), max(config.memory_mib, 2048) << 20, config.pids, 2.0, config.disk_mib << 20)


def _report(session: Session, result: ExecResult) -> dict[str, Any]:
    """Return what the script reports; DataError when a limit or the backend itself ended it."""
    if result.killed_by is not KilledBy.NONE:
        raise DataError(REASONS[result.killed_by], excerpt(result))
    try:
        report = json.loads(session.read(f"{_OUT}/result.json", _MAX_REPORT) or b"")
        wheel = report["wheel"]
        if report["error"] is None and not report["requires"] and not isinstance(wheel, str):
            raise ValueError("no wheel")
    except (ValueError, KeyError, TypeError):
        raise DataError("project_build_failed", excerpt(result) or f"exit code {result.returncode}") from None
    return dict(report)


def _unpack(archive: bytes) -> dict[str, bytes]:
    """Return the regular files of an archive; names that lead outside are left out."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as file:
            for member in file:
                parts = PurePosixPath(member.name).parts
                inner = file.extractfile(member) if member.isreg() else None
                if inner is not None and parts and parts[0] != "/" and ".." not in parts:
                    found["/".join(parts)] = inner.read()
    except tarfile.TarError as error:
        raise DataError("project_build_failed", f"what the build left cannot be read: {error}") from error
    return found


def _read_wheel(name: str, data: bytes, left: Mapping[str, bytes]) -> BuiltProject:
    """Read the metadata of a wheel (https://packaging.python.org/specifications/binary-distribution-format/)."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            inner = next(item for item in archive.namelist() if item.endswith(".dist-info/METADATA"))
            metadata = BytesParser().parsebytes(archive.read(inner))
        return BuiltProject(
            name,
            data,
            canonicalize_name(str(metadata["Name"])),
            str(metadata["Version"]),
            tuple(str(item).strip() for item in metadata.get_all("Requires-Dist", ())),
            tuple(canonicalize_name(str(item).strip()) for item in metadata.get_all("Provides-Extra", ())),
            left,
        )
    except (zipfile.BadZipFile, StopIteration, KeyError, OSError) as error:
        raise DataError("project_build_failed", f"the backend made no wheel that can be read: {error!r}") from error
