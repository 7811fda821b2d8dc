"""The manifest: what a release holds and what it was made from, the same bytes on every machine.

No absolute path, credential, time of the run or name of a machine gets in.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa

from publishing.changes import Changes
from publishing.discovery import DiscoveryFacts
from publishing.duplicates import DuplicateFacts
from publishing.inputs import ReleaseInputs
from schemas.arrow import SCHEMA_VERSION, reader_of
from schemas.config import Config, SourceConfig, digest_of, read_section
from schemas.errors import PipelineError
from schemas.records import Exclusion, RepositoryRecord
from warehouse.manifests import MANIFEST_NAME, read_values
from warehouse.reports import FunnelRow, combine_reports
from warehouse.tables import FileEntry

# Fields that manifests of earlier versions lack, with what they would say.
_LATER: dict[str, Any] = {"unused": [], "future_from": None, "changes": None}
__all__ = ["MANIFEST_NAME", "Manifest", "make_manifest", "read_manifest"]
_WINDOWS_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of `manifest.json`."""

    name: str
    """Title of the data set."""
    version: str
    """Version of the release."""
    schema_version: str
    """Version of the column schemas."""
    code_version: str
    """Version of Postquem."""
    python_version: str
    """CPython that judged `parses`."""
    parquet_writer: str
    """Library that wrote the Parquet files; another version may write other bytes for the same rows."""
    grammar_version: str
    """tree-sitter grammar behind the syntax columns."""
    tokenizer_sha256: str
    """SHA-256 of the tokenizer file."""
    config_digest: str
    """Digest of `config` below."""
    seeds: dict[str, int]
    """Seeds by their name in the configuration."""
    config: dict[str, Any]
    """Resolved configuration without `release.overwrite`; absolute local paths are reduced to a name."""
    discovery: DiscoveryFacts | None
    """The search that found repositories; null without one."""
    repositories: tuple[dict[str, str | int | tuple[str, ...] | None], ...]
    """Repositories with host, branch, head and other names, sorted by name."""
    cutoffs: dict[str, str | None]
    """Commit of each repository whose tree at the cutoff new methods were compared with, null for one without."""
    duplicates: DuplicateFacts
    """Clusters of duplicates, what their removal means for each testbed, reference sets with their hashes."""
    opted_out: int | None
    """Rows that were left out because somebody asked for it; null when no ledger of opt-outs is configured."""
    rows: dict[str, int]
    """Rows of every config."""
    files: tuple[FileEntry, ...]
    """Every file but the manifest, sorted by path."""
    funnel: tuple[FunnelRow, ...]
    """What became of every row, by stage."""
    unused: tuple[Exclusion, ...]
    """Repositories that were found or named and not mined, as they stand in the exclusions."""
    future_from: str | None
    """Earliest date, UTC, for which a commit was left out because it lay in the future; null when none was. With it
    the release can be built again at any later time."""
    changes: Changes | None
    """What changed since the release before; null when there was none."""

    def to_json(self) -> str:
        """Return the file's text."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    def read_config(self) -> Config:
        """Return the configuration; ConfigError for one that this version of Postquem does not know."""
        return read_section(Config, _without_nulls(self.config), where="config")


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a file, as this version writes it.

    ConfigError as `warehouse.manifests.read_values`, PipelineError when it lacks what this version writes.
    """
    values = read_values(path)
    try:
        manifest: Manifest = reader_of(Manifest)({**_LATER, **values})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PipelineError(f"{path} is no manifest of this version of Postquem ({error!r})") from None
    return manifest


def make_manifest(
    inputs: ReleaseInputs, rows: dict[str, int], files: Sequence[FileEntry], changes: Changes | None = None
) -> Manifest:
    """Return the manifest of a release with these row counts and files, and what changed since the one before."""
    config = published_config(inputs.config)
    repositories = sorted(inputs.repositories, key=lambda record: (record.repo, record.host, record.head))
    return Manifest(
        name=inputs.config.release.name,
        version=inputs.version,
        schema_version=SCHEMA_VERSION,
        code_version=inputs.code_version,
        python_version=inputs.python_version,
        parquet_writer=f"pyarrow {pa.__version__}",
        grammar_version=inputs.grammar_version,
        tokenizer_sha256=inputs.tokenizer_sha256,
        config_digest=digest_of(config),
        seeds={"testbeds.seed": inputs.config.testbeds.seed},
        config=config,
        discovery=inputs.discovery,
        repositories=tuple(_public_record(record) for record in repositories),
        cutoffs=dict(sorted(inputs.cutoffs.items())),
        duplicates=inputs.duplicates,
        opted_out=_opted_out(inputs),
        rows=rows,
        files=tuple(sorted(files, key=lambda entry: entry.path)),
        funnel=tuple(combine_reports(inputs.funnel)),
        unused=inputs.unused,
        future_from=None if inputs.future_from is None else inputs.future_from.isoformat(),
        changes=changes,
    )


def _opted_out(inputs: ReleaseInputs) -> int | None:
    if not inputs.config.optout.files:
        return None
    return sum(report.excluded_by_reason.get("opted_out", 0) for report in inputs.funnel if report.stage == "opt_out")


def published_config(config: Config) -> dict[str, Any]:
    """Return the configuration as JSON values, without what belongs to one machine or one run."""
    plain: dict[str, Any] = _json_value(asdict(config))
    del plain["release"]["overwrite"]  # tells how to write, not what
    for source, values in zip(config.sources, plain["sources"], strict=True):
        values["git"] = [public_location(location, source.repo) for location in source.git]
        values["fast_import"] = [public_location(location, None) for location in source.fast_import]
        values["web_url"] = None if source.web_url is None else _without_secrets(source.web_url)
    for reference, values in zip(config.dedup.references, plain["dedup"]["references"], strict=True):
        for key in ("path", "release"):
            values[key] = None if values[key] is None else public_location(values[key], reference.title)
    plain["optout"]["files"] = [public_location(name, None) for name in config.optout.files]
    return plain


def _public_record(record: RepositoryRecord) -> dict[str, str | int | tuple[str, ...] | None]:
    """Return a repository as JSON values, its web address without secrets."""
    web_url = None if record.web_url is None else _without_secrets(record.web_url)
    return asdict(record) | {"web_url": web_url}


def public_location(location: str, repo: str | None) -> str:
    """Return a source's location fit for publishing.

    URLs lose user names, passwords, queries and fragments; absolute local paths and `file://` URLs become `repo` or
    their last component; relative paths stay.
    """
    if "://" in location and not location.startswith("file://"):
        return _without_secrets(location)
    path = location.removeprefix("file://")
    if path == location and not is_absolute(path):
        return location
    parts = [part for part in PurePosixPath(path.replace("\\", "/")).parts if part not in ("/", ".git")]
    return repo or (parts[-1] if parts else "").removesuffix(".git") or "local"


def is_absolute(path: str) -> bool:
    """Tell whether a path names a place on one machine."""
    return path.startswith(("/", "~", "\\")) or _WINDOWS_DRIVE.match(path) is not None


def private_paths(sources: Sequence[SourceConfig]) -> Iterator[tuple[str, str]]:
    """Yield the absolute local paths of the sources and their published names."""
    for source in sources:
        for location in (*source.git, *source.fast_import):
            path = location.removeprefix("file://")
            if is_absolute(path):
                yield path, public_location(location, source.repo)


def _without_secrets(url: str) -> str:
    """Return a URL's scheme, host, port and path."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Return JSON without the keys whose value is null: in a configuration such keys are left out."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _json_value(value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value
