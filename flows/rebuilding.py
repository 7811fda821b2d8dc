"""`release build --from`: a release again, from its manifest alone, and whether its bytes are the same."""

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import pyarrow as pa

from dedup.tokens import load_tokenizer
from flows import dedup_steps
from flows.opting_out import searched_names
from flows.recipe import BuildResult, Gathered, carry_out
from flows.releasing import release
from flows.run import Computers, Run, open_run_of
from flows.sources import Source
from flows.steppers import PlainStepper
from flows.versions import code_version
from miners.clone import Clone
from miners.pinned import open_pinned, pinned_place
from miners.places import clone_folder
from miners.syntax import GRAMMAR_VERSION
from publishing.manifest import MANIFEST_NAME, Manifest, read_manifest
from schemas.config import Config, SourceConfig
from schemas.errors import ConfigError, DataError, PipelineError
from schemas.records import LOCAL, RepositoryRecord, StageReport
from warehouse.ledger import Ledger
from warehouse.lock import open_workspace

FOLDER = "rebuilds"  # below the workspace: one workspace of its own for each release that is built again
_DISCOVERY, _SOURCES = "discovery", "sources"


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """A release that is to be built again."""

    manifest: Path
    """Its manifest."""
    workspace: Path
    """The workspace, whose clones are used where they have the heads; the rebuilt release is below it."""
    base: Path
    """Where relative locations of the configuration start."""
    locations: Mapping[str, str]
    """Where repositories are that neither the workspace nor the configuration tells, by owner/name."""
    workers: int | None = None
    """Processes at work; null for one per core."""
    other_versions: bool = False
    """Go on when Postquem, Python or a library has another version."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What came of it."""

    result: BuildResult
    """The run."""
    differing: tuple[str, ...]
    """Files whose bytes are not those that the manifest lists, the manifest itself included; sorted."""


def rebuild(asked: Rebuilding) -> Rebuilt:
    """Build a release again; ConfigError when versions differ or a repository's head cannot be had."""
    manifest = read_manifest(asked.manifest)
    if not asked.other_versions:
        _require_versions(manifest)
    config = manifest.read_config()
    config = replace(config, release=replace(config.release, overwrite=True))  # of an earlier attempt
    folder = open_workspace(asked.workspace).root / FOLDER / manifest.version
    computers = Computers(asked.workers or os.cpu_count() or 1)
    with open_run_of(config, asked.base.resolve(), folder, computers, _moment(manifest)) as run:
        result = _carry_out(run, asked, manifest)
    made = result.release
    if made is None:
        raise PipelineError("no release was written; please report this as a bug")
    listed = {entry.path: entry.sha256 for entry in manifest.files}
    found = {entry.path: entry.sha256 for entry in made.files if entry.path != MANIFEST_NAME}
    differing = {path for path in {*listed, *found} if listed.get(path) != found.get(path)}
    if (made.folder / MANIFEST_NAME).read_bytes() != asked.manifest.read_bytes():
        differing.add(MANIFEST_NAME)
    return Rebuilt(result, tuple(sorted(differing)))


def _carry_out(run: Run, asked: Rebuilding, manifest: Manifest) -> BuildResult:
    stepper = PlainStepper()
    references = dedup_steps.plan_references(run.config, run.base, asked.workspace.absolute())
    records = [_record(values) for values in manifest.repositories]

    def pin(run: Run, record: RepositoryRecord) -> Clone:
        return _pin(run, asked, record)

    clones = stepper.each("clone", pin, run, records, lambda record: record.repo)
    names = searched_names(Ledger(open_workspace(asked.workspace).tables), records)
    sources = [replace(_source(run.config, record), names=tuple(names.get(record.repo, ()))) for record in records]
    unusable = tuple(item for item in manifest.unused if item.stage == _SOURCES)
    work = carry_out(run, stepper, Gathered(tuple(clones), tuple(sources), unusable), references)
    searched = [
        StageReport(row.stage, "all", row.rows_in, row.rows_out, row.excluded_by_reason)
        for row in manifest.funnel
        if row.stage == _DISCOVERY
    ]
    made = release(run, work.done, work.beds, work.unusable, [*searched, *work.reports], again=manifest)
    return BuildResult(work.reports, made, {unit.partition: unit.reports[-1].rows_out for unit in work.beds})


def _moment(manifest: Manifest) -> datetime:
    """Return a time at which the same commits lie in the future as did when the release was made."""
    if manifest.future_from is None:
        return datetime.now(UTC)
    return datetime.fromisoformat(manifest.future_from) - timedelta(seconds=1)  # git's dates are whole seconds


def _require_versions(manifest: Manifest) -> None:
    """Raise ConfigError that names every version by which bytes could differ."""
    here = {
        "code_version": code_version(),
        "python_version": platform.python_version(),
        "parquet_writer": f"pyarrow {pa.__version__}",
        "grammar_version": GRAMMAR_VERSION,
        "tokenizer_sha256": load_tokenizer().sha256,
    }
    others = [f"{name} {getattr(manifest, name)} (here {value})" for name, value in here.items()]
    wrong = [text for text, name in zip(others, here, strict=True) if getattr(manifest, name) != here[name]]
    if wrong:
        raise ConfigError(
            f"the release was made with {', '.join(wrong)}; install that, or give --other-versions to see what differs"
        )


def _record(values: Mapping[str, object]) -> RepositoryRecord:
    """Return a repository of the manifest."""
    aliases = values["aliases"]
    return RepositoryRecord(
        **{**values, "aliases": tuple(aliases) if isinstance(aliases, list | tuple) else ()}  # type: ignore[arg-type]
    )


def _pin(run: Run, asked: Rebuilding, record: RepositoryRecord) -> Clone:
    """Return a clone with the recorded head from the first location that has it."""
    tried = []
    for location in _locations(run, asked, record):
        try:
            return open_pinned(record, location, run.workspace.repos)
        except (DataError, ConfigError) as error:
            tried.append(str(error))
    raise ConfigError(
        f"nothing has commit {record.head} of {record.repo}; say where it is with --repository "
        f"{record.repo}=LOCATION ({'; '.join(tried) or 'its location is not known'})"
    )


def _locations(run: Run, asked: Rebuilding, record: RepositoryRecord) -> Iterator[str]:
    """Yield where a repository may be: as told, in the workspace, where the configuration says, at its host."""
    if record.repo in asked.locations:
        yield asked.locations[record.repo]
        return
    clone = clone_folder(asked.workspace.absolute() / "repos", record.host, record.repo)
    if clone.is_dir():
        yield str(clone)
    for section in run.config.sources:
        for location in (*section.git, *section.fast_import):
            path = run.base / location
            if "://" not in location and _is_named(section, location, record) and path.exists():
                yield str(path.resolve())
    if record.host != LOCAL:
        yield f"https://{record.host}/{record.repo}.git"


def _is_named(section: SourceConfig, location: str, record: RepositoryRecord) -> bool:
    """Tell whether a location of the configuration may be a repository's: by the section's name, else by its own."""
    if section.repo is not None:
        return section.repo == record.repo
    own = PurePosixPath(location.replace("\\", "/")).name
    return own.removesuffix(".git").removesuffix(".fi") == record.repo.rpartition("/")[2]


def _source(config: Config, record: RepositoryRecord) -> Source:
    """Return the source of a repository, which tells whether it may be executed."""
    for section in config.sources:
        if any(_is_named(section, location, record) for location in (*section.git, *section.fast_import)):
            return Source(pinned_place(record, ""), section)
    execute = config.search is None or config.search.execute
    return Source(pinned_place(record, ""), SourceConfig(execute=execute))
