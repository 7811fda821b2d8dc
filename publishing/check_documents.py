"""Checks of what stands beside the data: the card says what the files hold, and others' libraries read it all."""

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pyarrow as pa

from publishing.card import render_card
from publishing.checking import CheckResult, Fault, Release
from publishing.croissant import CROISSANT_NAME, render_croissant
from publishing.header import CARD_NAME, SPLIT, check_card
from publishing.notice import NOTICE_NAME, render_notice
from publishing.shards import shard_pattern
from publishing.withdrawn import original_card
from schemas.errors import PipelineError
from warehouse.views import count_rows

_RECORDS = 500  # of a config that Croissant's reader loads: it takes milliseconds for each
_INSTALL = "not installed; see docs/release.md"


def check_readme(release: Release) -> CheckResult:
    """Compare the card's header with the files; write card and notice again and compare when this program made them."""
    try:
        check_card(release.folder)
        text = original_card((release.folder / CARD_NAME).read_bytes()).decode("utf-8")
        note, same, same_notice = _note(release), True, True
        if not note:
            same = text == render_card(release.facts, release.manifest)
            notice = (release.folder / NOTICE_NAME).read_text(encoding="utf-8")
            same_notice = notice == render_notice(release.facts, release.manifest)
    except (PipelineError, OSError, UnicodeDecodeError) as error:
        return CheckResult("card", 1, (Fault(CARD_NAME, release.explain(error)),))
    wrong = [name for name, right in ((CARD_NAME, same), (NOTICE_NAME, same_notice)) if not right]
    faults = tuple(Fault(name, "says something else than files and manifest give") for name in wrong)
    return CheckResult("card", 1, faults, note)


def _note(release: Release) -> str:
    """Return why documents cannot be written again; empty when they can."""
    made = release.manifest.code_version
    return "" if made == release.code_version else f"made by {made}, so the text is not written again to compare"


def check_croissant(release: Release) -> CheckResult:
    """Validate `croissant.json` with mlcroissant, load records of every config, compare them with the files.

    Write it again and compare, too, when this program made the release.
    """
    path, note = release.folder / CROISSANT_NAME, _note(release)
    try:
        text = path.read_text(encoding="utf-8")
        same = bool(note) or text == render_croissant(release.facts, release.manifest)
        values = json.loads(text)
    except (PipelineError, OSError, ValueError) as error:
        return CheckResult("croissant", 1, (Fault(CROISSANT_NAME, release.explain(error)),))
    faults = [] if same else [Fault(CROISSANT_NAME, "says something else than files and manifest give")]
    logging.getLogger("absl").setLevel(logging.ERROR)  # it warns of every recommended property that is not there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own libraries' deprecations
        try:
            looked_at, found = _load_records(release, [item["name"] for item in values["recordSet"]])
        except ImportError:
            return CheckResult("croissant", 1, tuple(faults), f"`mlcroissant` is {_INSTALL}")
    faults += found
    limit = f"the first {_RECORDS:,} records of each config" if looked_at < sum(release.manifest.rows.values()) else ""
    return CheckResult("croissant", looked_at, tuple(faults), "; ".join(filter(None, (limit, note))))


def _load_records(release: Release, names: Sequence[str]) -> tuple[int, list[Fault]]:
    """Return how many records of all configs were loaded, and what is wrong with the file or them."""
    import mlcroissant

    try:
        dataset = mlcroissant.Dataset(str(release.folder / CROISSANT_NAME))
    except mlcroissant.ValidationError as error:
        return 1, [Fault(CROISSANT_NAME, f"is not valid: {_one_line(error)}")]
    results = [_compare_records(release, name, dataset) for name in names]
    return sum(count for count, _ in results), [fault for _, faults in results for fault in faults]


def _compare_records(release: Release, name: str, dataset: Any) -> tuple[int, list[Fault]]:  # noqa: ANN401 - a mlcroissant.Dataset
    """Return how many records of a config were loaded, and what is wrong with them."""
    table = release.tables.get(name)
    if table is None or not table.num_rows:  # mlcroissant cannot read a table without rows
        return 0, []
    try:
        records = list(islice(dataset.records(name), _RECORDS))
    except (ValueError, AssertionError, _generation_error()) as error:
        return 0, [Fault(name, f"mlcroissant does not load it: {_one_line(error)}")]
    rows = table.slice(0, _RECORDS).to_pylist()
    if len(records) != len(rows):
        return len(records), [Fault(name, f"mlcroissant gives {len(records)} records instead of {len(rows)}")]
    wrong = (place for place, (record, row) in enumerate(zip(records, rows, strict=True)) if _plain(record) != row)
    return len(records), [
        Fault(name, "mlcroissant gives other values", rows[place]["row_id"]) for place in islice(wrong, 1)
    ]


def _generation_error() -> type[Exception]:
    """Return what mlcroissant raises when it cannot read records; it is not among its public names."""
    from mlcroissant._src.core.issues import GenerationError

    error: type[Exception] = GenerationError
    return error


def _plain(value: Any) -> Any:  # noqa: ANN401 - what mlcroissant gives for a value in a Parquet file
    """Return a record as Arrow gives it: text instead of bytes, names without those of what they stand in."""
    if isinstance(value, dict):
        return {str(name).rpartition("/")[2]: _plain(item) for name, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def check_duckdb(release: Release) -> CheckResult:
    """Read every config with DuckDB by the card's own pattern and count its rows."""
    faults, looked_at = [], 0
    for name, rows in release.manifest.rows.items():
        try:
            found = count_rows(release.folder / shard_pattern(name))
        except PipelineError as error:
            faults.append(Fault(name, release.explain(error)))
            continue
        looked_at += found
        if found != rows:
            faults.append(Fault(name, f"DuckDB counts {found} rows, the manifest {rows}"))
    return CheckResult("duckdb", looked_at, tuple(faults))


def check_datasets(release: Release) -> CheckResult:
    """Load every config that has rows with `datasets`, offline, and compare the rows with the files."""
    try:
        with _offline():
            import datasets
    except ImportError:
        return CheckResult("datasets", 0, (), f"`datasets` is {_INSTALL}")
    faults, looked_at = [], 0
    with tempfile.TemporaryDirectory(prefix="postquem-") as cache, _offline():
        datasets.disable_progress_bars()
        for name, rows in release.manifest.rows.items():
            if not rows:
                continue
            try:
                loaded = datasets.load_dataset(str(release.folder), name, split=SPLIT, cache_dir=cache)
            except (ValueError, OSError, LookupError, pa.ArrowException, datasets.exceptions.DatasetsError) as error:
                faults.append(Fault(name, f"`datasets` does not load it: {_one_line(error)}"))
                continue
            looked_at += loaded.num_rows
            faults += _compare(release, name, loaded)
    return CheckResult("datasets", looked_at, tuple(faults))


def _compare(release: Release, name: str, loaded: Any) -> list[Fault]:  # noqa: ANN401 - a datasets.Dataset
    table = release.tables.get(name)
    if table is None:
        return []
    if loaded.column_names != table.column_names:
        return [Fault(name, "`datasets` gives other columns")]
    if loaded.num_rows != table.num_rows:
        return [Fault(name, f"`datasets` gives {loaded.num_rows} rows, the files have {table.num_rows}")]
    same = loaded.data.table.cast(table.schema).equals(table)
    return [] if same else [Fault(name, "`datasets` gives other values")]


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the Hub's libraries, which read their settings when they are imported, from any network."""
    ours = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _one_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
