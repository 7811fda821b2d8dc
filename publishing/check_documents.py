"""Checks of what stands beside the data: the card says what the files hold, and others' libraries read it all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from publishing.card import render_card
from publishing.checking import CheckResult, Fault, Release
from publishing.facts import read_facts
from publishing.header import CARD_NAME, SPLIT, check_card
from publishing.shards import shard_pattern
from schemas.errors import PipelineError
from warehouse.views import count_rows

_INSTALL = "not installed; see docs/release.md"


def check_readme(release: Release) -> CheckResult:
    """Compare the card's header with the files; write the card again and compare when this program made the release."""
    try:
        check_card(release.folder)
        text = (release.folder / CARD_NAME).read_text(encoding="utf-8")
        note, same = _note(release), True
        if not note:
            same = text == render_card(read_facts(release.folder), release.manifest)
    except (PipelineError, OSError, UnicodeDecodeError) as error:
        return CheckResult("card", 1, (Fault(CARD_NAME, release.explain(error)),))
    faults = () if same else (Fault(CARD_NAME, "says something else than files and manifest give"),)
    return CheckResult("card", 1, faults, note)


def _note(release: Release) -> str:
    """Return why documents cannot be written again; empty when they can."""
    made = release.manifest.code_version
    return "" if made == release.code_version else f"made by {made}, so the text is not written again to compare"


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
