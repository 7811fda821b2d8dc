"""Checks of a release's files: listed and whole, of the right schema, in order, accounted for by the manifest."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from publishing.checking import CheckResult, Fault, Release, row_faults
from publishing.diff import differing
from publishing.header import CARD_NAME
from publishing.manifest import MANIFEST_NAME
from publishing.shards import EXCLUSIONS, order_of
from publishing.withdrawn import original_card
from schemas.arrow import SCHEMA_VERSION
from schemas.config import digest_of
from schemas.records import make_repository_key, make_row_id
from warehouse.tables import file_entry

_SHARD = re.compile(r"test-(\d{5})-of-(\d{5})\.parquet")
_RAW = "raw_data"


def check_files(release: Release) -> CheckResult:
    """Compare the folder's files with the manifest's list: names, sizes, SHA-256; nothing missing, nothing more."""
    listed = {entry.path: entry for entry in release.manifest.files}
    found = {path.relative_to(release.folder).as_posix() for path in _files(release.folder)} - {MANIFEST_NAME}
    faults = [Fault(path, "is not in the manifest") for path in sorted(found - set(listed))]
    for path, entry in sorted(listed.items()):
        if path not in found:
            faults.append(Fault(path, "is missing"))
            continue
        actual = file_entry(release.folder / path, release.folder)
        same = (actual.sha256, actual.bytes) == (entry.sha256, entry.bytes)
        if not same and not (path == CARD_NAME and _pushed_card(release, entry.sha256)):
            faults.append(Fault(path, f"has the SHA-256 {actual.sha256}, the manifest has {entry.sha256}"))
    return CheckResult("files", len(found | set(listed)), tuple(faults))


def _pushed_card(release: Release, sha256: str) -> bool:
    """Tell whether the card is the release's but for the withdrawn versions that the Hub's card lists at its end."""
    card = original_card((release.folder / CARD_NAME).read_bytes())
    return hashlib.sha256(card).hexdigest() == sha256


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder but for hidden ones at its top, such as `.gitattributes` of the Hub."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.relative_to(folder).parts[0].startswith("."):
            yield path


def check_schema(release: Release) -> CheckResult:
    """Compare every config's files with the columns that this version declares; nulls and text encodings too."""
    tables = release.tables
    faults = [Fault(name, text) for name, text in release.damaged.items()]
    if release.manifest.schema_version != SCHEMA_VERSION:
        text = f"schema version {release.manifest.schema_version}, this program has {SCHEMA_VERSION}"
        faults.append(Fault(MANIFEST_NAME, text))
    return CheckResult("schema", sum(table.num_rows for table in tables.values()), tuple(faults))


def check_order(release: Release) -> CheckResult:
    """See that shards are numbered without a gap and rows are in the release's total order over all shards."""
    faults = []
    for name, table in release.tables.items():
        numbers = [_SHARD.fullmatch(Path(entry.path).name) for entry in release.manifest.files if _of(entry.path, name)]
        expected = [(str(index), str(len(numbers))) for index in range(len(numbers))]
        if [found and (str(int(found[1])), str(int(found[2]))) for found in numbers] != expected:
            faults.append(Fault(name, "its shards are not numbered from 00000 on"))
        keys = list(zip(*(table[column].to_pylist() for column in order_of(name)), strict=True))
        place = next((place for place, (one, other) in enumerate(pairwise(keys), 1) if other < one), None)
        if place is not None:
            faults.append(Fault(name, f"row {place} of {table.num_rows} is out of order", _row_id(table, place)))
    return CheckResult("order", sum(table.num_rows for table in release.tables.values()), tuple(faults))


def _of(path: str, config: str) -> bool:
    return path.rpartition("/")[0] == config


def _row_id(table: pa.Table, place: int) -> str:
    return str(table["row_id"][place].as_py())


def check_ids(release: Release) -> CheckResult:
    """See that no config has a row id twice and every row id is the hash of its row's own columns."""
    faults = []
    keys = {
        str(record["repo"]): make_repository_key(
            str(record["repo"]), str(record["host"]), _number(record["repo_id"]), _text(record["web_url"])
        )
        for record in release.manifest.repositories
    }
    for name, table in release.testbeds.items():
        ids = table["row_id"].to_pylist()
        twice = {row_id for row_id, count in Counter(ids).items() if count > 1}
        faults += [Fault(name, "this row id occurs more than once", row_id) for row_id in sorted(twice)]
        columns = [table[column].to_pylist() for column in ("repo", "commit_id", "path", "fun_name", "start_byte")]
        for row_id, repo, *place in zip(ids, *columns, strict=True):
            if repo not in keys:
                faults.append(Fault(name, f"its repository {repo} is not in the manifest", row_id))
            elif make_row_id(keys[repo], *place) != row_id:
                faults.append(Fault(name, "the row id is not that of repository, commit, path, name and place", row_id))
    return CheckResult("ids", sum(table.num_rows for table in release.testbeds.values()), tuple(faults))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def check_keys(release: Release) -> CheckResult:
    """See that every testbed's rows stand in `raw_data` with the same values, and that none of its rows is lost.

    A row of `raw_data` is in a testbed, or `exclusions` says why it is not.
    """
    raw = release.tables.get(_RAW)
    if raw is None:
        return CheckResult("keys", 0, (), f"there is no {_RAW} to compare with")
    faults, looked_at = [], 0
    known = raw["row_id"].combine_chunks()
    for name, table in release.testbeds.items():
        if name == _RAW:
            continue
        looked_at += table.num_rows
        place = pc.index_in(table["row_id"].combine_chunks(), known)
        faults += row_faults(name, table, _true(pc.is_null(place)), f"is not in {_RAW}")
        there = table.filter(pc.is_valid(place))
        same = raw.take(place.drop_null())
        for column in raw.column_names:
            wrong = differing(there[column], same[column])
            faults += row_faults(name, there, wrong, f"{column} is another than in {_RAW}")
        faults += _lost(release, name, raw, table)
    return CheckResult("keys", looked_at, tuple(faults))


def _true(flags: pa.Array | pa.ChunkedArray) -> list[int]:
    return list(pc.indices_nonzero(flags).to_pylist())


def _lost(release: Release, name: str, raw: pa.Table, table: pa.Table) -> list[Fault]:
    """Return a fault for every row of `raw_data` that a testbed neither has nor leaves out, or does both with."""
    excluded = release.tables.get(EXCLUSIONS)
    if excluded is None:
        return []
    stages = pa.array([f"testbed_{name}", name])  # `real_code` leaves rows out under its own name, too
    ids = excluded.filter(pc.is_in(excluded["stage"], stages))["row_id"].combine_chunks()
    here = pc.is_in(raw["row_id"], table["row_id"].combine_chunks())
    out = pc.is_in(raw["row_id"], ids)
    neither = row_faults(name, raw, _true(pc.invert(pc.or_(here, out))), "is neither here nor in the exclusions")
    return neither + row_faults(name, raw, _true(pc.and_(here, out)), "is here and in the exclusions")


def check_funnel(release: Release) -> CheckResult:
    """See that every stage's rows in are rows out and left out, and that exclusions and rows agree with the funnel."""
    manifest, faults = release.manifest, []
    for row in manifest.funnel:
        if row.rows_in != row.rows_out + row.excluded:
            faults.append(
                Fault(row.stage, f"{row.rows_in} rows in, but {row.rows_out} out and {row.excluded} left out")
            )
        name = row.stage.removeprefix("testbed_")
        if name != row.stage and manifest.rows.get(name) != row.rows_out:
            faults.append(Fault(row.stage, f"{row.rows_out} rows out, but {manifest.rows.get(name)} rows in {name}"))
    stated = {(row.stage, reason): count for row in manifest.funnel for reason, count in row.excluded_by_reason.items()}
    excluded = release.tables.get(EXCLUSIONS)
    if excluded is not None:
        pairs = zip(excluded["stage"].to_pylist(), excluded["reason"].to_pylist(), strict=True)
        counted = Counter(pairs)
        for stage, reason in sorted({*stated, *counted}):
            there, here = stated.get((stage, reason), 0), counted.get((stage, reason), 0)
            if there != here:
                faults.append(Fault(EXCLUSIONS, f"{here} rows of {stage} with {reason}, the funnel has {there}"))
    looked_at = len(manifest.funnel) + (0 if excluded is None else excluded.num_rows)
    return CheckResult("funnel", looked_at, tuple(faults))


def check_manifest(release: Release) -> CheckResult:
    """See that the manifest agrees with itself and with the files: row counts, configuration digest, seeds, version."""
    manifest, faults = release.manifest, []
    listed: Counter[str] = Counter()
    for entry in manifest.files:
        if entry.rows is not None:
            listed[entry.path.rpartition("/")[0]] += entry.rows
    for name, table in release.tables.items():
        counts = {manifest.rows[name], listed[name], table.num_rows}
        if len(counts) > 1:
            text = f"{table.num_rows} rows, but {manifest.rows[name]} in `rows` and {listed[name]} in `files`"
            faults.append(Fault(name, text))
    if manifest.config_digest != digest_of(manifest.config):
        faults.append(Fault(MANIFEST_NAME, "config_digest is not that of config"))
    expected = {"testbeds.seed": release.config.testbeds.seed}
    if manifest.seeds != expected:
        faults.append(Fault(MANIFEST_NAME, f"seeds are {manifest.seeds}, config has {expected}"))
    stated = (release.config.release.version, release.config.release.name)
    if (manifest.version, manifest.name) != stated:
        faults.append(Fault(MANIFEST_NAME, f"version and name are not those of config, {stated}"))
    return CheckResult("manifest", len(manifest.rows), tuple(faults))
