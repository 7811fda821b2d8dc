"""The last step: from the run's units to the release folder."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from dedup.tokens import load_tokenizer
from flows.discovering import STAGE as DISCOVERY
from flows.opting_out import STAGE as OPT_OUT
from flows.run import Run
from flows.versions import code_version
from miners.syntax import GRAMMAR_VERSION
from publishing.discovery import DiscoveryFacts, discovery_facts
from publishing.duplicates import DuplicateFacts, duplicate_facts, largest_clusters
from publishing.inputs import ReleaseInputs
from publishing.manifest import Manifest
from publishing.release import ReleaseResult, check_release_free, write_release
from schemas.arrow import from_table, to_table
from schemas.comparisons import Cutoff, DescribedCluster, ReferenceSet, TestbedDuplicates
from schemas.errors import PipelineError
from schemas.records import Exclusion, RepositoryRecord, StageReport
from schemas.search import Discovery
from schemas.versions import calendar_version
from warehouse.ledger import Unit

_PLACE = re.compile(r"(?P<repo>[^@]+)@(?P<commit_id>[0-9a-f]{40,64})(?::(?P<path>.*))?", re.DOTALL)
_PARTITIONS = ("mine", "features", "cutoff", "real_code")  # stages whose partition is a repository

Location = tuple[str, str, str, str]


def check_release(run: Run) -> None:
    """Raise ConfigError before any work when the release's folder is taken by another configuration."""
    check_release_free(run.config, run.workspace.releases)


def release(
    run: Run,
    done: Sequence[Unit],
    beds: Sequence[Unit],
    unusable: Sequence[Exclusion],
    reports: Sequence[StageReport],
    again: Manifest | None = None,
) -> ReleaseResult:
    """Write the release folder from the run's units; PipelineError when there is not one row to write.

    `again` is the manifest of a release that is built again: what its run alone could know is taken from it.
    """
    tables = {unit.partition: run.ledger.read(unit, f"tasks_{unit.partition}") for unit in beds}
    if not any(table.num_rows for table in tables.values()):
        raise PipelineError(_nothing_to_release(run, reports))
    mined = [unit for unit in done if unit.stage == "mine"]
    repositories = [
        record
        for unit in mined
        for record in from_table(run.ledger.read(unit, "repositories"), RepositoryRecord)
    ]  # fmt: skip
    dated = not run.config.release.version
    version = next_version(run) if dated else run.config.release.version
    left_out = _unused(run, done, unusable) if again is None else list(again.unused)
    inputs = ReleaseInputs(
        config=replace(run.config, release=replace(run.config.release, version=version)),
        code_version=code_version(),
        tokenizer_sha256=load_tokenizer().sha256,
        grammar_version=GRAMMAR_VERSION,
        repositories=tuple(repositories),
        tables=tables,
        exclusions=_exclusions(run, done, left_out),
        funnel=tuple(reports),
        cutoffs={
            row.repo: row.commit_id
            for unit in done
            if unit.stage == "cutoff"
            for row in from_table(run.ledger.read(unit, "cutoffs"), Cutoff)
        },
        duplicates=_duplicates(run, done, beds),
        discovery=_discovery(run, done) if again is None else again.discovery,
        unused=tuple(left_out),
        again=again is not None,
        changes=None if again is None else again.changes,
        future_from=min((unit.valid_until for unit in mined if unit.valid_until is not None), default=None),
    )
    with run.progress.running("release", version):
        return write_release(inputs, run.workspace.releases, dated=dated)


def next_version(run: Run) -> str:
    """Return the day's version, by UTC, with the first number of which there is no release yet."""
    versions = (calendar_version(run.now.date(), number) for number in count())
    return next(version for version in versions if not (run.workspace.releases / version).exists())


def _unused(run: Run, done: Sequence[Unit], unusable: Sequence[Exclusion]) -> list[Exclusion]:
    """Return the exclusions of repositories that were not mined, as they stand in the release."""
    # A missing source may have no name but its location, which is no repository's.
    rows = [_located(item, None if item.reason == "source_missing" else item.row_id, {}) for item in unusable]
    for unit in done:
        if unit.stage == DISCOVERY:
            found = from_table(run.ledger.read(unit, "exclusions"), Exclusion)
            rows += [_located(item, None, {}) for item in found]
    return rows


def _discovery(run: Run, done: Sequence[Unit]) -> DiscoveryFacts | None:
    """Return what is known of the search, null without one."""
    for unit in done:
        if unit.stage == DISCOVERY:
            [discovery] = from_table(run.ledger.read(unit, "discoveries"), Discovery)
            return discovery_facts(discovery, run.ledger.read(unit, "discovered_repositories")["repo_id"].to_pylist())
    return None


def _duplicates(run: Run, done: Sequence[Unit], beds: Sequence[Unit]) -> DuplicateFacts:
    """Return what is known of duplicates and reference sets."""

    def rows(stage: str, table: str, row_type: type) -> list[Any]:
        return [
            row for unit in done if unit.stage == stage for row in from_table(run.ledger.read(unit, table), row_type)
        ]

    clusters: list[DescribedCluster] = rows("dedup", "duplicate_clusters", DescribedCluster)
    shown = {cluster.cluster_id for cluster in largest_clusters(clusters)}
    places = {}
    for unit in done if shown else ():
        if unit.stage == "features":
            columns = run.ledger.read(unit, "data_points").select(["row_id", "repo", "path", "fun_name"])
            for row_id, *place in zip(*(column.to_pylist() for column in columns.columns), strict=True):
                if row_id in shown:
                    places[row_id] = (place[0], place[1], place[2])
    testbeds = [
        row
        for unit in beds
        if "testbed_duplicates" in unit.files
        for row in from_table(run.ledger.read(unit, "testbed_duplicates"), TestbedDuplicates)
    ]  # fmt: skip
    return duplicate_facts(clusters, places, testbeds, rows("references", "reference_sets", ReferenceSet))


def _nothing_to_release(run: Run, reports: Sequence[StageReport]) -> str:
    reasons = {f"{reason} ({count})" for report in reports for reason, count in report.excluded_by_reason.items()}
    hint = "look at window.since and at the sources"
    if run.config.window.since > run.now:
        hint = f"window.since, {run.config.window.since:%Y-%m-%d}, lies in the future"
    return f"nothing to release: no method came through. Left out: {', '.join(sorted(reasons)) or 'nothing'}; {hint}"


def _exclusions(run: Run, done: Sequence[Unit], unused: Sequence[Exclusion]) -> pa.Table:
    """Return all exclusions with their repository, commit, path and name, so that a reader can find each."""
    rows = list(unused)
    units = [unit for unit in done if unit.stage != DISCOVERY]
    by_unit = [(unit, list(from_table(run.ledger.read(unit, "exclusions"), Exclusion))) for unit in units]
    wanted = {item.row_id for _, items in by_unit for item in items}
    known: dict[str, Location] = {}
    for unit in done:
        if unit.stage == "mine":
            methods = run.ledger.read(unit, "methods").select(["row_id", "repo", "commit_id", "path", "fun_name"])
            columns = [column.to_pylist() for column in methods.columns]
            known |= {row_id: place for row_id, *place in zip(*columns, strict=True) if row_id in wanted}
    for unit, items in by_unit:
        repo = unit.partition if unit.stage in _PARTITIONS else None
        rows += [_located(item, repo, known) for item in items]
    return to_table(rows, Exclusion)


def _located(item: Exclusion, repo: str | None, known: dict[str, Location]) -> Exclusion:
    """Return an exclusion with what is known of its place; of what somebody asked to leave out nothing more is told."""
    if item.stage == OPT_OUT:
        return item
    if item.row_id in known:
        repo, commit_id, path, fun_name = known[item.row_id]
        return replace(item, repo=repo, commit_id=commit_id, path=path, fun_name=fun_name)
    place = _PLACE.fullmatch(item.row_id)
    return replace(item, repo=repo) if place is None else replace(item, **place.groupdict())
