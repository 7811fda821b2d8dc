"""The fork server: pytest after its collection, of which every mock gets a copy of its own."""

from __future__ import annotations

import gc
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import pytest
from _pytest import nodes

from .forks import Progress, Server, load
from .mutate import CannotPatchError, LiveFunctions
from .plugin import Reporter
from .tracing import Places
from .wire import Sender


def quiet(plugins: pytest.PytestPluginManager) -> None:
    """Take away what nobody reads, a third of a passing test's cost and half of a failing one's.

    Tests of pytest plugins may look at it: without a mock they fail here, and so are judged by fresh processes.
    """
    terminal = plugins.get_plugin("terminalreporter")
    if terminal is not None:
        plugins.unregister(terminal)

    def short(_node: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        return excinfo.typename

    nodes.Node._repr_failure_py = short  # type: ignore[method-assign,assignment]  # called by every kind of item


class ForkServer:
    """Takes the place of pytest's run loop: judges mocks instead of running the collected tests."""

    def __init__(self, sender: Sender, job: dict[str, Any], places: Places, reporter: Reporter) -> None:
        self.sender = sender
        self.job = job
        self.places = places
        self.reporter = reporter
        self.items: dict[str, list[pytest.Item]] = {}
        self.live: LiveFunctions | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Run every job, and end this process."""
        for item in session.items:
            self.items.setdefault(item.nodeid, []).append(item)
            if getattr(item, "cls", None) is None:  # a class would be instantiated for that
                with suppress(Exception):
                    _ = item.location  # kept by the item; every fork would find out again
        load(self.job.get("imports", ()))
        self.live = LiveFunctions(self.places)
        gc.collect()
        gc.freeze()  # a collection in a child would copy every page; what it could free lives on in the parent
        quiet(session.config.pluginmanager)
        Server(self.sender, self, self.job["tests"]).serve(self.job["jobs"])
        self.sender.send("exit", status=0)
        os._exit(0)  # pytest's own end would only cost, and misses what `quiet` took away

    def changed(self, job: dict[str, Any], variant: dict[str, Any] | None) -> AbstractContextManager[None]:
        """Change nothing, the child alone is patched; but compile what it is patched with."""
        if variant is not None and self.live is not None:
            with suppress(CannotPatchError):  # the child meets it again, and tells
                self.live.prepare(tuple(job["key"]), variant["body"])
        return nullcontext()

    def run(
        self,
        sender: Sender,
        progress: Progress,
        job: dict[str, Any],
        variant: dict[str, Any] | None,
        ids: list[str],
        stop: bool,
    ) -> None:
        """Patch this process and run tests in it."""
        self.reporter.attach(sender, progress)
        patch = None
        if variant is not None and self.live is not None:
            patch = self.live.patch(tuple(job["key"]), variant["body"])
        items = [item for id_ in ids for item in self.items.get(id_, ())]
        for number, item in enumerate(items):
            following = items[number + 1] if number + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if stop and self.reporter.failed:
                break
        self.reporter.flush()
        if patch is not None and patch.count == 0:
            sender.send("unpatched", text="no live function has this code")
