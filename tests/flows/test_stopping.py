"""The watch over Prefect's server: a run whose server dies ends at once, one that is over may lose its server."""

import subprocess
import sys
from pathlib import Path

from tests.flows.support import ROOT

WATCHED_RUN = """
import subprocess, sys, time
from pathlib import Path
from flows import stopping

home = Path(sys.argv[1])
server = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(60)", "prefect.server"],
    env={"PREFECT_HOME": str(home / ".prefect")},
)
stopping.arm(home)
while not stopping.servers_of(home / ".prefect"):
    time.sleep(0.01)
stopping.watch_server()
if sys.argv[2] == "over":
    stopping.end_watch()
server.kill()
server.wait()
time.sleep(float(sys.argv[3]))
"""


def watched_run(home: Path, state: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Start a stand-in for the server, watch it, kill it and go on for `seconds`."""
    return subprocess.run(
        [sys.executable, "-c", WATCHED_RUN, home, state, str(seconds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_run_ends_at_once_when_its_server_dies(tmp_path: Path) -> None:
    ended = watched_run(tmp_path.resolve(), "running", 50)
    assert (ended.returncode, ended.stderr) == (
        1,
        "\nError: Prefect's server ended in the middle of the run. What is finished is kept; run the same command "
        "again to go on. `--no-prefect` needs none.\n",
    )


def test_a_run_that_is_over_may_lose_its_server(tmp_path: Path) -> None:
    ended = watched_run(tmp_path.resolve(), "over", 2.5)  # the watch looks once a second
    assert (ended.returncode, ended.stderr) == (0, "")
