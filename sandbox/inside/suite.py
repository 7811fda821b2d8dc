"""One run of pytest with our plugins: in a process of its own, or in a fork of one that has loaded pytest already."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from .forks import FAILURE, FOLDER, report_abort, use_folder
from .tracing import Places, Tracer, make_tracer, of_tree
from .wire import Sender


def prepare() -> Places:
    """Make this process what `python -m pytest` is before pytest is imported."""
    # As `python -m pytest` has it: the working directory can be imported from.
    sys.path.insert(0, os.getcwd())
    # Imports make no garbage worth a search for it, a tenth of their cost; `Imports.look` turns it on again.
    gc.disable()
    return Places(os.getcwd())


def name_program(args: list[str]) -> None:
    """Give the process the arguments that `python -m pytest` would have."""
    import pytest

    sys.argv = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py"), *args]


def start_tracer(job: dict[str, Any], places: Places) -> Tracer | None:
    """Record from now on which functions are entered, where the job wants to know."""
    tracer = make_tracer(places) if "targets" in job else None
    if tracer is not None:
        tracer.start()
    return tracer


class Parts:
    """Our plugins for one job."""

    def __init__(self, sender: Sender, job: dict[str, Any], places: Places, tracer: Tracer | None) -> None:
        from .plugin import Brief, Contexts, Imports, Reporter, Selection

        self.sender = sender
        self.job = job
        self.places = places
        self.tracer = tracer
        sys.dont_write_bytecode = not job.get("first", False)
        if job["mode"] == "run":
            # Where runs with a mock have theirs.
            use_folder(os.path.join(tempfile.gettempdir(), FOLDER))
        reporter, selection = Reporter(sender, stop=bool(job.get("stop"))), Selection(sender, job)
        self.imports = Imports(sender, places, told=bool(job.get("first")))
        self.plugins: list[object] = [reporter, selection, self.imports]
        self.contexts = None if tracer is None else Contexts(sender, tracer, job["targets"])
        if self.contexts is not None:
            self.plugins.append(self.contexts)
        self.fresh: Any = None
        if job["mode"] == "forks":
            from .warmed import ForkServer

            self.plugins.append(ForkServer(sender, job, places, reporter))
        elif job["mode"] == "fresh":
            from .fresh import FreshProcesses

            self.fresh = FreshProcesses(sender, job, places, selection, reporter)
            self.plugins.append(self.fresh)
        if job["mode"] != "forks" and not job.get("to_end"):
            # Plugins that are registered last are asked first.
            self.plugins.append(Brief(reporter, self.finish))

    def finish(self, status: int) -> int:
        """Tell what is told at the end of a run; return the status to end with."""
        self.imports.tell_late()
        if self.tracer is not None and self.contexts is not None:
            self.tracer.stop()
            self.contexts.send(self.places.key)
        self.sender.send("exit", status=status)
        if self.fresh is not None:
            self.sender.send("done")
            return 0
        return status


def run(sender: Sender, job: dict[str, Any]) -> int:
    """Run pytest once in this process: the wanted tests, or a server instead of them."""
    places = prepare()
    tracer = start_tracer(job, places)
    name_program(job["args"])
    parts = Parts(sender, job, places, tracer)
    hosted = of_tree(places)
    if hosted:
        sender.send("hosted", text=", ".join(hosted))
    if parts.fresh is not None and parts.fresh.bare:
        from .fresh import preload

        preload()
        parts.fresh.serve()
    return run_pytest(job["args"], parts.plugins, lambda: parts)


def run_pytest(args: list[str], plugins: list[object], parts_of: Callable[[], Parts | None]) -> int:
    """Go through pytest and return the status to end with; `parts_of` gives what this process, or copy, is by then."""
    import pytest

    try:
        status = int(pytest.main(list(args), plugins=plugins))
    except BaseException as error:
        parts = parts_of()
        if parts is None or parts.fresh is None:
            raise
        report_abort(parts.sender, error)  # nothing may run behind it in this copy
        return FAILURE
    parts = parts_of()
    return FAILURE if parts is None else parts.finish(status)
