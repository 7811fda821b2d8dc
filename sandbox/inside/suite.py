"""One run of pytest with our plugins."""

from __future__ import annotations

import os
import sys
from typing import Any

from .forks import FAILURE, report_abort
from .tracing import Places, make_tracer, of_tree
from .wire import Sender


def run(sender: Sender, job: dict[str, Any]) -> int:
    """Run pytest once in this process: the wanted tests, or a server instead of them."""
    # As `python -m pytest` has it: the working directory can be imported from.
    sys.path.insert(0, os.getcwd())
    places = Places(os.getcwd())
    tracer = make_tracer(places) if "targets" in job else None
    if tracer is not None:
        tracer.start()
    import pytest

    from .plugin import Contexts, Imports, Reporter, Selection

    sys.argv = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py"), *job["args"]]
    sys.dont_write_bytecode = not job.get("first", False)
    reporter, selection = Reporter(sender, stop=bool(job.get("stop"))), Selection(sender, job)
    plugins: list[object] = [reporter, selection, Imports(sender, places, told=bool(job.get("first")))]
    contexts = None if tracer is None else Contexts(sender, tracer, job["targets"])
    if contexts is not None:
        plugins.append(contexts)
    hosted = of_tree(places)
    if hosted:
        sender.send("hosted", text=", ".join(hosted))
    if job["mode"] == "forks":
        from .warmed import ForkServer

        plugins.append(ForkServer(sender, job, places, reporter))
    elif job["mode"] == "fresh":
        from .fresh import FreshProcesses

        return _run_fresh(sender, job, plugins, FreshProcesses(sender, job, places, selection, reporter))
    status = int(pytest.main(list(job["args"]), plugins=plugins))
    if tracer is not None and contexts is not None:
        tracer.stop()
        contexts.send(places.key)
    sender.send("exit", status=status)
    return status


def _run_fresh(sender: Sender, job: dict[str, Any], plugins: list[object], processes: Any) -> int:  # noqa: ANN401 - FreshProcesses, whose module imports pytest
    """Be the server of fresh processes; what comes behind `serve`, and out of pytest, is in one of its children."""
    import pytest

    from .fresh import preload
    from .plugin import Brief

    if processes.bare:
        preload()
        processes.serve()
    try:
        # Plugins that are registered last are asked first.
        status = int(pytest.main(list(job["args"]), plugins=[*plugins, Brief(sender, processes.reporter), processes]))
    except BaseException as error:  # noqa: BLE001 - reported, and nothing may run behind it in this copy
        report_abort(sender, error)
        return FAILURE
    sender.send("exit", status=status)
    sender.send("done")
    return 0
