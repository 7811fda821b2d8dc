"""The benchmark of the proof: its table, and what it compares."""

from pathlib import Path

from bench.real_code import Result, judged_functions, report, targets_of
from sandbox.prove import Dropped, Proof
from sandbox.targets import Target
from schemas.execution import MockKind, MockResult, Verdict


def test_table_gives_functions_per_minute_and_the_ratio() -> None:
    results = [Result("a", 10, 8, 0.5, 3, 5.0, 9, 9), Result("b", 4, 4, 1.0, 3, 4.0, 6, 5)]
    assert [line.split() for line in report(results).splitlines()] == [
        ["repository", "functions", "proven", "ours/min", "theirs/min", "ratio", "equal"],
        ["a", "10", "8", "120.0", "12.00", "10.0", "9/9"],
        ["b", "4", "4", "60.0", "15.00", "4.0", "5/6"],
        ["functions", "per", "minute", "of", "processor", "time:", "median", "ratio", "7.0"],
        ["lowest", "4.0;", "verdicts", "equal:", "14/15"],
    ]


def test_functions_of_tests_and_documentation_are_no_input(tmp_path: Path) -> None:
    for name in ("src/a.py", "tests/test_a.py", "docs/conf.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("def f():\n    return 1\n")
    files, targets = targets_of(tmp_path)
    assert files == {"src/a.py": b"def f():\n    return 1\n"}
    assert targets == [Target("src/a.py:0", "src/a.py", "f", 0)]


def test_functions_whose_mocks_were_not_run_are_not_compared() -> None:
    target, other = Target("1", "a.py", "f", 0), Target("2", "a.py", "g", 20)
    mock = MockResult(MockKind.PASS, "pass", Verdict.SURVIVED, ())
    dropped = (Dropped(target, "mock_survived", "", ("t",), (mock,)), Dropped(other, "not_covered", ""))
    assert judged_functions(Proof((), dropped, (), (), 4, 1.0)) == {"1": (("t",), (mock,))}
