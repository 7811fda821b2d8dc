"""The numbers behind the page, read from a release folder alone: its manifest and its Parquet files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from publishing.facts import read_columns
from publishing.glossary import reason_meaning, stage_meaning
from publishing.report.charts import Bar, histogram_svg, make_bars, make_histogram
from publishing.shards import EXCLUSIONS
from publishing.statistics import FEATURES, spread_of
from schemas.errors import ConfigError
from warehouse.manifests import MANIFEST_NAME, read_values

_MOST_BARS = 15
_UNKNOWN = "unknown"
_NOVELTY = "novelty_"  # reasons of the stage `features` that name a class


@dataclass(frozen=True, slots=True)
class FeatureFigure:
    """One feature of one testbed."""

    name: str
    """Column."""
    mean: float
    """Mean."""
    deviation: float
    """Standard deviation, of a sample as in the card."""
    median: float
    """Median."""
    largest: float
    """Largest value."""
    svg: str
    """Histogram."""


@dataclass(frozen=True, slots=True)
class StageFigure:
    """One line of the funnel."""

    name: str
    """Stage."""
    meaning: str
    """What a row of it is."""
    rows_in: int
    """Rows it was given."""
    rows_out: int
    """Rows it handed on."""
    kept: float
    """Share handed on, in per cent."""
    reasons: list[tuple[str, str, int]]
    """Reason, its meaning and the rows left out for it, most first."""


@dataclass(frozen=True, slots=True)
class ExecutedRepository:
    """What real_code made of one repository."""

    repo: str
    """owner/name."""
    tasks: int
    """Proven functions in the release."""
    reasons: list[Bar]
    """Why its other functions gave no task, most first."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that the page draws."""

    manifest: dict[str, Any]
    """The release's manifest."""
    testbeds: list[Bar]
    """Rows of each testbed."""
    funnel: list[StageFigure]
    """Stages in order."""
    features: dict[str, list[FeatureFigure]]
    """Figures by testbed; testbeds without rows are left out."""
    novelty: list[Bar]
    """Methods that commits of the window brought or touched, by class."""
    repositories: list[Bar]
    """Rows of raw_data by repository."""
    licences: list[Bar]
    """Rows of raw_data by licence."""
    months: list[Bar]
    """Rows of raw_data by month of the committer date, months without rows included."""
    clusters: list[Bar]
    """Clusters of duplicates by their number of members; empty when the release does not tell."""
    executed: list[ExecutedRepository]
    """Repositories that real_code looked at, by name."""


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return a release's manifest, of whatever version of Postquem; raise ConfigError when the folder is no release."""
    manifest = read_values(folder / MANIFEST_NAME)
    if not {"rows", "funnel", "version"} <= manifest.keys():
        raise ConfigError(f"{folder / MANIFEST_NAME} is no manifest of a release")
    return manifest


def read_figures(folder: Path) -> Figures:
    """Return the figures of a release folder."""
    manifest = read_manifest(folder)
    rows: dict[str, int] = manifest["rows"]
    names = [name for name in rows if name != EXCLUSIONS]
    base = "raw_data" if rows.get("raw_data") else next((name for name in names if rows[name]), None)
    places = read_columns(folder, base, ["repo", "license", "committer_date"]) if base else None
    return Figures(
        manifest=manifest,
        testbeds=make_bars({name: rows[name] for name in names}),
        funnel=[_stage(row) for row in manifest["funnel"]],
        features={name: _features(folder, name) for name in names if rows[name]},
        novelty=make_bars(_novelty(manifest)),
        repositories=_count_bars(places["repo"].to_pylist() if places else []),
        licences=_count_bars([name or _UNKNOWN for name in places["license"].to_pylist()] if places else []),
        months=make_bars(_months(places["committer_date"].to_pylist() if places else [])),
        clusters=_clusters(manifest),
        executed=_executed(folder, rows),
    )


def _stage(row: dict[str, Any]) -> StageFigure:
    reasons = sorted(row["excluded_by_reason"].items(), key=lambda item: (-item[1], item[0]))
    return StageFigure(
        row["stage"],
        stage_meaning(row["stage"]),
        row["rows_in"],
        row["rows_out"],
        100 * row["rows_out"] / row["rows_in"] if row["rows_in"] else 100.0,
        [(reason, reason_meaning(reason), count) for reason, count in reasons],
    )


def _features(folder: Path, name: str) -> list[FeatureFigure]:
    table = read_columns(folder, name, FEATURES)
    return [_feature(feature, table[feature]) for feature in FEATURES]


def _feature(name: str, column: pa.ChunkedArray) -> FeatureFigure:
    spread, values = spread_of(column), column.to_numpy()
    return FeatureFigure(
        name,
        spread.mean,
        spread.std,
        float(np.median(values)),
        float(values.max()),
        histogram_svg(make_histogram(values), f"{name}: rows by value"),
    )


def _novelty(manifest: dict[str, Any]) -> dict[str, int]:
    """Return the methods of each class that was left out, and those that are new."""
    counts = Counter[str]()
    for row in manifest["funnel"]:
        if row["stage"] == "features":
            classes = {name: n for name, n in row["excluded_by_reason"].items() if name.startswith(_NOVELTY)}
            counts.update({name.removeprefix(_NOVELTY): n for name, n in classes.items()})
            counts["new"] += row["rows_in"] - sum(classes.values())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _count_bars(values: Sequence[str]) -> list[Bar]:
    counts = Counter(values)
    return make_bars(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))), _MOST_BARS)


def _months(dates: Sequence[Any]) -> dict[str, int]:
    counts = Counter(f"{date:%Y-%m}" for date in dates)
    if not counts:
        return {}
    (year, month), last = (int(part) for part in min(counts).split("-")), max(counts)
    months = {}
    while (name := f"{year:04d}-{month:02d}") <= last:
        months[name] = counts[name]
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return months


def _clusters(manifest: dict[str, Any]) -> list[Bar]:
    largest = manifest["duplicates"]["largest"]
    return make_bars({f"{item['repo']} · {item['path']} · {item['fun_name']}": item["size"] for item in largest})


def _executed(folder: Path, rows: dict[str, int]) -> list[ExecutedRepository]:
    if "real_code" not in rows:
        return []
    proven = Counter(read_columns(folder, "real_code", ["repo"])["repo"].to_pylist() if rows["real_code"] else [])
    left_out: dict[str, Counter[str]] = {}
    excluded = read_columns(folder, EXCLUSIONS, ["repo", "stage", "reason"]) if rows.get(EXCLUSIONS) else None
    for row in excluded.to_pylist() if excluded is not None else []:
        if row["stage"] == "real_code" and row["repo"] is not None:
            left_out.setdefault(row["repo"], Counter())[row["reason"]] += 1
    return [
        ExecutedRepository(repo, proven[repo], make_bars(dict(left_out.get(repo, Counter()).most_common())))
        for repo in sorted({*proven, *left_out})
    ]
