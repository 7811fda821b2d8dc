"""Fresh processes share pytest, its plugins and what is imported from outside the tree, and nothing of the tree."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.baseline import Baseline, run_originals
from sandbox.environment import BuiltEnvironment
from sandbox.judging import Case, Judge
from sandbox.mocks import Mock
from sandbox.protocol import Bind
from sandbox.targets import read_function
from schemas.execution import MockKind, RealCodeConfig, Verdict
from tests.sandbox.environments import spec_for
from tests.sandbox.test_prove import prove_files, reasons, targets_of

CONFIG = RealCodeConfig(runs=1)


def confirm(
    built: BuiltEnvironment, folder: Path, files: Mapping[str, str], outside: Mapping[str, str]
) -> tuple[Baseline, list[Verdict]]:
    """Confirm m.f with its own body and with `pass` in its place, which forks must say the same of."""
    (folder / "outside").mkdir()
    for name, text in outside.items():
        (folder / "outside" / name).write_text(text)
    env = {**built.env, "PYTHONPATH": f"{built.env['PYTHONPATH']}:/w/outside"}
    built = replace(built, binds=(*built.binds, Bind(folder / "outside", "/w/outside")), env=env)
    function = read_function(files["m.py"].encode(), targets_of(files, "m.py")[0])
    bodies = (function.code.body.decode(), "    pass")
    with BubblewrapBackend().open(spec_for(built, folder / "source", files)) as session:
        baseline = run_originals(session, built, [function.key], CONFIG)
        judge = Judge(session, built, baseline, CONFIG)
        tests = tuple(baseline.covering(0))
        cases = [Case(n, function, (Mock(MockKind.PASS, body),), tests) for n, body in enumerate(bodies)]
        judged = judge.in_fresh(cases)
        warmed = judge.in_warmed(cases)
    assert [warmed[case.number].results for case in cases] == [judged[case.number].results for case in cases]
    return baseline, [judged[case.number].results[0].verdict for case in cases]


TEST = "import m\ndef test_f(): assert m.f() == 'test!'\n"


def test_modules_from_outside_the_tree_are_shared(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    files = {"m.py": "import other\ndef f():\n    return other.MODE + '!'\n", "test_m.py": TEST}
    baseline, verdicts = confirm(small_environment, tmp_path, files, {"other.py": "MODE = 'test'\n"})
    assert (baseline.early, "other" in baseline.imports, "m" in baseline.imports) == (False, True, False)
    assert not baseline.conftests
    assert verdicts == [Verdict.SURVIVED, Verdict.CAUGHT]


def test_module_that_must_not_be_imported_early_is_not_shared(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "conftest.py": "import os\nos.environ['MODE'] = 'test'\n",
        "m.py": "import other\ndef f():\n    return str(other.MODE) + '!'\n",
        "test_m.py": TEST,
    }
    outside = {"other.py": "import os\nMODE = os.environ.get('MODE')\n"}
    baseline, verdicts = confirm(small_environment, tmp_path, files, outside)
    assert (baseline.early, baseline.conftests) == (False, True)
    assert verdicts == [Verdict.SURVIVED, Verdict.CAUGHT]


def test_module_that_brings_the_tree_with_it_is_not_shared(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    files = {"m.py": "def f():\n    return 'test!'\n", "test_m.py": f"import other\n{TEST}"}
    outside = {"other.py": "import m\n"}
    baseline, verdicts = confirm(small_environment, tmp_path, files, outside)
    assert ("other" in baseline.imports, verdicts) == (True, [Verdict.SURVIVED, Verdict.CAUGHT])


def test_trees_own_plugin_is_loaded_by_every_process_itself(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "pytest.ini": "[pytest]\naddopts = -p m\n",
        "m.py": "def f():\n    return 'test!'\n",
        "test_m.py": TEST,
    }
    baseline, verdicts = confirm(small_environment, tmp_path, files, {})
    assert (baseline.early, verdicts) == (True, [Verdict.SURVIVED, Verdict.CAUGHT])


def test_modules_that_pytest_rewrites_are_shared_when_tests_load_them_while_they_run(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "conftest.py": "import pytest\npytest.register_assert_rewrite('late', 'soon')\n",
        "m.py": "def f():\n    return 'test!'\n",
        # What rewritten asserts explain themselves with shows that pytest has loaded it.
        "test_m.py": "import soon, m\ndef test_f():\n    import late\n"
        "    assert '@pytest_ar' in vars(late) and m.f() == 'test!'\n",
    }
    outside = {"late.py": "def check(n): assert n == 2\n", "soon.py": ""}
    baseline, verdicts = confirm(small_environment, tmp_path, files, outside)
    assert [[name in names for name in ("soon", "late")] for names in (baseline.imports, baseline.late)] == [
        [False, False],
        [False, True],
    ]
    assert verdicts == [Verdict.SURVIVED, Verdict.CAUGHT]


def test_runs_without_a_mock_are_taken_for_no_function(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    files = {
        "m.py": "import other\ndef early():\n    return other.ONE\nX = early()\ndef late():\n    return 2\n",
        "other.py": "ONE = 1\n",
        "test_m.py": "import wave, m\ndef test_early(): assert m.early() == 1\ndef test_late(): assert m.late() == 2\n",
    }
    proof = prove_files(small_environment, tmp_path, files, ["m.py"], CONFIG)
    assert [evidence.function.name for evidence in proof.evidence] == ["late"]
    assert reasons(proof) == {"early": "runs_at_import"}


def test_what_tests_import_late_is_there_in_forks_unless_they_look(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "m.py": "def f():\n    return 1\ndef g():\n    import wave\n    return wave.WAVE_FORMAT_PCM\n",
        "test_m.py": (
            "import sys, m\n"
            "def test_f(): assert 'wave' not in sys.modules and m.f() == 1\n"
            "def test_g(): assert m.g() == 1\n"
        ),
    }
    functions = [read_function(files["m.py"].encode(), target) for target in targets_of(files, "m.py")]
    with BubblewrapBackend().open(spec_for(small_environment, tmp_path, files)) as session:
        baseline = run_originals(session, small_environment, [one.key for one in functions], RealCodeConfig(runs=1))
        judge = Judge(session, small_environment, baseline, CONFIG)
        asked: list[tuple[str, ...]] = []
        in_forks = judge._in_forks
        judge._in_forks = lambda cases, imports: asked.append(imports) or in_forks(cases, imports)  # type: ignore[method-assign,assignment,return-value,func-returns-value]
        cases = [
            Case(n, one, (Mock(MockKind.PASS, "    pass"),), (f"test_m.py::test_{one.name}",))
            for n, one in enumerate(functions)
        ]
        judged = judge.in_warmed(cases)
    assert ("wave" in baseline.late, "wave" in baseline.imports) == (True, False)
    assert asked == [baseline.late, ()]
    assert [judged[n].results[0].verdict for n in (0, 1)] == [Verdict.CAUGHT, Verdict.CAUGHT]


def test_suite_runs_whole_once_and_then_what_enters_a_function(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "m.py": "def f():\n    return 1\ndef g():\n    return 2\n",
        "test_m.py": "import m\ndef test_n(): pass\ndef test_f(): assert m.f() == 1\ndef test_bad(): assert m.f() > 1",
    }
    keys = [read_function(files["m.py"].encode(), target).key for target in targets_of(files, "m.py")]
    with BubblewrapBackend().open(spec_for(small_environment, tmp_path, files)) as session:
        covered = run_originals(session, small_environment, keys[:1], CONFIG)
        nothing = run_originals(session, small_environment, keys[1:], CONFIG)
    assert [[id_.rpartition("_")[2] for id_ in report.main.collected] for report in covered.reports] == [
        ["n", "f", "bad"],
        ["f", "bad"],
    ]
    assert (covered.stable, covered.flaky) == ({"test_m.py::test_f"}, ())
    assert (len(nothing.reports), nothing.stable, nothing.entered) == (1, frozenset(), {})
