"""Configuration of what data points are compared with: old code, benchmarks, earlier releases; and of what stays."""

from dataclasses import dataclass
from enum import StrEnum

from schemas.errors import ConfigError

PYTHON = "python"


class Keep(StrEnum):
    """What stays of rows that are duplicates of one another or of a reference set's rows."""

    OLDEST = "oldest"
    NONE = "none"
    REFERENCE = "reference"


class OldCode(StrEnum):
    """What brand-new methods are compared with to find the class `copied_old`."""

    REPOSITORY = "repository"
    ALL = "all"
    OFF = "off"


class Role(StrEnum):
    """What a reference set is."""

    BENCHMARK = "benchmark"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """One reference set (`[[dedup.references]]`): exactly one of `path`, `release`."""

    path: str | None = None
    """Parquet or JSONL file (`.parquet`, `.jsonl`, `.jsonl.gz`), or a pattern of such; a relative one starts at the
    configuration's folder."""
    release: str | None = None
    """Folder of an earlier release, whose `raw_data` is compared; a relative one starts at the workspace, such as
    `releases/2026.10.31`."""
    name: str | None = None
    """Name of the set in evidence and tables; the file's or release's own name when left out."""
    role: Role = Role.BENCHMARK
    """`benchmark`, or `release` for rows of an earlier release of one's own; with `release` always the latter."""
    code: str | None = None
    """Column with the code; `code` when neither this nor `concat` is given."""
    concat: tuple[str, ...] = ()
    """Columns whose texts together, in this order, are the code, such as prompt and solution."""
    id: str | None = None
    """Column with the row's id; file name and row number when left out."""
    language_column: str | None = None
    """Column with the programming language; all rows count when left out."""
    language: str = PYTHON
    """Value of `language_column`, case apart, of the rows that count."""

    @property
    def title(self) -> str:
        """Return the set's name."""
        location = (self.path or self.release or "").replace("\\", "/").rstrip("/")
        return self.name or location.rsplit("/", 1)[-1]

    @property
    def kind(self) -> Role:
        """Return the set's role."""
        return Role.RELEASE if self.release is not None else self.role

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that are joined to the code."""
        return self.concat or (self.code or "code",)


def check_references(references: tuple[ReferenceConfig, ...]) -> None:
    """Raise ConfigError for a set that is not one, or that has the name of another."""
    seen: set[str] = set()
    for index, item in enumerate(references):
        where = f"dedup.references[{index}]"
        if bool(item.path) == bool(item.release):
            raise ConfigError(f"{where} must have either path, a file or pattern, or release, a release's folder")
        if item.code is not None and item.concat:
            raise ConfigError(f"{where}: code names one column, concat several; give one of them")
        if item.release is not None and (item.code or item.concat or item.id or item.language_column):
            raise ConfigError(f"{where}: the columns of a release are known; leave code, concat, id and language out")
        if item.title in seen:
            raise ConfigError(f"{where}: another set is called {item.title}; give one of them another name")
        seen.add(item.title)
