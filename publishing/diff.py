"""`release diff`: what changed between two releases, row by row, and why, from the two folders alone."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from publishing.changes import Cause, Changes, Kind, ReasonCount, RowChange, TestbedChange
from publishing.facts import shards_of
from publishing.manifest import MANIFEST_NAME, Manifest, read_manifest
from publishing.shards import EXCLUSIONS, config_order
from schemas.config import Config
from schemas.errors import ConfigError, PipelineError
from schemas.records import make_repository_key
from warehouse.tables import read_table

_VERSIONS = (
    "code_version",
    "schema_version",
    "python_version",
    "parquet_writer",
    "grammar_version",
    "tokenizer_sha256",
)
_PLACE = ("row_id", "repo", "commit_id", "path", "fun_name", "author_date", "committer_date")
_TESTBED = "testbed_"
# Stages whose exclusions speak of files in other trees than that of the row's commit, or of functions not executed.
_OTHERS = frozenset({"index", "history", "cutoff", "references", "real_code"})

Reason = tuple[str, str]  # reason and detail


@dataclass(frozen=True)
class Side:
    """One of the two releases."""

    folder: Path
    """Its folder."""
    manifest: Manifest
    """Its manifest; of a release that is being built one without files."""

    def rows(self, testbed: str) -> pa.Table | None:
        """Return a testbed's rows; null for one that this release has not."""
        shards = shards_of(self.folder, testbed)
        return pa.concat_tables([read_table(path) for path in shards]) if shards else None

    @cached_property
    def config(self) -> Config:
        """Return the configuration."""
        return self.manifest.read_config()

    @cached_property
    def heads(self) -> dict[str, str]:
        """Return the head of each repository, under all of its names and under what identifies it."""
        found = {}
        for record in self.manifest.repositories:
            for alias in _texts(record["aliases"]):
                found[alias] = str(record["head"])
        found |= {str(record["repo"]): str(record["head"]) for record in self.manifest.repositories}
        return found | {_key(record): str(record["head"]) for record in self.manifest.repositories}

    @cached_property
    def keys(self) -> dict[str, str]:
        """Return what identifies each repository: a renamed one keeps it."""
        return {str(record["repo"]): _key(record) for record in self.manifest.repositories}

    def head_of(self, repo: str, other: "Side") -> str | None:
        """Return the head of a repository that another release calls so; null for one that this release has not."""
        return self.heads.get(other.keys.get(repo, repo), self.heads.get(repo))

    @cached_property
    def excluded(self) -> dict[str, list[tuple[str, str, str]]]:
        """Return stage, reason and detail of everything that was left out, by id."""
        table = self.rows(EXCLUSIONS)
        found: dict[str, list[tuple[str, str, str]]] = {}
        if table is not None:
            columns = (table[name].to_pylist() for name in ("row_id", "stage", "reason", "detail"))
            for row_id, *why in zip(*columns, strict=True):
                found.setdefault(row_id, []).append((why[0], why[1], why[2]))
        return found


def _key(record: Mapping[str, Any]) -> str:
    return make_repository_key(record["repo"], record["host"], record["repo_id"], record["web_url"])


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def open_side(folder: Path) -> Side:
    """Return a release folder for comparing; ConfigError when it is none or its manifest cannot be read."""
    try:
        return Side(folder, read_manifest(folder / MANIFEST_NAME))
    except PipelineError as error:
        raise ConfigError(f"{folder} cannot be compared: {error}") from None


def compare(before: Side, after: Side) -> tuple[Changes, list[RowChange]]:
    """Return what changed from one release to another, and every row that did, by testbed, change and row id."""
    names = config_order({*before.manifest.rows, *after.manifest.rows} - {EXCLUSIONS})
    rows = {name: _changed_rows(name, before, after) for name in names}
    counts = tuple(
        _count(name, rows[name], before.manifest.rows.get(name, 0), after.manifest.rows.get(name, 0)) for name in names
    )
    content = (before.folder / MANIFEST_NAME).read_bytes()
    causes = (*_versions(before, after), *_configuration(before, after), *_given(before, after))
    changes = Changes(before.manifest.version, hashlib.sha256(content).hexdigest(), causes, counts)
    return changes, [row for name in names for row in rows[name]]


def _count(name: str, rows: Sequence[RowChange], before: int, after: int) -> TestbedChange:
    kinds = Counter(row.change for row in rows)
    reasons = Counter((row.change, row.reason) for row in rows)
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return TestbedChange(
        name, before, after, kinds[Kind.ADDED], kinds[Kind.REMOVED], kinds[Kind.CHANGED],
        tuple(ReasonCount(change, reason, count) for (change, reason), count in ordered),
    )  # fmt: skip


def _versions(before: Side, after: Side) -> Iterator[Cause]:
    for name in _VERSIONS:
        one, other = (str(getattr(side.manifest, name)) for side in (before, after))
        if one != other:
            yield Cause(name, one, other)


def _configuration(before: Side, after: Side) -> Iterator[Cause]:
    one, other = (_flat(side.manifest.config) for side in (before, after))
    for key in sorted({*one, *other} - {"release.version"}):
        if one.get(key) != other.get(key):
            yield Cause(f"configuration {key}", one.get(key), other.get(key))


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return a configuration's values as JSON by dotted key; a list is one value."""
    values: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            values |= _flat(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = json.dumps(value, ensure_ascii=False)
    return values


def _given(before: Side, after: Side) -> Iterator[Cause]:
    """Yield what differs of repositories, reference sets and opt-outs; one that was renamed has its later name."""
    names = {key: repo for side in (before, after) for repo, key in side.keys.items()}
    one, other = _inputs(before.manifest, names), _inputs(after.manifest, names)
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            yield Cause(name, one.get(name), other.get(name))


def _inputs(manifest: Manifest, names: Mapping[str, str]) -> dict[str, str]:
    """Return the heads, the digests of reference sets, and the number of rows that opt-outs removed."""
    heads = {f"repository {names[_key(record)]}": str(record["head"]) for record in manifest.repositories}
    sets = {f"reference {item.reference}": ", ".join(item.sha256) for item in manifest.duplicates.references}
    opted_out = {} if manifest.opted_out is None else {"rows opted out": str(manifest.opted_out)}
    return heads | sets | opted_out


def _changed_rows(name: str, before: Side, after: Side) -> list[RowChange]:
    one, other = before.rows(name), after.rows(name)
    found = [
        *_only_in(name, one, other, _Absence(before, after, Kind.REMOVED)),
        *_only_in(name, other, one, _Absence(after, before, Kind.ADDED)),
    ]
    if one is not None and other is not None:
        found += _different(name, one, other)
    return sorted(found, key=lambda row: (row.change, row.row_id))


@dataclass(frozen=True, slots=True)
class _Absence:
    """Why one release lacks rows that another has."""

    has: Side
    """The release that has them."""
    lacks: Side
    """The release that lacks them."""
    kind: Kind
    """What became of the rows: added when the later release has them."""

    def explain(self, testbed: str, row: Mapping[str, Any]) -> Reason:
        """Return what the exclusions say, else what the manifests allow to conclude."""
        if testbed not in self.lacks.manifest.rows:
            return "no_such_testbed", ""
        commit = f"{row['repo']}@{row['commit_id']}"
        own = {f"{_TESTBED}{testbed}", testbed}
        for row_id in (row["row_id"], f"{commit}:{row['path']}", commit):
            for stage, reason, detail in self.lacks.excluded.get(row_id, ()):
                if stage in own or not (stage.startswith(_TESTBED) or stage in _OTHERS):
                    return reason, detail
        window, dates = self.lacks.config.window, (row["author_date"], row["committer_date"])
        if min(dates) < window.since or (window.until is not None and max(dates) >= window.until):
            return "outside_window", ""
        head, there = self.has.heads.get(row["repo"]), self.lacks.head_of(row["repo"], self.has)
        if there is None:
            return "other_repository", ""
        return ("read_otherwise", "") if head == there else ("other_head", f"head {there}")


def _only_in(name: str, here: pa.Table | None, there: pa.Table | None, absence: _Absence) -> Iterator[RowChange]:
    """Yield the rows of `here` that are not in `there`."""
    if here is None:
        return
    if there is not None:
        here = here.filter(pc.invert(pc.is_in(here["row_id"], there["row_id"].combine_chunks())))
    for row in here.select(_PLACE).to_pylist():
        yield RowChange(name, absence.kind, row["row_id"], row["repo"], row["fun_name"], *absence.explain(name, row))


def _different(name: str, one: pa.Table, other: pa.Table) -> Iterator[RowChange]:
    """Yield the rows of both whose values differ, with the columns that do."""
    other = other.take(pc.index_in(one["row_id"], other["row_id"].combine_chunks()).combine_chunks().drop_null())
    one = one.take(pc.index_in(other["row_id"], one["row_id"].combine_chunks()).combine_chunks())
    columns: dict[int, list[str]] = {}
    for column in one.column_names:
        if column in other.column_names:
            for place in differing(one[column], other[column]):
                columns.setdefault(place, []).append(column)
    for place, differ in columns.items():
        row_id, repo, fun_name = (one[column][place].as_py() for column in ("row_id", "repo", "fun_name"))
        yield RowChange(name, Kind.CHANGED, row_id, repo, fun_name, ", ".join(differ), "")


def differing(one: pa.ChunkedArray, other: pa.ChunkedArray) -> list[int]:
    """Return the places at which two columns of one length differ, nulls included."""
    if pa.types.is_nested(one.type) or one.type != other.type:
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return [place for place, (here, there) in enumerate(pairs) if here != there]
    differs = pc.fill_null(pc.not_equal(one, other), False)
    nulls = pc.not_equal(pc.is_null(one), pc.is_null(other))
    return list(pc.indices_nonzero(pc.or_(differs, nulls)).to_pylist())
