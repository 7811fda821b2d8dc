"""The process of the tested code: takes its job from the supervisor and runs it in one of three ways."""

from __future__ import annotations

import json
import os
import socket
import sys

from .suite import run
from .wire import Sender


def main(descriptor: int, folder: str) -> None:
    """Read the job from the supervisor's channel and run it; exits with pytest's status."""
    channel = socket.socket(fileno=descriptor)
    channel.set_inheritable(False)
    head = json.loads(channel.recv(65_536))
    with open(head["job"], encoding="utf-8") as file:
        job = json.load(file)
    sender = Sender(channel, bytes.fromhex(head["key"]), "main")
    # Without our folder and what `-c` puts there; `run` adds what `python -m pytest` has.
    sys.path[:] = [path for path in sys.path if path not in (folder, "")]
    os._exit(run(sender, job))  # threads and exit handlers of the tested code have nothing to say any more
