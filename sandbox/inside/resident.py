"""A pytest that has loaded its plugins and nothing of the tree, and runs every job in a fork of itself."""

from __future__ import annotations

import gc
import json
import os
import socket
from collections.abc import Iterator

import pytest

from .forks import fork
from .processes import adopt_orphans, end_children
from .suite import Parts, name_program, run_pytest, start_tracer
from .tracing import Places, of_tree
from .wire import Sender, receive_text

STREAM = "resident"
"""Stream of the records that tell of a fork's end."""


class Resident:
    """Waits for jobs in pytest's own start, behind the loading of its plugins and before the first conftest."""

    def __init__(self, channel: socket.socket, places: Places) -> None:
        self.channel = channel
        self.places = places
        self.parts: Parts | None = None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Iterator[None]:
        """Serve, before every other plugin does its part of this hook; a fork goes on from here."""
        self.serve(early_config.pluginmanager)
        yield

    def serve(self, plugins: pytest.PytestPluginManager) -> None:
        """Fork for every job; returns in the forks, and ends this process when no more jobs come.

        Where a plugin is of the tree, or has brought something of it, no fork could start from nothing: it ends, too.
        """
        if of_tree(self.places):
            os._exit(0)
        adopt_orphans()
        gc.collect()
        gc.freeze()
        while True:
            text = receive_text(self.channel)
            if text is None:
                os._exit(0)
            request = json.loads(text)
            key = bytes.fromhex(request["key"])
            pid = fork()
            if pid == 0:
                return self.begin(Sender(self.channel, key, "main"), request["job"], plugins)
            status = os.waitpid(pid, 0)[1]
            end_children(frozenset())
            Sender(self.channel, key, STREAM).send("gone", status=status)

    def begin(self, sender: Sender, job: dict[str, object], plugins: pytest.PytestPluginManager) -> None:
        """Become the process of a job."""
        os.setsid()
        sender.send("job", pid=os.getpid())
        if job["mode"] == "run":
            gc.unfreeze()  # tests may look at what the collector knows
        self.parts = Parts(sender, job, self.places, start_tracer(job, self.places))
        for plugin in self.parts.plugins:
            plugins.register(plugin)
        self.parts.imports.look()
        if self.parts.fresh is not None:
            self.parts.fresh.start()


def reside(channel: socket.socket, args: list[str], places: Places) -> int:
    """Load pytest and its plugins, and run each job that comes in a fork; returns in a fork that has run its job."""
    name_program(args)
    resident = Resident(channel, places)
    return run_pytest(args, [resident], lambda: resident.parts)
