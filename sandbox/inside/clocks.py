"""Which tests measure time: what they say depends on how fast the machine is, with a mock above all."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

# A test that reads one of these twice compares what passed in between; `time.time` alone may be a mere date.
_CLOCKS = frozenset(
    name + unit for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time") for unit in ("", "_ns")
)
_TIMERS = frozenset({"timeit", "default_timer"})


def measures_time(test: Any) -> bool:  # noqa: ANN401 - whatever a plugin made an item of
    """Tell whether a test's own code measures time: clocks, `timeit`, or what pytest-benchmark measured."""
    code = getattr(inspect.unwrap(test), "__code__", None) if callable(test) else None
    if not isinstance(code, CodeType):
        return False
    names = {name for part in _parts(code) for name in part.co_names}
    if names.isdisjoint(_CLOCKS | _TIMERS | {"stats"}):
        return False
    loads = list(_loads(code))
    # The module `time` itself is no clock: what follows it is one, or `sleep`.
    clocks = [name for name, after in loads if name in _CLOCKS and (name != "time" or after == "time")]
    timers = [name for name, _ in loads if name in _TIMERS]
    return len(clocks) > 1 or bool(timers) or ("stats", "benchmark") in loads


def _parts(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _parts(value)


def _loads(code: CodeType) -> Iterator[tuple[str, str]]:
    """Yield the names that code loads, each with the one that was loaded right before."""
    for part in _parts(code):
        last = ""
        for step in dis.get_instructions(part):
            if not step.opname.startswith("LOAD_") or step.opname == "LOAD_CONST":
                continue
            # Newer Pythons load two local variables at once.
            for name in step.argval if isinstance(step.argval, tuple) else (step.argval,):
                yield str(name), last
                last = str(name)
