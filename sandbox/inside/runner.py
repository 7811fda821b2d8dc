"""The process of the tested code: takes its job from the supervisor and runs it in one of three ways."""

from __future__ import annotations

import json
import os
import socket
import sys

from .suite import prepare, run
from .wire import Sender, receive_text


def main(descriptor: int, folder: str) -> None:
    """Read the job from the supervisor's channel and run it; exits with pytest's status."""
    channel = socket.socket(fileno=descriptor)
    channel.set_inheritable(False)
    head = json.loads(receive_text(channel) or b"{}")
    # Without our folder and what `-c` puts there; `run` adds what `python -m pytest` has.
    sys.path[:] = [path for path in sys.path if path not in (folder, "")]
    job = head["job"]
    # Threads and exit handlers of the tested code have nothing to say any more.
    if job["mode"] == "reside":
        places = prepare()  # before pytest is imported
        from .resident import reside

        os._exit(reside(channel, job["args"], places))
    os._exit(run(Sender(channel, bytes.fromhex(head["key"]), "main"), job))
