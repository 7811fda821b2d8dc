"""Ctrl-C, SIGTERM and a dying Prefect server: stop at once, say how to go on, leave no process behind.

A hard exit is safe here: every file is written under a temporary name and renamed, so that a stop is no worse than
the `kill -9` that a run survives anyway. Waiting instead would mean waiting for workers and for Prefect's client, which
retries for minutes against a server that got the same signal.
"""

import multiprocessing
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it
EXIT_TERMINATED = 143  # 128 + SIGTERM
_WATCH_SECONDS = 1.0
GO_ON = "What is finished is kept; run the same command again to go on."

_armed: list[Path] = []
_over = threading.Event()


def arm(workspace: Path) -> None:
    """Stop hard on SIGINT and SIGTERM from now on; `workspace` tells which Prefect server is ours."""
    _armed[:] = [workspace.resolve() / ".prefect"]
    # Python's resource tracker, a process of its own, frees the pool's semaphores after a hard exit; nobody need know.
    sys.warnoptions.append("ignore::UserWarning:multiprocessing.resource_tracker")
    install()


def install() -> None:
    """Set the handlers again if `arm` was called: Prefect puts its own SIGTERM handler in while a flow runs."""
    if _armed and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _on_signal)
        signal.signal(signal.SIGTERM, _on_signal)


def watch_server() -> None:
    """Stop the run when its own ephemeral Prefect server dies; without one, tasks would wait for it for minutes."""
    if _armed and "PREFECT_API_URL" not in os.environ and servers_of(_armed[0]):
        _over.clear()
        threading.Thread(target=_watch, args=(_armed[0],), daemon=True).start()


def end_watch() -> None:
    """Let the server end: the run is over, and Prefect stops its server while this process exits."""
    _over.set()


def servers_of(home: Path) -> list[int]:
    """Return the process ids of Prefect servers whose PREFECT_HOME is `home` (found through /proc: Linux only)."""
    marker = f"PREFECT_HOME={home}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue  # another user's process, or one that has just ended
        if marker in environment and b"prefect.server" in command and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def end_servers(home: Path) -> None:
    """End the Prefect servers whose PREFECT_HOME is `home`."""
    for pid in servers_of(home):
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue  # it has just ended by itself


def _on_signal(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGINT:
        _stop(f"Interrupted. {GO_ON}", EXIT_INTERRUPTED)
    _stop(f"Terminated. {GO_ON}", EXIT_TERMINATED)


def _watch(home: Path) -> None:
    while servers_of(home):
        if _over.wait(_WATCH_SECONDS):
            return
    if _over.is_set():  # the server was looked for while the run came to its end
        return
    _stop(f"Error: Prefect's server ended in the middle of the run. {GO_ON} `--no-prefect` needs none.", EXIT_FAILED)


def _stop(message: str, code: int) -> None:
    """Kill the workers, end the server, print the message and exit."""
    for child in multiprocessing.active_children():
        child.kill()
    if _armed:
        end_servers(_armed[0])
    sys.stderr.write(f"\n{message}\n")
    sys.stderr.flush()
    os._exit(code)
