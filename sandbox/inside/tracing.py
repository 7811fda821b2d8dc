"""Which test enters which function, at the granularity of functions."""

from __future__ import annotations

import importlib.machinery
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Protocol

Key = tuple[str, str, int]
"""Path below the root, name and first line (decorators included) of a function's code."""
IMPORT = ("", "import")
"""Context of everything outside a test: start, import, collection."""
# A tool number that neither debuggers (0), coverage.py (1), profilers (2) nor optimisers (5) use by convention.
TOOL = 4


class Places:
    """Finds the key of a code object."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root) + os.sep
        self._paths: dict[str, str | None] = {}

    def path(self, file_name: str) -> str | None:
        """Return a file's path below the root; None for a file elsewhere."""
        try:
            return self._paths[file_name]
        except KeyError:
            path: str | None = None
            if not file_name.startswith("<"):
                real = os.path.realpath(file_name)
                path = real[len(self.root) :] if real.startswith(self.root) else None
            self._paths[file_name] = path
            return path

    def key(self, code: CodeType) -> Key | None:
        """Return the key of a code object of the tree."""
        path = self.path(code.co_filename)
        return None if path is None else (path, code.co_name, code.co_firstlineno)


def of_tree(places: Places) -> list[str]:
    """Return the modules that are loaded and come from the tested tree, sorted."""
    return sorted(name for name, module in list(sys.modules.items()) if _is_of_tree(module, places))


def _is_of_tree(module: object, places: Places) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and places.path(file) is not None


def foreign(places: Places, *, rewritten: bool = False) -> list[str]:
    """Return the modules that are loaded and that anybody who imports them by name gets, in order.

    Those of the tree are none, nor, unless they are asked for, those that pytest rewrites: it wants to be the one who
    loads them.
    """
    return [name for name, module in list(sys.modules.items()) if _is_foreign(name, module, places, rewritten)]


def _is_foreign(name: str, module: object, places: Places, rewritten: bool) -> bool:
    spec = getattr(module, "__spec__", None)
    loader = type(getattr(spec, "loader", None))
    plain = loader in (importlib.machinery.SourceFileLoader, importlib.machinery.ExtensionFileLoader)
    return (
        getattr(spec, "name", None) == name
        and (plain or (rewritten and loader.__module__ == "_pytest.assertion.rewrite"))
        and not _is_of_tree(module, places)
    )


class Tracer(Protocol):
    """Records the functions of the tree that start in each context."""

    entered: dict[tuple[str, str], dict[int, CodeType]]

    def start(self) -> None:
        """Begin, in the context of the import."""

    def switch(self, context: tuple[str, str], *, again: bool) -> None:
        """Record in another context; with `again` also functions that have been seen in the one before."""

    def stop(self) -> None:
        """End."""


class MonitoringTracer:
    """`sys.monitoring` (Python 3.12): each function costs one event per context, nothing after that."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.entered: dict[tuple[str, str], dict[int, CodeType]] = {}
        self._current: dict[int, CodeType] = self.entered.setdefault(IMPORT, {})
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # of newer Pythons

    def start(self) -> None:
        """Begin, in the context of the import."""
        monitoring = self._monitoring
        disable, path = monitoring.DISABLE, self.places.path

        def started(code: CodeType, _offset: int) -> object:
            if path(code.co_filename) is not None:
                self._current[id(code)] = code
            return disable

        monitoring.use_tool_id(TOOL, "postquem")
        monitoring.register_callback(TOOL, monitoring.events.PY_START, started)
        monitoring.set_events(TOOL, monitoring.events.PY_START)

    def switch(self, context: tuple[str, str], *, again: bool) -> None:
        """Record in another context; with `again` also functions that have been seen in the one before."""
        self._current = self.entered.setdefault(context, {})
        if again:
            self._monitoring.restart_events()

    def stop(self) -> None:
        """End."""
        self._monitoring.set_events(TOOL, 0)
        self._monitoring.register_callback(TOOL, self._monitoring.events.PY_START, None)
        self._monitoring.free_tool_id(TOOL)


class ProfileTracer:
    """`sys.setprofile`, for Python 3.9 to 3.11; tests that set a profiler of their own leave holes."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.entered: dict[tuple[str, str], dict[int, CodeType]] = {}
        self._current: dict[int, CodeType] = self.entered.setdefault(IMPORT, {})

    def start(self) -> None:
        """Begin, in the context of the import."""
        path = self.places.path

        def called(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call" and path(frame.f_code.co_filename) is not None:
                self._current[id(frame.f_code)] = frame.f_code

        threading.setprofile(called)
        sys.setprofile(called)

    def switch(self, context: tuple[str, str], *, again: bool) -> None:
        """Record in another context; every call is an event, so `again` is always so."""
        self._current = self.entered.setdefault(context, {})

    def stop(self) -> None:
        """End."""
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type,unused-ignore]  # documented, but not typed so


def make_tracer(places: Places) -> Tracer:
    """Return the best tracer that the running Python has."""
    return MonitoringTracer(places) if hasattr(sys, "monitoring") else ProfileTracer(places)
