"""A Dask cluster on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from distributed import Client

from tests.flows.support import ROOT

DASK = Path(sys.executable).parent / "dask"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A scheduler and its workers on this machine."""

    address: str
    workers: list[subprocess.Popen[bytes]]


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / "dask.log").open("ab") as log:
        return subprocess.Popen(
            [DASK, *arguments, "--scheduler-file", folder / "scheduler.json", "--no-dashboard"],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Start a scheduler and two workers that write into a folder; end them at the end."""
    with ExitStack() as processes:
        scheduler = start(folder, "scheduler", "--host", "127.0.0.1", "--port", "0")
        processes.callback(_end, scheduler)
        place = folder / "scheduler.json"
        deadline = time.monotonic() + 120
        while not place.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        address = json.loads(place.read_text())["address"]
        workers = []
        for name in ("a", "b"):
            workers.append(start(folder, "worker", "--nthreads", "1", "--no-nanny", "--name", name))
            processes.callback(_end, workers[-1])
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield Cluster(address, workers)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
