"""Checks of what the rows say: dates, licences, classes, features, and that every task is its function's bytes."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from features.compute import features_of
from features.docstrings import code_without_docstring, is_valid_docstring
from features.licences import require_allowed
from miners.methods import dedent, find_methods
from miners.syntax import parse
from publishing.checking import CheckResult, Fault, Release
from sandbox.splice import split_body
from schemas.arrow import from_table
from schemas.errors import DataError
from schemas.execution import RealCode
from schemas.records import DataPoint, Method
from schemas.tasks import CommitGen, FromDocString, RandomCut, SummarizationGen, WithDocString
from testbeds.build import ROW_TYPES

_BATCH_ROWS = 1_000


def check_dates(release: Release) -> CheckResult:
    """See that author and committer date of every row lie in the window."""
    window, faults = release.config.window, []
    for name, table in release.testbeds.items():
        columns = (table[column].to_pylist() for column in ("row_id", "author_date", "committer_date"))
        for row_id, *dates in zip(*columns, strict=True):
            early, late = min(dates), max(dates)
            if early < window.since:
                faults.append(Fault(name, f"dated {early.isoformat()}, before {window.since.isoformat()}", row_id))
            elif window.until is not None and late >= window.until:
                faults.append(Fault(name, f"dated {late.isoformat()}, not before {window.until.isoformat()}", row_id))
    return CheckResult("dates", _rows(release), tuple(faults))


def check_licences(release: Release) -> CheckResult:
    """See that every row's licence is one that the configuration lets through."""
    config, faults = release.config.licences, []

    @cache
    def refusal(license: str | None, matches: tuple[str, ...]) -> str | None:
        try:
            require_allowed(_as_method(license, matches), config)
        except DataError as error:
            return f"{error.reason}: {error.detail}" if error.detail else error.reason
        return None

    for name, table in release.testbeds.items():
        columns = (table[column].to_pylist() for column in ("row_id", "license", "license_matches"))
        for row_id, license, matches in zip(*columns, strict=True):
            if (why := refusal(license, tuple(matches))) is not None:
                faults.append(Fault(name, why, row_id))
    return CheckResult("licences", _rows(release), tuple(faults))


def _as_method(license: str | None, matches: tuple[str, ...]) -> Method:
    """Return a method of which nothing but the licence counts."""
    values: dict[str, Any] = {item.name: None for item in fields(Method)}
    return Method(**(values | {"license": license, "license_matches": matches}))


def check_classes(release: Release) -> CheckResult:
    """See that every row has a novelty class that the configuration lets through."""
    wanted, faults = release.config.features.novelty, []
    for name, table in release.testbeds.items():
        for row_id, novelty in zip(table["row_id"].to_pylist(), table["novelty"].to_pylist(), strict=True):
            if novelty not in wanted:
                faults.append(Fault(name, f"class {novelty}; wanted: {', '.join(wanted)}", row_id))
    return CheckResult("novelty", _rows(release), tuple(faults))


def check_features(release: Release) -> CheckResult:
    """Compute every feature of every distinct row again from its code and compare."""
    manifest, faults, looked_at, seen = release.manifest, [], 0, set[str]()
    left_out = set() if manifest.python_version == _python_version() else {"parses"}
    note = "" if not left_out else f"`parses` is the verdict of CPython {manifest.python_version}, which is another"
    for name, table in release.testbeds.items():
        for batch in table.to_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                if row["row_id"] in seen:
                    continue  # check `keys` compares it with `raw_data`
                seen.add(row["row_id"])
                looked_at += 1
                for column in _differences(row, left_out):
                    faults.append(Fault(name, f"{column} is not what its code gives", row["row_id"]))
    return CheckResult("features", looked_at, tuple(faults), note)


def _differences(row: Mapping[str, Any], left_out: set[str]) -> list[str]:
    try:
        expected = features_of(row["code"])
    except DataError as error:
        return [f"code ({error.reason})"]
    return [column for column, value in expected.items() if column not in left_out and row[column] != value]


def _python_version() -> str:
    from platform import python_version

    return python_version()


def check_splicing(release: Release) -> CheckResult:
    """See that what is given and what is asked for make up the function again, byte for byte, in every testbed."""
    faults, looked_at = [], 0
    for name, rule in RULES.items():
        table = release.tables.get(name)
        if table is None:
            continue
        looked_at += table.num_rows
        for row in from_table(table, {**ROW_TYPES, "real_code": RealCode}[name]):
            try:
                text = rule(row)
            except DataError as error:
                text = f"cannot be read: {error.reason} {error.detail}".rstrip()
            if text:
                faults.append(Fault(name, text, row.row_id))
    return CheckResult("splicing", looked_at, tuple(faults))


def _valid_docstring(row: DataPoint) -> str:
    return "" if is_valid_docstring(row.docstring) else "no docstring of more than 3 words"


def _random_cut(row: RandomCut) -> str:
    return _cut(row, code_without_docstring(row.code), "code without docstring")


def _with_docstring(row: WithDocString) -> str:
    return _valid_docstring(row) or _cut(row, row.code, "code")


def _cut(row: RandomCut | WithDocString, whole: str, name: str) -> str:
    if row.prefix + row.target != whole:
        return f"prefix + target is not {name}"
    if not row.target.strip():
        return "nothing is asked for"
    return "" if len(row.prefix.encode()) == row.cut_byte else "cut_byte is not the length of prefix"


def _from_docstring(row: FromDocString) -> str:
    if row.prompt_code + row.target != row.code:
        return "prompt_code + target is not code"
    bare = code_without_docstring(row.code)
    return _valid_docstring(row) or ("" if bare.endswith(row.target) else "the target holds some of the docstring")


def _commit_gen(row: CommitGen) -> str:
    shown = {line[1:].strip() for line in row.diff.splitlines() if line[:1] in ("+", " ")}
    lines = [line.strip() for line in row.code.splitlines() if line.strip()]
    return "" if any(line in shown for line in lines) else "the diff shows no line of the code"


def _summarization_gen(row: SummarizationGen) -> str:
    if row.target != row.docstring:
        return "target is not the docstring"
    if row.code_without_docstring != code_without_docstring(row.code):
        return "code_without_docstring is not code without its docstring"
    return _valid_docstring(row)


def _real_code(row: RealCode) -> str:
    left, body, right = (text.encode() for text in (row.left_context, row.canonical_solution, row.right_context))
    source = left + body + right
    spans = [span for span in find_methods(source, parse(source)) if span.start_byte <= len(left) < span.end_byte]
    for span in spans:
        cut = split_body(source, span.start_byte)
        if (cut.left, cut.body, cut.right) == (left, body, right):
            return "" if dedent(source, span) == row.code else "the function in the file is not code"
    return "left_context + canonical_solution + right_context is no file cut around a function's body"


RULES: dict[str, Callable[[Any], str]] = {
    "raw_data_docstring": _valid_docstring,
    "random_cut": _random_cut,
    "with_docstring": _with_docstring,
    "from_docstring": _from_docstring,
    "commit_gen": _commit_gen,
    "summarization_gen": _summarization_gen,
    "real_code": _real_code,
}


def _rows(release: Release) -> int:
    return sum(table.num_rows for table in release.testbeds.values())
