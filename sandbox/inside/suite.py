"""One run of pytest with our plugins."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from .wire import Sender


def run(
    sender: Sender, job: dict[str, Any], *, forks: bool = False, started: Callable[[str], None] | None = None
) -> int:
    """Run pytest once in this process: the wanted tests, or the fork server instead of them.

    `started` is called with each test's node id when it begins.
    """
    # As `python -m pytest` has it: the working directory can be imported from.
    sys.path.insert(0, os.getcwd())
    from .tracing import Places, make_tracer

    places = Places(os.getcwd())
    tracer = make_tracer(places) if "targets" in job else None
    if tracer is not None:
        tracer.start()
    import pytest

    from .forks import ForkServer
    from .plugin import Contexts, Reporter, Selection

    sys.argv = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py"), *job["args"]]
    sys.dont_write_bytecode = not job.get("bytecode", False)
    reporter = Reporter(sender, stop=bool(job.get("stop")), started=started)
    plugins: list[object] = [reporter, Selection(sender, job)]
    contexts = None if tracer is None else Contexts(sender, tracer, job["targets"])
    if contexts is not None:
        plugins.append(contexts)
    if forks:
        plugins.append(ForkServer(sender, job, places, reporter))
    status = int(pytest.main(list(job["args"]), plugins=plugins))
    if tracer is not None and contexts is not None:
        tracer.stop()
        contexts.send(places.key)
    sender.send({"t": "exit", "status": status})
    return status
