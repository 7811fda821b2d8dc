"""Answers judged in a real sandbox: what passes, what fails and why, and what nothing can be said about."""

import shutil
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.environment import BuiltEnvironment
from schemas.errors import DataError
from schemas.execution import RealCode, RealCodeConfig
from schemas.scores import AnswerVerdict
from scoring.real_code import Bodies, judge_repository, with_body
from scoring.verdicts import PASSED, Ruling
from tests.scoring.tasks import make_task

PATH = "shop/prices.py"
SOURCE = b'''"""Prices."""


def total(prices):
    """Add prices up."""
    result = 0
    for price in prices:
        result += price
    return result


def label(price):
    return f"{price:.2f}"
'''
TESTS = """
import os, pytest
from shop.prices import label, total

@pytest.mark.parametrize("prices", [[], [1, 2]], ids=["no [prices]", "zwei Preise"])
def test_total(prices):
    assert total(prices) == sum(prices)

def test_label():
    assert label(2) == "2.00"

def test_broken_here():
    assert os.environ.get("SECRET")

def test_leaves_nothing():
    assert not os.path.exists("left-over")
"""
TOTAL = ("tests/test_prices.py::test_total[no [prices]]", "tests/test_prices.py::test_total[zwei Preise]")
FAILED, UNSCORED = AnswerVerdict.FAILED, AnswerVerdict.UNSCORED


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    for path, content in {PATH: SOURCE, "shop/__init__.py": b"", "tests/test_prices.py": TESTS.encode()}.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def judge(environment: BuiltEnvironment, tree: Path, wanted: list[Bodies]) -> dict[tuple[str, str], Ruling]:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    found: dict[tuple[str, str], Ruling] = {}

    def note(task: RealCode, body: str, ruling: Ruling) -> None:
        found[task.fun_name, body] = ruling

    judge_repository(BubblewrapBackend(), environment, tree, wanted, RealCodeConfig(), note)
    return found


def test_answers_are_told_apart_and_never_see_one_another(environment: BuiltEnvironment, tree: Path) -> None:
    task = make_task(SOURCE, PATH, "total", TOTAL, environment.environment)
    tidy = make_task(SOURCE, PATH, "label", ["tests/test_prices.py::test_leaves_nothing"], environment.environment)
    loop = "    while True:\n        pass"
    litter = "    open('left-over', 'w').write('x')\n    return sum(prices)"
    expected = {
        task.canonical_solution: PASSED,
        "    pass": Ruling(FAILED, "test_failed", f"{TOTAL[0]}: AssertionError: assert None == 0"),
        "    return 0": Ruling(FAILED, "test_failed", f"{TOTAL[1]}: AssertionError: assert 0 == 3"),
        "": Ruling(FAILED, "test_failed", f"{TOTAL[0]}: AssertionError: assert None == 0"),
        "    return (": Ruling(FAILED, "import_failed", "tests/test_prices.py: SyntaxError: '(' was never closed"),
        "    import os\n    os._exit(0)": Ruling(FAILED, "crashed", "pytest did not come to its end"),
        "    import pytest\n    pytest.skip()": Ruling(FAILED, "test_skipped", TOTAL[0]),
        loop: Ruling(AnswerVerdict.TIMEOUT, "timeout", TOTAL[0]),
        litter: PASSED,
    }
    wanted = [Bodies(task, tuple(expected)), Bodies(tidy, ("    return ''",))]
    found = judge(environment, tree, wanted)
    assert found[("label", "    return ''")] == PASSED
    assert {body: ruling for (name, body), ruling in found.items() if name == "total"} == expected
    assert (tree / PATH).read_bytes() == SOURCE


def test_nothing_is_said_when_the_tests_fail_with_the_canonical_solution(
    environment: BuiltEnvironment, tree: Path
) -> None:
    tests = ["tests/test_prices.py::test_broken_here", "tests/test_prices.py::test_label"]
    broken = make_task(SOURCE, PATH, "label", tests, environment.environment)
    gone = make_task(SOURCE, PATH, "total", ["tests/test_prices.py::test_gone"], environment.environment)
    found = judge(environment, tree, [Bodies(broken, ("    pass", "    return 1")), Bodies(gone, ("    pass",))])
    why = f"with the canonical solution: test_failed: {tests[0]}: AssertionError: assert None"
    assert found == {
        ("label", "    pass"): Ruling(UNSCORED, "control_failed", why),
        ("label", "    return 1"): Ruling(UNSCORED, "control_failed", why),
        ("total", "    pass"): Ruling(
            UNSCORED,
            "control_failed",
            "with the canonical solution: crashed: no report of tests/test_prices.py::test_gone",
        ),
    }


def test_tree_that_is_not_the_tasks_is_not_scored(environment: BuiltEnvironment, tree: Path) -> None:
    other = make_task(SOURCE.replace(b"result", b"outcome"), PATH, "total", TOTAL, environment.environment)
    found = judge(environment, tree, [Bodies(other, ("    pass",))])
    assert found == {
        ("total", "    pass"): Ruling(UNSCORED, "other_tree", f"{PATH} is not the file that the task was made from")
    }


def test_body_is_written_in_the_encoding_of_its_file(environment: BuiltEnvironment) -> None:
    latin = "# -*- coding: latin-1 -*-\ndef f():\n    return 'é'\n"
    task = make_task(latin.encode(), "a.py", "f", ["t"], environment.environment)
    assert with_body(latin.encode("latin-1"), task, "    return 'ö'") == latin.replace("é", "ö").encode("latin-1")
    with pytest.raises(UnicodeEncodeError):
        with_body(latin.encode("latin-1"), task, "    return 'ж'")
    marked = b"\xef\xbb\xbfdef f():\r\n    return 1\r\n"
    for source in (marked, marked[3:]):  # the mark may stand in the row or not
        task = make_task(source, "a.py", "f", ["t"], environment.environment)
        assert with_body(marked, task, "    return 2") == b"\xef\xbb\xbfdef f():\r\n    return 2\r\n"
    with pytest.raises(DataError, match="other_tree"):
        with_body(marked + b"\r\n", task, "    return 2")
