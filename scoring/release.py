"""Reads what scoring needs from a release's folder: the tasks, how they were executed, where the repositories are."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from schemas.arrow import from_table
from schemas.config import read_section
from schemas.errors import ConfigError, PipelineError
from schemas.execution import RealCode, RealCodeConfig
from warehouse.manifests import MANIFEST_NAME, read_values
from warehouse.tables import read_table

NAME = "real_code"
# What belongs to the machine that made the release, or to making it.
_NOT_TAKEN = ("pythons", "optional", "environments_gib")


@dataclass(frozen=True, slots=True)
class Home:
    """Where a repository of a release comes from."""

    host: str
    """Host of the clone, `local` for paths and samples."""
    web_url: str | None
    """Its web address, null without one."""


@dataclass(frozen=True, slots=True)
class TaskRelease:
    """The part of a release that scoring needs."""

    tasks: tuple[RealCode, ...]
    """Its tasks, in order."""
    config: RealCodeConfig
    """Limits and sandbox with which they were proven."""
    homes: Mapping[str, Home]
    """Repositories by owner/name."""


def read_release(folder: Path) -> TaskRelease:
    """Read the tasks of a release. ConfigError when the folder is none, or has no tasks of real_code."""
    manifest = read_values(folder / MANIFEST_NAME)
    try:
        homes = {row["repo"]: Home(row["host"], row["web_url"]) for row in manifest["repositories"]}
        values = manifest["config"].get(NAME, {})
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{folder / MANIFEST_NAME} is damaged or of another version ({error})") from error
    shards = sorted((folder / NAME).glob("*.parquet"))
    if not shards:
        raise ConfigError(f"{folder} has no tasks of {NAME}; add it to testbeds.names and build the release again")
    tasks: list[RealCode] = []
    for shard in shards:
        try:
            tasks += from_table(read_table(shard), RealCode)
        except (KeyError, TypeError, ValueError) as error:
            raise PipelineError(
                f"{shard} is of another version of Postquem ({error}); score it with that one"
            ) from error
    return TaskRelease(tuple(tasks), _config(values), homes)


def _config(values: Mapping[str, Any]) -> RealCodeConfig:
    """Return a manifest's section as configuration; what this version does not know is left out."""
    known = {item.name for item in fields(RealCodeConfig)} - set(_NOT_TAKEN)
    return read_section(RealCodeConfig, {name: value for name, value in values.items() if name in known}, NAME)
