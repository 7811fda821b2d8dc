"""A small release that keeps every promise, made by the real features and testbeds, and ways to break its promises."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from dedup.tokens import load_tokenizer
from features.compute import compute_features
from miners.methods import find_methods
from miners.syntax import parse
from publishing.inputs import ReleaseInputs
from publishing.manifest import MANIFEST_NAME, read_manifest
from publishing.release import write_release
from sandbox.splice import split_body
from schemas.arrow import to_table
from schemas.config import Config, ReleaseConfig, SourceConfig, TestbedsConfig, WindowConfig
from schemas.execution import Environment, MockKind, MockResult, RealCode, Verdict
from schemas.records import DataPoint, Exclusion, RepositoryRecord, StageReport, make_row_id
from testbeds.build import ROW_TYPES, build_testbed
from tests.builders import make_method
from tests.publishing.releases import task
from warehouse.tables import file_entry, read_table, write_table, write_text

CODE_VERSION = "0.1.0+12345678"
SINCE, UNTIL = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
SOURCE = '''import math


def mean_of_squares(values):
    """Return the mean of the squares of all values, which must not be empty, as a floating point number."""
    total = 0.0
    for value in values:
        total += value * value
    return total / len(values)


class Shelf:
    def place(self, book, height=30):
        """Put a book on the first board that is high enough for it, and say which one, counted from zero."""
        for number, board in enumerate(self.boards):
            if board.free >= book.width and board.height >= height:
                board.books.append(book)
                return number
        raise LookupError(f"no board for {book}")

    def empty(self):
        pass


def parse_duration(text):
    hours, _, minutes = text.strip().partition(":")
    if not minutes.isdigit() or int(minutes) >= 60:
        raise ValueError("minutes must be below sixty")
    return int(hours or 0) * 3600 + int(minutes) * 60


def angle_between(first, second):
    """Return the angle between two vectors of the plane, in degrees from zero to one hundred and eighty."""
    dot = first.x * second.x + first.y * second.y
    lengths = math.hypot(first.x, first.y) * math.hypot(second.x, second.y)
    return math.degrees(math.acos(max(-1.0, min(1.0, dot / lengths))))
'''
PATH = "lib/things.py"
DIFF = f"@@ -0,0 +1,{SOURCE.count(chr(10))} @@\n" + "".join(f"+{line}\n" for line in SOURCE.splitlines())
MESSAGE = "Add shelves, durations and angles, which the monthly report of the library needs to place its books"
REPOSITORY = RepositoryRecord("example/shapes", "local", None, None, "main", "d" * 40, 12)
CONFIG = Config(
    sources=(SourceConfig(git=("../shapes",)),),
    window=WindowConfig(since=SINCE, until=UNTIL),
    testbeds=TestbedsConfig(names=(*ROW_TYPES, "real_code"), max_per_commit=3),
    release=ReleaseConfig(version="2024.12.31", name="shapes"),
)


def points(source: str = SOURCE) -> list[DataPoint]:
    """The methods of a module as data points, each committed an hour after the one before."""
    raw = source.encode()
    methods = []
    for index, span in enumerate(find_methods(raw, parse(raw))):
        when = SINCE + timedelta(days=30, hours=index)
        place = {"path": PATH, "fun_name": span.fun_name, "start_byte": span.start_byte}
        code = raw[span.start_byte : span.end_byte].decode()
        indent = " " * (span.start_byte - raw.rfind(b"\n", 0, span.start_byte) - 1)
        methods.append(
            make_method(
                **place, code=code.replace(f"\n{indent}", "\n"), end_byte=span.end_byte, commit_message=MESSAGE,
                author_date=when, committer_date=when,
                row_id=make_row_id(REPOSITORY.key, "a" * 40, PATH, span.fun_name, span.start_byte),
            )
        )  # fmt: skip
    kept = compute_features(methods, CONFIG.features)
    assert kept.excluded == []
    return kept.rows


def real_code_row(point: DataPoint, source: str = SOURCE) -> RealCode:
    cut = split_body(source.encode(), point.start_byte)
    mocks = (MockResult(MockKind.PASS, "    pass\n", Verdict.CAUGHT, ("t.py::test",), "AssertionError"),)
    environment = Environment("3.12.1", "pytest==8.3.4\n", "2026-01-02", ("pytest",), (), ("-q",), "bubblewrap")
    return task(
        point, RealCode, instance_id=f"example__shapes-{'e' * 12}-{point.row_id}", base_commit="e" * 40,
        intent_type="method" if "." in point.fun_name else "function", left_context=cut.left.decode(),
        canonical_solution=cut.body.decode(), right_context=cut.right.decode(), PASS_TO_PASS=("t.py::test",),
        FAIL_TO_PASS=("t.py::test",), mocks=mocks, environment=environment, test_command="pytest", runs=4,
        flaky_tests=(),
    )  # fmt: skip


def make_inputs(rows: Sequence[DataPoint], **overrides: Any) -> ReleaseInputs:  # noqa: ANN401 - as fields
    """Return the inputs of a release of these rows; the last one is proven by execution."""
    config: Config = overrides.get("config", CONFIG)
    tables, excluded, funnel = {}, [Exclusion("example/shapes@e1:x.py", "files", "binary", "", "example/shapes")], []
    funnel.append(StageReport("files", "example/shapes", 2, 1, {"binary": 1}))
    for name in ROW_TYPES:
        kept = build_testbed(name, rows, {(row.repo, row.commit_id, row.path): DIFF for row in rows}, config.testbeds)
        tables[name] = to_table(kept.rows, ROW_TYPES[name])
        excluded += kept.excluded
        funnel.append(_report(f"testbed_{name}", len(rows), kept.excluded))
    tables["real_code"] = to_table([real_code_row(rows[-1])] if rows else [], RealCode)
    unproven = [Exclusion(row.row_id, "real_code", "not_covered") for row in rows[:-1]]
    funnel += [_report("real_code", len(rows), unproven), _report("testbed_real_code", min(len(rows), 1), [])]
    inputs = ReleaseInputs(
        config=config, code_version=CODE_VERSION, tokenizer_sha256=load_tokenizer().sha256,
        grammar_version="tree-sitter-python 0.25.0", repositories=(REPOSITORY,), tables=tables,
        exclusions=to_table([*excluded, *unproven], Exclusion), funnel=tuple(funnel),
    )  # fmt: skip
    return replace(inputs, **{"config": config} | overrides)


def _report(stage: str, rows_in: int, excluded: Sequence[Exclusion]) -> StageReport:
    reasons: dict[str, int] = {}
    for item in excluded:
        reasons[item.reason] = reasons.get(item.reason, 0) + 1
    return StageReport(stage, "all", rows_in, rows_in - len(excluded), reasons)


def write_sound_release(releases: Path) -> Path:
    """Write a release that keeps every promise and return its folder."""
    return write_release(make_inputs(points()), releases).folder


def shard(folder: Path, config: str) -> Path:
    [path] = (folder / config).glob("test-*.parquet")
    return path


def change_rows(folder: Path, config: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the rows of a config, given as dictionaries, in place; the manifest follows, the card does not."""
    path = shard(folder, config)
    table = read_table(path)
    rows = table.to_pylist()
    change(rows)
    write_table(path, pa.Table.from_pylist(rows, table.schema))
    change_manifest(folder, rows=read_manifest(folder / MANIFEST_NAME).rows | {config: len(rows)})
    refresh(folder)


def change_manifest(folder: Path, **values: Any) -> None:  # noqa: ANN401 - as fields
    manifest = read_manifest(folder / MANIFEST_NAME)
    write_text(folder / MANIFEST_NAME, replace(manifest, **values).to_json())


def refresh(folder: Path) -> None:
    """List the files that stand there in the manifest, with their hashes."""
    manifest = read_manifest(folder / MANIFEST_NAME)
    counts = {entry.path: entry.rows for entry in manifest.files}
    files = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST_NAME):
        name = path.relative_to(folder).as_posix()
        n_rows = len(read_table(path)) if path.suffix == ".parquet" else counts.get(name)
        files.append(file_entry(path, folder, n_rows))
    write_text(folder / MANIFEST_NAME, replace(manifest, files=tuple(files)).to_json())
