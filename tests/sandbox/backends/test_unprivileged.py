"""bubblewrap as a user without privileges: the way most people run it. Only root can try both."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.backends.conftest import why_no_bubblewrap

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65_534
SCRIPT = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sandbox.backends import open_backend
from sandbox.protocol import Bind, Limits, SandboxSpec
from schemas.execution import RealCodeConfig
home = Path(sys.argv[2])
tree, cache = home / "tree", home / "cache"
tree.mkdir(); cache.mkdir(); (tree / "a.txt").write_text("original"); (tree / "gone").mkdir(); (tree / "gone/b").touch()
spec = SandboxSpec(
    source=tree, binds=(Bind(cache, "/w/cache", writable=True),), env={"PATH": "/usr/bin:/bin"},
    limits=Limits(wall_seconds=20, pids=20, memory_bytes=64 << 20, disk_bytes=4 << 20),
)
told = {"user": os.getuid()}
with open_backend(RealCodeConfig()).open(spec) as session:
    def sh(script):
        result = session.exec(("sh", "-c", script))
        return [result.returncode, result.stdout.decode()]
    told["inside"] = sh("id -un; echo changed > a.txt; rm -r gone; mkdir gone; ls gone; cat a.txt; echo x > /w/cache/x")
    told["bomb"] = sh("for n in $(seq 30); do sleep 9 & done; echo all")
    told["disk"] = sh("head -c 8M /dev/zero > b.txt")[0]
    told["host"] = sh("cat %s/tree/a.txt /etc/shadow" % home)
    session.reset()
    told["reset"] = sh("cat a.txt; ls gone")
told["original"] = (tree / "a.txt").read_text()
told["cache"] = [(path.name, path.stat().st_uid) for path in cache.iterdir()]
print(json.dumps(told))
"""


@pytest.fixture
def nobody() -> Iterator[tuple[Path, Path]]:
    """Return a folder of the user's own and an interpreter that may be run by anyone."""
    if os.getuid() != 0:
        pytest.skip("the other tests run as such a user already")
    if why := why_no_bubblewrap():
        pytest.skip(why)
    new_enough = "import sys; sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if (
                subprocess.run((python, "-c", new_enough), check=False, user=NOBODY, capture_output=True).returncode
                == 0
            ):
                break
        except OSError:
            continue
    else:
        pytest.skip("no interpreter that another user may run")
    folder = Path(tempfile.mkdtemp(prefix="postquem-nobody-"))
    os.chown(folder, NOBODY, NOBODY)
    yield folder, Path(python)
    shutil.rmtree(folder)


def test_a_user_without_privileges_gets_the_same_sandbox(nobody: tuple[Path, Path]) -> None:
    home, python = nobody
    code = home / "code"
    for package in ("sandbox", "schemas"):
        shutil.copytree(ROOT / package, code / package, ignore=shutil.ignore_patterns("__pycache__"))
    result = subprocess.run(
        (python, "-c", SCRIPT, code, home), user=NOBODY, group=NOBODY, extra_groups=(), cwd="/", check=False,
        capture_output=True, text=True, env={"PATH": os.environ["PATH"], "TMPDIR": str(home)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "user": NOBODY, "inside": [0, "user\nchanged\n"], "bomb": [2, ""], "disk": 1, "host": [1, ""],
        "reset": [0, "originalb\n"], "original": "original", "cache": [["x", NOBODY]],
    }  # fmt: skip
    assert [path.name for path in home.iterdir() if path.name.startswith("postquem-sandbox-")] == []
