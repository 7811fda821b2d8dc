"""Every reason that the sources can give has a line in the glossary, and no line is left over."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dedup.copied import STAGE as OLD_STAGE
from dedup.evidence import EXACT_STAGE, NEAR_STAGE
from dedup.policies import STAGE as MATCH_STAGE
from dedup.references import STAGE as REFERENCES_STAGE
from features.compute import STAGE as FEATURES_STAGE
from flows.opting_out import STAGE as OPT_OUT_STAGE
from miners.commits import STAGE as COMMITS_STAGE
from miners.cutoff import STAGE as CUTOFF_STAGE
from miners.discovery import STAGE as DISCOVERY_STAGE
from publishing.glossary import REASONS, REASONS_BY_STAGE, STAGES, reason_meaning, stage_meaning, stage_name
from schemas.config import TESTBEDS
from schemas.records import Novelty

ROOT = Path(__file__).parents[2]
PACKAGES = ("miners", "features", "dedup", "sandbox", "testbeds", "flows")
REASON = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
# Strings at the place of a reason that are none: stages that Exclusions name as literals.
NO_REASONS = frozenset({"commits", "cutoff", "files", "index", "methods", "sources"})
# Reasons that are put together at run time, `novelty_` + class.
COMPOSED = frozenset(f"novelty_{name}" for name in Novelty if name is not Novelty.COPIED_OLD)


def strings(node: ast.AST) -> Iterator[str]:
    """The literals that an expression can be: a constant, or either arm of a conditional expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and REASON.fullmatch(node.value):
        yield node.value
    if isinstance(node, ast.IfExp):
        yield from strings(node.body)
        yield from strings(node.orelse)


def reasons_in(tree: ast.AST) -> Iterator[str]:
    """Reasons by where they stand: arguments of DataError, Exclusion and helpers of that name, variables called
    `reason`, and what a function called `..._reason` returns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in ("DataError", "Exclusion", "_exclusion", "_exclude_methods"):
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    yield from strings(argument)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(getattr(target, "id", getattr(target, "attr", "")) == "reason" for target in targets):
                yield from strings(node.value)
        elif isinstance(node, ast.FunctionDef) and re.search(r"(?:^|_)reason(?:_|$)", node.name):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield from strings(inner.value)


def all_reasons() -> set[str]:
    found: set[str] = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            found.update(reasons_in(ast.parse(path.read_text(encoding="utf-8"))))
    return found - NO_REASONS


def test_every_reason_of_the_sources_has_a_meaning() -> None:
    assert sorted((all_reasons() | COMPOSED) - set(REASONS)) == []


def test_no_meaning_is_left_over() -> None:
    assert sorted(set(REASONS) - all_reasons() - COMPOSED) == []


def test_the_collection_sees_every_way_in_which_a_reason_is_given() -> None:
    source = """
raise DataError("first", "some text of the detail")
Exclusion(row_id, "files", reason="second")
_exclusion(row, testbed, "third" if full else "fourth", f"{size} rows")
reason = "fifth" if link else "sixth"
self.reason: str = "seventh"
def message_reason(message): return "eighth" if message else None
def other(): return "ninth"
"""
    expected = ["eighth", "fifth", "files", "first", "fourth", "second", "seventh", "sixth", "third"]
    assert sorted(reasons_in(ast.parse(source))) == expected
    assert {"symlink", "message_merge", "repo_cap", "author_date_outside", "near_duplicate"} <= all_reasons()


def test_every_stage_has_a_meaning() -> None:
    mining = {COMMITS_STAGE, "sources", "files", "methods", "index", "history"}
    dedup = {OLD_STAGE, REFERENCES_STAGE, MATCH_STAGE, EXACT_STAGE, NEAR_STAGE}
    assert set(STAGES) == mining | dedup | {
        DISCOVERY_STAGE,
        OPT_OUT_STAGE,
        FEATURES_STAGE,
        CUTOFF_STAGE,
        "real_code",
        "testbed_*",
    }
    assert {stage_name(f"testbed_{name}") for name in TESTBEDS} == {"testbed_*"}
    assert stage_meaning("testbed_random_cut") == STAGES["testbed_*"]
    assert stage_meaning("commits") == STAGES["commits"]


def test_reasons_are_grouped_by_all_stages_in_their_order_and_each_stands_once() -> None:
    assert sorted(stage for stages in REASONS_BY_STAGE for stage in stages) == sorted(STAGES)
    order = [list(STAGES).index(stages[0]) for stages in REASONS_BY_STAGE]
    assert order == sorted(order)
    assert sum(len(reasons) for reasons in REASONS_BY_STAGE.values()) == len(REASONS)


def test_unknown_names_are_unexplained() -> None:
    assert (stage_meaning("x"), reason_meaning("x")) == ("unexplained", "unexplained")


@pytest.mark.parametrize("text", [*STAGES.values(), *REASONS.values()])
def test_meanings_are_one_line_that_fits_a_cell(text: str) -> None:
    assert text == " ".join(text.split())
    assert "|" not in text
    assert not text.endswith(".")
