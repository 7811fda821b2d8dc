"""A proof that is killed by signal 9 at every one of its stages, and then made again."""

import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from sandbox.environment import BuiltEnvironment
from schemas.execution import MockKind, Verdict
from tests.sandbox.backends.test_leftovers import wait_until_gone
from tests.sandbox.test_prove import prove_files

# The test takes so long that a run is seen before it is over.
SOURCE = "killed.py"
FILES = {
    SOURCE: "def f(n: int) -> int:\n    return n + 1\n",
    "test_it.py": "import time, killed\n\ndef test_f():\n    time.sleep(0.4)\n    assert killed.f(1) == 2\n",
}
OWNER = """
import pickle, sys
from pathlib import Path
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.prove import prove
from tests.sandbox.environments import spec_for
from tests.sandbox.test_prove import CONFIG, targets_of
built, folder, files, name = pickle.loads(Path(sys.argv[1]).read_bytes())
def tell(stage, done, total):
    print(stage, done, flush=True)
spec = spec_for(built, folder, files)
prove(BubblewrapBackend(), spec, built, {name: files[name].encode()}, targets_of(files, name), CONFIG, tell)
"""
ROOT = Path(__file__).resolve().parents[2]


def seen(*, mocked: bool) -> bool:
    """Tell whether some process works in a tree with our file, or in one where it is not the original."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            text = (process / "cwd" / SOURCE).read_text(encoding="utf-8")
            if not mocked or text != FILES[SOURCE]:
                return True
    return False


def kill_at(stage: str, given: Path) -> int:
    """Start a proof and kill it while a stage runs tests, the last one with a mock on disk; return its number."""
    command = (sys.executable, "-c", OWNER, str(given))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout
        assert f"{stage} 0\n" in iter(process.stdout.readline, ""), f"it never came to {stage}"
        deadline = time.monotonic() + 60
        while not seen(mocked=stage == "confirm") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert time.monotonic() < deadline, f"no process was seen in {stage}"
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
    assert process.returncode == -signal.SIGKILL
    assert rest == "", f"{stage} was over before the signal came"
    return process.pid


def test_nothing_is_left_of_a_killed_proof_and_the_next_says_the_same(
    small_environment: BuiltEnvironment, tmp_path: Path
) -> None:
    tree, given = tmp_path / "tree", tmp_path / "given"
    given.write_bytes(pickle.dumps((small_environment, tree, FILES, SOURCE)))
    for stage in ("originals", "mocks", "confirm"):
        process = kill_at(stage, given)
        assert wait_until_gone(process) == [], stage
        assert {path.relative_to(tree).as_posix(): path.read_text() for path in tree.rglob("*")} == FILES, stage
    again = prove_files(small_environment, tree, FILES, [SOURCE])
    [found] = again.evidence
    assert (found.pass_to_pass, found.fail_to_pass, again.dropped) == (
        ("test_it.py::test_f",),
        ("test_it.py::test_f",),
        (),
    )
    assert [(mock.kind, mock.verdict) for mock in found.mocks] == [(kind, Verdict.CAUGHT) for kind in MockKind]
