"""Proof by execution on planted repositories, in a real sandbox."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from miners.methods import scan
from miners.syntax import parse
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.baseline import run_originals
from sandbox.environment import BuiltEnvironment
from sandbox.judging import Case, Judge
from sandbox.mocks import mocks_of
from sandbox.prove import Proof, prove
from sandbox.targets import Target, read_function
from schemas.errors import DataError
from schemas.execution import MockKind, RealCodeConfig, Verdict
from tests.sandbox.environments import spec_for
from tests.sandbox.planted import DANGERS, HOSTILE, WEAK

CONFIG = RealCodeConfig(memory_mib=512, pids=64, disk_mib=64, suite_seconds=60)


def targets_of(files: Mapping[str, str], path: str) -> list[Target]:
    source = files[path].encode()
    return [Target(span.fun_name, path, span.fun_name, span.start_byte) for span in scan(source, parse(source), {})]


def prove_files(
    built: BuiltEnvironment, folder: Path, files: Mapping[str, str], paths: list[str], config: RealCodeConfig = CONFIG
) -> Proof:
    spec = spec_for(built, folder, files)
    sources = {path: files[path].encode() for path in paths}
    targets = [target for path in paths for target in targets_of(files, path)]
    return prove(BubblewrapBackend(), spec, built, sources, targets, config)


def reasons(proof: Proof) -> dict[str, str]:
    return {dropped.target.fun_name: dropped.reason for dropped in proof.dropped}


@pytest.fixture(scope="module")
def proof(small_environment: BuiltEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Proof:
    first = subprocess.run(
        [sys.executable, "-c", "print(next(iter({'alpha', 'beta', 'gamma', 'delta'})))"],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    files = {**WEAK, "test_shop.py": WEAK["test_shop.py"].replace("FIRST", first)}
    return prove_files(small_environment, tmp_path_factory.mktemp("weak"), files, ["shop.py"])


class TestWeakAndFlakyTests:
    def test_only_what_tests_assert_is_proven(self, proof: Proof) -> None:
        found = {evidence.function.target.fun_name for evidence in proof.evidence}
        # Two that depend on this machine's speed and on chance are looked at below.
        assert found - {"slow", "rolled"} == {"good", "names", "partly_flaky", "in_set_up"}

    def test_everything_else_has_its_reason(self, proof: Proof) -> None:
        found = reasons(proof)
        assert found.pop("rolled") in ("only_flaky_tests", "not_covered")
        found.pop("slow", None)
        assert found == {
            "unasserted": "mock_survived",
            "falsy": "mock_survived",
            "step": "mock_timeout",
            "ordered": "only_flaky_tests",
            "hashed": "only_flaky_tests",
            "timed": "only_flaky_tests",
            "forged": "mock_survived",
            "uncovered": "not_covered",
            "failing": "not_covered",
            "in_teardown": "not_covered",
            "teardown_only": "mock_survived",
            "skipping": "mock_survived",
            "exits": "mock_infrastructure",
        }

    def test_evidence_names_the_tests_that_fail_with_every_mock(self, proof: Proof) -> None:
        good = next(evidence for evidence in proof.evidence if evidence.function.name == "good")
        assert good.pass_to_pass == (
            "test_shop.py::test_good",
            "test_shop.py::test_good_in_passing",
            "test_shop.py::test_good_too",
        )
        assert good.fail_to_pass == ("test_shop.py::test_good", "test_shop.py::test_good_too")
        assert [(mock.kind, mock.verdict, mock.failing_tests) for mock in good.mocks] == [
            (MockKind.PASS, Verdict.CAUGHT, ("test_shop.py::test_good", "test_shop.py::test_good_too")),
            (MockKind.TYPED, Verdict.CAUGHT, ("test_shop.py::test_good", "test_shop.py::test_good_too")),
            (MockKind.RAISE, Verdict.CAUGHT, good.pass_to_pass),
        ]
        assert [mock.body for mock in good.mocks] == [
            "    pass",
            "    return 0",
            '    raise NotImplementedError("mock")',
        ]

    def test_ids_with_spaces_brackets_colons_and_unicode_are_kept(self, proof: Proof) -> None:
        names = next(evidence for evidence in proof.evidence if evidence.function.name == "names")
        assert names.fail_to_pass == tuple(
            f"test_shop.py::test_names[{text}]" for text in ("a b", "a::b", "caf\\xe9", "x[1]")
        )

    def test_flaky_tests_are_named_and_not_used(self, proof: Proof) -> None:
        assert {
            "test_shop.py::test_ordered_first",
            "test_shop.py::test_hashed",
            "test_shop.py::test_partly_flaky",
        } < set(proof.flaky)
        partly = next(evidence for evidence in proof.evidence if evidence.function.name == "partly_flaky")
        assert partly.pass_to_pass == partly.fail_to_pass == ("test_shop.py::test_partly_stable",)
        assert partly.flaky_tests == ("test_shop.py::test_partly_flaky",)

    def test_throttled_run_finds_what_depends_on_speed(self, proof: Proof) -> None:
        if "cpu" not in BubblewrapBackend().probe().enforced:
            pytest.skip("nothing limits the processor here")
        assert "slow" not in {evidence.function.name for evidence in proof.evidence}
        assert "test_shop.py::test_slow" not in {id_ for e in proof.evidence for id_ in e.pass_to_pass}

    def test_what_runs_outside_tests_alone_is_not_covered(self, proof: Proof) -> None:
        details = {dropped.target.fun_name: dropped.detail for dropped in proof.dropped}
        assert details["failing"] == "none of the 1 tests that enter it passes"
        assert details["uncovered"] == "no test enters it"


def test_every_run_has_its_temporary_files_at_the_same_place(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    test = """
import m, pathlib, tempfile
def test_f(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir()
    (locked / "file").touch()
    locked.chmod(0)
    first = pathlib.Path(__file__).with_name("first.txt")
    if not first.exists():
        first.write_text(tempfile.gettempdir())
    assert first.read_text() == tempfile.gettempdir()
    assert m.f(1) == 2
"""
    files = {"m.py": "def f(n):\n    return n + 1\n", "test_m.py": test}
    proof = prove_files(small_environment, tmp_path, files, ["m.py"])
    assert [found.function.name for found in proof.evidence] == ["f"]


def test_mocks_in_a_warmed_process_say_what_mocks_on_disk_say(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    spec = spec_for(small_environment, tmp_path, DANGERS)
    targets = [t for path in ("lib/core.py", "lib/late.py", "lib/reloading.py") for t in targets_of(DANGERS, path)]
    functions = [read_function(DANGERS[target.path].encode(), target) for target in targets]
    with BubblewrapBackend().open(spec) as session:
        baseline = run_originals(session, small_environment, [f.key for f in functions], CONFIG)
        judge = Judge(session, small_environment, baseline, CONFIG)
        cases = [
            Case(number, function, mocks_of(function), tuple(baseline.covering(number)))
            for number, function in enumerate(functions)
            if baseline.covering(number)
        ]
        warmed = judge.in_warmed(cases)
        fresh = judge.in_fresh(cases)
        left = {path: session.read(f"/w/src/{path}", 100_000) for path in DANGERS}
    names = [functions[case.number].target.fun_name for case in cases]
    assert {function.target.fun_name for function in functions} - set(names) == {
        "register", "wrapping", "_serve", "make_adder"
    }  # fmt: skip
    assert baseline.stable == frozenset(baseline.order)
    assert left == {path: text.encode() for path, text in DANGERS.items()}
    # The thread that answers does not exist in a fork: the test alone tells.
    assert [name for name, case in zip(names, cases, strict=True) if warmed[case.number].unfit] == ["asked"]
    differing = {
        name
        for name, case in zip(names, cases, strict=True)
        if case.number not in baseline.at_import
        and name != "asked"
        and [(r.verdict, r.failing_tests) for r in warmed[case.number].results]
        != [(r.verdict, r.failing_tests) for r in fresh[case.number].results]
    }
    assert differing == set()
    caught = {
        name
        for name, case in zip(names, cases, strict=True)
        if fresh[case.number].results[-1].verdict is Verdict.CAUGHT
    }
    assert set(names) - caught == {"at_import"}


def test_what_a_warmed_process_cannot_judge_is_judged_by_fresh_ones(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    spec = spec_for(small_environment, tmp_path, DANGERS)
    targets = [t for t in targets_of(DANGERS, "lib/core.py") if t.fun_name in ("asked", "at_import", "make_adder")]
    proof = prove(
        BubblewrapBackend(), spec, small_environment, {"lib/core.py": DANGERS["lib/core.py"].encode()}, targets, CONFIG
    )
    assert reasons(proof) == {"make_adder": "runs_at_import", "at_import": "runs_at_import"}
    assert [evidence.fail_to_pass for evidence in proof.evidence] == [("tests/test_core.py::test_asked",)]


def test_evil_tests_hurt_nobody_but_themselves(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    os.environ["POSTQUEM_TEST_SECRET"] = "secret"
    started = time.monotonic()
    try:
        config = replace(CONFIG, suite_seconds=15)
        proof = prove_files(small_environment, tmp_path, HOSTILE, ["evil.py"], config)
    finally:
        del os.environ["POSTQUEM_TEST_SECRET"]
    assert {evidence.function.name for evidence in proof.evidence} == {"good", "outlive", "environment"}
    assert {name: reason for name, reason in reasons(proof).items() if reason != "not_covered"} == {}
    assert set(reasons(proof)) == {"bomb", "fill", "hog", "loop", "call", "outside"}
    assert not Path("/usr/written").exists()
    assert {path: (tmp_path / path).read_text() for path in HOSTILE} == HOSTILE
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(HOSTILE)
    assert time.monotonic() - started < 300


def test_two_proofs_are_equal(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    files = {
        "m.py": "def f(n: int) -> int:\n    return n + 1\n",
        "test_m.py": "import m\ndef test_f(): assert m.f(1) == 2\n",
    }
    first, second = (prove_files(small_environment, tmp_path, files, ["m.py"]) for _ in range(2))
    assert replace(first, cpu_seconds=0) == replace(second, cpu_seconds=0)


# A test that fails with every mock and leaves something; one that fails behind that, and by itself with `raise` only;
# and one that never fails by itself.
LEAVING = "def test_{}():\n    left.append(1)\n    assert m.{}(1) == 2\n    left.clear()\n"
BEHIND = "def test_{}():\n    m.{}(1)\n    assert not left\n"
BEHIND_WITH_EACH = "def test_{}():\n    with suppress(Exception):\n        m.{}(1)\n    assert not left\n"
HEAD = "from contextlib import suppress\nimport m\nleft = []\n"


def test_what_fails_only_behind_what_another_test_left_is_none_of_the_failing_tests(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "m.py": "def f(n: int) -> int:\n    return n + 1\n",
        "test_m.py": HEAD + LEAVING.format("f", "f") + BEHIND.format("behind", "f"),
    }
    [evidence] = prove_files(small_environment, tmp_path, files, ["m.py"]).evidence
    assert evidence.pass_to_pass == ("test_m.py::test_behind", "test_m.py::test_f")
    assert evidence.fail_to_pass == ("test_m.py::test_f",)
    assert [(mock.kind, mock.failing_tests) for mock in evidence.mocks] == [
        (MockKind.PASS, evidence.fail_to_pass),
        (MockKind.TYPED, evidence.fail_to_pass),
        (MockKind.RAISE, evidence.pass_to_pass),
    ]


@pytest.mark.parametrize(("place", "returns"), [(0, ""), (2, ""), (2, " -> int"), (8, "")])
def test_of_a_short_list_every_test_fails_by_itself(
    small_environment: BuiltEnvironment, tmp_path: Path, place: int, returns: str
) -> None:
    tests = [LEAVING.format(number, "f") for number in range(9)]
    tests[place] = BEHIND_WITH_EACH.format(place, "f")
    files = {"m.py": f"def f(n){returns}:\n    return n + 1\n", "test_m.py": HEAD + "".join(tests)}
    [evidence] = prove_files(small_environment, tmp_path, files, ["m.py"]).evidence
    assert evidence.fail_to_pass == tuple(f"test_m.py::test_{number}" for number in range(9) if number != place)
    assert {mock.failing_tests for mock in evidence.mocks[:-1]} == {evidence.fail_to_pass}


@pytest.mark.parametrize("at_import", ["", "with suppress(NotImplementedError):\n    f(1)\n"])
def test_exception_that_reaches_no_test_proves_nothing_behind_what_others_left(
    small_environment: BuiltEnvironment, tmp_path: Path, at_import: str
) -> None:
    files = {
        # As in a finalizer: what it raises is caught, and leaves something that a second test would not find by itself.
        "m.py": "from contextlib import suppress\ncaught = []\ndef f(n):\n    return n + 1\n"
        "def g(n):\n    try:\n        return f(n)\n    except NotImplementedError:\n"
        "        caught.append(n)\n        return n + 1\n" + at_import,
        "test_m.py": "import m\nfrom m import g\ndef test_before(): assert g(1) in (2, None)\n"
        "def test_f(): assert g(1) == 2 and len(m.caught) < 2\n",
    }
    proof = prove_files(small_environment, tmp_path, files, ["m.py"])
    assert [one.function.name for one in proof.evidence] == ["g"]
    assert [(one.reason, one.detail) for one in proof.dropped] == [("mock_survived", "raise")]


def test_where_one_of_a_long_list_fails_behind_others_only_every_test_meets_the_mocks_by_itself(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    behind = {"f": (12, 13), "g": (2, 3)}
    tests = [
        (BEHIND_WITH_EACH if name == "f" else BEHIND).format(f"{name}_{number:02}", name)
        if number in behind[name] else LEAVING.format(f"{name}_{number:02}", name)
        for name in behind for number in range(25)
    ]  # fmt: skip
    files = {
        "m.py": "def f(n: int) -> int:\n    return n + 1\ndef g(n):\n    return n + 1\n",
        "test_m.py": HEAD + "".join(tests),
    }
    proof = prove_files(small_environment, tmp_path, files, ["m.py"])
    assert {one.function.name: one.fail_to_pass for one in proof.evidence} == {
        name: tuple(f"test_m.py::test_{name}_{number:02}" for number in range(25) if number not in places)
        for name, places in behind.items()
    }


def test_what_does_not_fail_with_every_mock_is_not_run_again_by_itself(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "m.py": "def f(n: int) -> int:\n    return n + 1\n",
        # b stands behind a and fails, but only with the typed mock.
        "test_m.py": HEAD
        + LEAVING.format("a", "f")
        + "def test_b():\n    with suppress(NotImplementedError):\n        assert m.f(1) != 0\n",
    }
    [evidence] = prove_files(small_environment, tmp_path, files, ["m.py"]).evidence
    assert [(mock.kind, mock.failing_tests) for mock in evidence.mocks] == [
        (kind, ("test_m.py::test_a",)) for kind in MockKind
    ]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"test_a.py": "x = 1\n"}, "no_tests"),
        ({"test_a.py": "import nowhere\ndef test_a(): pass\n"}, "collection_error"),
        ({"test_a.py": "def test_a(): assert 0\n"}, "all_tests_fail"),
        (
            {"test_a.py": "import socket\ndef test_a(): socket.create_connection(('example.org', 80))\n"},
            "needs_network",
        ),
        ({"test_a.py": "import os\ndef test_a(): os.environ['SERVICE_API_KEY']\n"}, "needs_env_secret"),
        ({"test_a.py": "import socket\ndef test_a(): socket.create_connection(('127.0.0.1', 9))\n"}, "needs_service"),
        ({"test_a.py": "import m, time\ndef test_a(): assert m.f() and time.tzname[0] == 'UTC'\n"}, "suite_flaky"),
    ],
)
def test_repository_that_cannot_be_judged_has_a_reason(
    small_environment: BuiltEnvironment, tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    with pytest.raises(DataError) as caught:
        prove_files(small_environment, tmp_path, {"m.py": "def f():\n    return 1\n", **files}, ["m.py"])
    assert caught.value.reason == reason


def test_file_that_needs_what_another_has_imported_spoils_no_others(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    files = {
        "m.py": "def f(n):\n    return n + 1\n\ndef g(n):\n    return n + 2\n",
        # No function of the tree is entered by its tests, so that it is left out from the second run on.
        "test_a.py": "import first\ndef test_a(): assert first\n",
        "test_b.py": "import second, m\ndef test_b(): assert m.f(1) == 2 and m.g(1) == 3\n",
        "test_c.py": "import m\ndef test_c(): assert m.f(1) == 2\n",
        "first.py": "from second import B\nA = 1\n",
        "second.py": "import sys\nif 'first' not in sys.modules:\n    raise ImportError('a circle')\nB = 1\n",
    }
    proof = prove_files(small_environment, tmp_path, files, ["m.py"])
    assert [(found.function.name, found.pass_to_pass) for found in proof.evidence] == [("f", ("test_c.py::test_c",))]
    assert reasons(proof) == {"g": "only_flaky_tests"}
    assert proof.flaky == ("test_b.py::test_b",)


def test_what_went_wrong_in_the_worst_run_is_told(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    test = "import m, os\nif os.environ['TZ'] != 'UTC':\n    raise OSError('elsewhere')\ndef test_a(): assert m.f()\n"
    with pytest.raises(DataError) as caught:
        prove_files(small_environment, tmp_path, {"m.py": "def f():\n    return 1\n", "test_a.py": test}, ["m.py"])
    assert caught.value.reason == "suite_flaky"
    assert caught.value.detail.startswith(
        "none of the 1 tests that enter a function passes in every run; in run 2 of 4 1 "
    )
    assert "test_a.py" in caught.value.detail
    assert "elsewhere" in caught.value.detail


def test_what_pytest_runs_on_is_not_judged_by_pytest(small_environment: BuiltEnvironment, tmp_path: Path) -> None:
    files = {
        "pluggy/__init__.py": "def f():\n    return 1\n",
        "test_a.py": "def test_a(): pass\n",
    }
    with pytest.raises(DataError, match="runner_self_hosted: pytest runs on pluggy"):
        prove_files(small_environment, tmp_path, files, ["pluggy/__init__.py"])
