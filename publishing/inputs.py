"""What a release is made of."""

import platform
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from publishing.changes import Changes
from publishing.discovery import DiscoveryFacts
from publishing.duplicates import DuplicateFacts
from schemas.config import Config
from schemas.records import Exclusion, RepositoryRecord, StageReport


@dataclass(frozen=True, slots=True)
class ReleaseInputs:
    """Everything that goes into one release; times, paths and machine names are not among it."""

    config: Config
    """The resolved configuration; `config.release` names version, title and what may be overwritten."""
    code_version: str
    """Version of Postquem."""
    tokenizer_sha256: str
    """SHA-256 of the tokenizer file behind the Jaccard sets."""
    grammar_version: str
    """Name and version of the tree-sitter grammar behind the syntax columns."""
    repositories: tuple[RepositoryRecord, ...]
    """Mined repositories with their heads."""
    tables: dict[str, pa.Table]
    """Rows of each testbed by config name, in any order, with the schema of its row type."""
    exclusions: pa.Table
    """Every row left out by any stage, in any order, with the schema of `Exclusion`."""
    funnel: tuple[StageReport, ...]
    """Reports of all stages and partitions, in the order of the stages."""
    cutoffs: dict[str, str | None] = field(default_factory=dict)
    """Commit of each repository whose tree new methods were compared with, null for one without; empty when none
    were."""
    duplicates: DuplicateFacts = field(default_factory=DuplicateFacts)
    """Clusters of duplicates, what their removal means for each testbed, reference sets."""
    discovery: DiscoveryFacts | None = None
    """The search that found repositories; null without one."""
    unused: tuple[Exclusion, ...] = ()
    """Exclusions of repositories that were not mined; they stand in `exclusions`, too."""
    future_from: datetime | None = None
    """Earliest date, UTC, that was taken for one in the future; null without any."""
    again: bool = False
    """The release is built again from its manifest: what changed since the one before is not looked up but given."""
    changes: Changes | None = None
    """With `again`, what the manifest says of it."""
    python_version: str = field(default_factory=platform.python_version)
    """CPython that judged `parses`."""

    @property
    def version(self) -> str:
        """Return the release's version, which is its folder's name."""
        return self.config.release.version
