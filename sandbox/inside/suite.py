"""One run of pytest with our plugins."""

from __future__ import annotations

import os
import sys
from typing import Any

from .forks import Progress
from .tracing import Places, make_tracer
from .wire import Sender


def run(
    sender: Sender,
    job: dict[str, Any],
    *,
    forks: bool = False,
    progress: Progress | None = None,
    brief: bool = False,
) -> int:
    """Run pytest once in this process: the wanted tests, or the fork server instead of them.

    With `brief` the process ends behind the last test.
    """
    # As `python -m pytest` has it: the working directory can be imported from.
    sys.path.insert(0, os.getcwd())
    places = Places(os.getcwd())
    tracer = make_tracer(places) if "targets" in job else None
    if tracer is not None:
        tracer.start()
    import pytest

    from .plugin import Brief, Contexts, Reporter, Selection
    from .warmed import ForkServer

    sys.argv = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py"), *job["args"]]
    sys.dont_write_bytecode = not job.get("bytecode", False)
    reporter = Reporter(sender, stop=bool(job.get("stop")))
    reporter.attach(sender, progress)
    plugins: list[object] = [reporter, Selection(sender, job), *([Brief(sender)] if brief else [])]
    contexts = None if tracer is None else Contexts(sender, tracer, job["targets"])
    if contexts is not None:
        plugins.append(contexts)
    if forks:
        plugins.append(ForkServer(sender, job, places, reporter))
    hosted = sorted(name for name, module in list(sys.modules.items()) if _is_of_tree(module, places))
    if hosted:
        sender.send("hosted", text=", ".join(hosted))
    status = int(pytest.main(list(job["args"]), plugins=plugins))
    if tracer is not None and contexts is not None:
        tracer.stop()
        contexts.send(places.key)
    sender.send("exit", status=status)
    return status


def _is_of_tree(module: object, places: Places) -> bool:
    """Tell whether a module that is loaded before any test comes from the tested tree."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and places.path(file) is not None
