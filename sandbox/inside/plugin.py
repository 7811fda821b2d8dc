"""The pytest plugin: which tests run, in which order, and a signed record for every phase of each."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Collection, Generator
from pathlib import Path
from typing import Any

import pytest

from .clocks import measures_time
from .forks import MOCK_ERROR, Progress
from .tracing import IMPORT, Key, Places, Tracer, foreign, of_tree
from .wire import Sender

MAX_TEXT = 300  # characters of an exception's first line that are kept
MAX_ID = 10_000  # characters of a node id; a test with a longer one is left out, its records would not fit
CHUNK = 60_000  # characters of node ids in one record, escapes included: below wire.MAX_MESSAGE with one more id
TOGETHER = 50  # tests that pass, and of which one record tells
_MAX_CHAIN = 20  # exceptions, one raised while the next was handled, that are looked at: a chain may be a ring
_VERSION = int(pytest.__version__.split(".")[0])


def first_line(value: BaseException | None) -> str:
    """Return the first line of an exception's text, shortened; tested code may break its own `__str__`."""
    try:
        lines = str(value).splitlines()
    except Exception:  # noqa: BLE001 - whatever it raises, the test has failed already
        return "unprintable"
    return lines[0][:MAX_TEXT] if lines else ""


def is_of_mock(error: BaseException | None) -> bool:
    """Tell whether an exception is the one that a mock raises, or was raised while that was handled."""
    kind, text = MOCK_ERROR
    for _ in range(_MAX_CHAIN):
        if error is None:
            return False
        if type(error).__name__ == kind and first_line(error) == text:
            return True
        error = error.__cause__ or error.__context__
    return False


def chunks(ids: list[str]) -> Generator[list[str], None, None]:
    """Yield a list of node ids in parts that fit into a record."""
    part: list[str] = []
    size = 0
    for id_ in ids:
        part.append(id_)
        size += len(ascii(id_)) + 3
        if size > CHUNK:
            yield part
            part, size = [], 0
    yield part


class Reporter:
    """Sends a record when a test starts and for each report of each of its phases."""

    def __init__(self, sender: Sender, *, stop: bool = False) -> None:
        self.sender = sender
        self.stop = stop
        self.progress: Progress | None = None
        self.failed = False
        self.seconds, self.plain, self.called = 0.0, True, False
        self.passed: dict[str, float] = {}
        self.session: pytest.Session | None = None

    def attach(self, sender: Sender, progress: Progress | None) -> None:
        """Report as another stream, and to what outlives this process."""
        self.sender = sender
        self.progress = progress

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, to stop it."""
        self.session = session

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell that a test begins: its time is limited from now on."""
        if self.progress is not None:
            self.progress.started(nodeid)
        self.sender.send("start", id=nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        """Note exception type and first line on the report."""
        outcome = yield
        report = outcome.get_result()
        if call.excinfo is not None:
            report.postquem = (call.excinfo.typename, first_line(call.excinfo.value))
            report.of_mock = is_of_mock(call.excinfo.value)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send the report of a phase; tests whose phases all pass are told of together.

        Were this process killed before that, those tests would count as not run. Subtests and reruns send several
        reports with one node id.
        """
        if report.outcome == "failed" and report.when in ("setup", "call"):
            self.failed = True
            if self.progress is not None:
                self.progress.failed(report.nodeid, by_mock=getattr(report, "of_mock", False))
            if self.stop and self.session is not None:
                self.session.shouldstop = "a test failed"
        self.seconds += report.duration
        if report.outcome == "passed" and not hasattr(report, "wasxfail"):
            self.called = self.called or report.when == "call"
        else:
            self.plain = False
            kind, text = getattr(report, "postquem", ("", ""))
            self.sender.send(
                "phase", id=report.nodeid, when=report.when, outcome=report.outcome,
                xfail=hasattr(report, "wasxfail"), seconds=round(report.duration, 6), error=kind, text=text,
            )  # fmt: skip
        if report.when == "teardown":
            if self.plain and self.called and report.nodeid not in self.passed:
                self.passed[report.nodeid] = round(self.seconds, 6)
            elif self.plain and self.called:  # the same id once more
                self.flush()
                self.passed[report.nodeid] = round(self.seconds, 6)
            if len(self.passed) >= TOGETHER:
                self.flush()
            self.seconds, self.plain, self.called = 0.0, True, False

    def flush(self) -> None:
        """Tell of the tests that passed."""
        for part in chunks(list(self.passed)):
            if part:
                self.sender.send("passed", ids=part, seconds=[self.passed[id_] for id_ in part])
        self.passed = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Tell the rest, and that no test is running."""
        self.flush()
        self.sender.send("over")


class Selection:
    """Chooses what is collected and run, and tells what was collected."""

    def __init__(self, sender: Sender, job: dict[str, Any]) -> None:
        self.sender = sender
        self.choose(job.get("ids"))
        self.excluded = frozenset(job.get("excluded", ()))
        self.reverse = bool(job.get("reverse"))
        self.first = bool(job.get("first"))
        self.root = os.getcwd()

    def choose(self, ids: Collection[str] | None) -> None:
        """Want these tests, or all."""
        self.ids = None if ids is None else frozenset(ids)
        self.files = None if ids is None else frozenset(id_.split("::", 1)[0] for id_ in ids)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Note the folder that node ids are relative to."""
        self.root = str(config.rootpath)

    def ignores(self, path: Any) -> bool | None:  # noqa: ANN401 - pathlib or py.path, by the version of pytest
        """Leave out files without a wanted test; `__init__.py` belongs to those beside it."""
        if self.files is None or os.path.isdir(path) or os.path.basename(path) == "__init__.py":
            return None
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        return None if relative in self.files else True

    if _VERSION >= 7:

        def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
            """Leave out files without a wanted test."""
            return self.ignores(collection_path)

    else:

        @pytest.hookimpl(specname="pytest_ignore_collect")
        def ignore_collect(self, path: Any) -> bool | None:  # noqa: ANN401 - py.path.local
            """Leave out files without a wanted test."""
            return self.ignores(path)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell of what could not be collected."""
        if report.failed:
            last = [line for line in str(report.longrepr).splitlines() if line.strip()]
            self.sender.send("broken", id=report.nodeid, text=last[-1][:MAX_TEXT] if last else "")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the wanted tests in the wanted order."""
        wanted = self.ids
        items[:] = [
            item
            for item in items
            if (wanted is None or item.nodeid in wanted)
            and item.nodeid not in self.excluded
            and len(item.nodeid) <= MAX_ID
        ]
        if self.reverse:
            items.reverse()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell which tests will run, in order, and the first time which of them measure time."""
        ids = [item.nodeid for item in session.items]
        for part in chunks(ids):
            self.sender.send("collected", ids=part)
        if self.first:
            for part in chunks([item.nodeid for item in session.items if measures_time(getattr(item, "obj", None))]):
                if part:
                    self.sender.send("timed", ids=part)

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell that pytest itself or a plugin broke."""
        self.sender.send("internal", error=excinfo.typename, text=first_line(excinfo.value))


class Imports:
    """Tells which modules are loaded: of the tree before its first conftest (plugins), of others by its tests."""

    def __init__(self, sender: Sender, places: Places, *, told: bool) -> None:
        self.sender = sender
        self.places = places
        self.told = told
        self.before: frozenset[str] = frozenset()
        self.known: frozenset[str] = frozenset()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Generator[None, None, None]:
        """Look, before every other plugin does its part of this hook."""
        self.look()
        yield

    def look(self) -> None:
        """Tell what is of the tree already, and note what else is there; garbage is collected from now on."""
        self.tell_of_tree("early")
        self.before = frozenset(sys.modules)
        gc.enable()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Tell whether conftests have brought something of the tree."""
        self.tell_of_tree("conftests")

    def tell_of_tree(self, kind: str) -> None:
        """Tell which modules of the tree are loaded by now, if any."""
        names = of_tree(self.places)
        if names:
            self.sender.send(kind, text=", ".join(names)[:MAX_TEXT])

    def pytest_collection_finish(self) -> None:
        """Tell which modules conftests and test modules have loaded since then."""
        if self.told:
            for part in chunks([name for name in foreign(self.places) if name not in self.before]):
                self.sender.send("modules", names=part)
            self.known = frozenset(sys.modules)

    def tell_late(self) -> None:
        """Tell which the tests themselves have loaded, those too that pytest rewrote: it will where they are shared."""
        if self.known:
            names = foreign(self.places, rewritten=True)
            for part in chunks([name for name in names if name not in self.known]):
                self.sender.send("late", names=part)


class Brief:
    """Ends the process behind the last test: what pytest does then costs much and says nothing."""

    def __init__(self, reporter: Reporter, finish: Callable[[int], int]) -> None:
        self.reporter = reporter
        self.finish = finish

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, None]:
        """Run all tests, then end with the status that pytest would; it ends by itself when something broke."""
        outcome = yield
        if outcome.excinfo is None:
            self.reporter.pytest_sessionfinish()
            status = pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.OK
            os._exit(self.finish(int(status if session.testscollected else pytest.ExitCode.NO_TESTS_COLLECTED)))


class Contexts:
    """Tells the tracer which test and phase is running, and sends at the end which targets they entered."""

    def __init__(self, sender: Sender, tracer: Tracer, targets: list[list[Any]]) -> None:
        self.sender = sender
        self.tracer = tracer
        self.targets = {(path, name, line): number for number, (path, name, line) in enumerate(targets)}

    def _phase(self, item: pytest.Item, phase: str, *, again: bool) -> Generator[None, None, None]:
        self.tracer.switch((item.nodeid, phase), again=again)
        yield
        self.tracer.switch(IMPORT, again=False)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        """Record a test's set-up."""
        yield from self._phase(item, "setup", again=True)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Record a test's call."""
        yield from self._phase(item, "call", again=True)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        """Record what only the tear-down enters."""
        yield from self._phase(item, "teardown", again=False)

    def send(self, key_of: Any) -> None:  # noqa: ANN401 - Places.key
        """Send, for each target, the tests and phases that entered it."""
        found: dict[tuple[int, str], list[str]] = {}
        for (nodeid, phase), codes in self.tracer.entered.items():
            for code in codes.values():
                key: Key | None = key_of(code)
                number = None if key is None else self.targets.get(key)
                if number is not None:
                    found.setdefault((number, phase), []).append(nodeid)
        for (number, phase), ids in found.items():
            for part in chunks(ids):
                self.sender.send("entered", target=number, phase=phase, ids=part)
