"""Runs inside the sandbox: collects a tree's tests with pytest and writes what came of it as JSON.

Reads /w/in/request.json and writes the file that it names. Standard library and pytest only, Python 3.9 or later.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from importlib import metadata
from typing import Any

import pytest

Outcome = Generator[None, Any, None]


def main() -> None:
    """Collect and write the result."""
    with open("/w/in/request.json", encoding="utf-8") as file:
        request = json.load(file)
    sys.path[0] = os.getcwd()  # as `python -m pytest` has it
    result: dict[str, Any] = {"ids": [], "errors": [], "start": None, "exit": None, "copies": []}
    try:
        result["exit"] = int(pytest.main([*request["arguments"], "--collect-only"], plugins=[Collector(result)]))
    except BaseException as error:  # noqa: BLE001 - a plugin or conftest may raise anything, SystemExit too
        if result["start"] is None:
            result["start"] = describe(error)
    result["copies"] = copies(request["name"], request["roots"])
    with open(request["out"], "w", encoding="utf-8") as file:
        json.dump(result, file)


class Collector:
    """A plugin that notes node ids, and every collector that failed with its causes."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Outcome:
        """Note why pytest does not start."""
        self.remember((yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_cmdline_parse(self) -> Outcome:
        """Note why pytest does not start."""
        self.remember((yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection(self) -> Outcome:
        """Note why pytest does not collect; that collectors failed is told by themselves."""
        self.remember((yield), ("Interrupted",))

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: Any, report: Any) -> None:  # noqa: ANN401 - pytest's own types
        """Note a collector that failed."""
        if getattr(report, "when", "collect") == "collect":
            told = describe(call.excinfo.value)
            told["node"] = report.nodeid
            told["path"] = str(getattr(node, "path", "") or getattr(node, "fspath", ""))
            self.result["errors"].append(told)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the node ids."""
        self.result["ids"] = [item.nodeid for item in session.items]

    def remember(self, outcome: Any, known: tuple[str, ...] = ()) -> None:  # noqa: ANN401 - pluggy's own type
        """Note the first exception of a hook."""
        error = outcome.excinfo[1] if outcome.excinfo else None
        if error is not None and self.result["start"] is None and type(error).__name__ not in known:
            self.result["start"] = describe(error)


def describe(error: BaseException | None) -> dict[str, Any]:
    """Return an exception with its causes: types, the module that is missing, the last message."""
    types: list[str] = []
    missing, variable, message = None, None, ""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        types.append(type(error).__name__)
        message = first_line(error) or message
        if isinstance(error, ModuleNotFoundError) and error.name:
            missing = error.name
        if isinstance(error, KeyError) and raised_by_environ(error):
            variable = str(error.args[0]) if error.args else ""
        cause = getattr(error, "cause", None)
        if not isinstance(cause, BaseException):
            excinfo = getattr(error, "excinfo", None)
            cause = excinfo[1] if isinstance(excinfo, tuple) else None
        error = cause or error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return {"types": types, "missing": missing, "variable": variable, "message": message}


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message; of pytest's usage the line that says what is wrong."""
    try:
        lines = str(error).strip().splitlines()
    except Exception as broken:  # noqa: BLE001 - an exception's own text may fail in any way
        return type(broken).__name__
    wrong = [line for line in lines if "error: " in line] if isinstance(error, pytest.UsageError) else []
    return (wrong or lines or [""])[0][:300]


def raised_by_environ(error: BaseException) -> bool:
    """Say whether os.environ raised a KeyError."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "os"


def copies(name: str | None, roots: list[str]) -> list[str]:
    """Return modules that come from the project's installed files although the tree has the same file."""
    try:
        listed = metadata.distribution(name).files if name else None
    except metadata.PackageNotFoundError:
        listed = None
    installed = {os.path.realpath(str(file.locate())): str(file) for file in listed or () if str(file).endswith(".py")}
    found = []
    for module, loaded in sorted(sys.modules.items()):
        file = getattr(loaded, "__file__", None)
        inner = installed.get(os.path.realpath(file)) if isinstance(file, str) else None
        if inner and any(os.path.exists(os.path.join(root, inner)) for root in roots):
            found.append(module)
    return found


if __name__ == "__main__":
    main()
