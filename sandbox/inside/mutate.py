"""Replaces a function's code in a running process, wherever it is alive, and in modules imported later."""

from __future__ import annotations

import gc
import importlib.machinery
import inspect
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from .tracing import Key, Places

# Set by types.coroutine on the code of a generator function (CPython's CO_ITERABLE_COROUTINE).
_ITERABLE_COROUTINE = inspect.CO_ITERABLE_COROUTINE
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CannotPatchError(Exception):
    """The code object cannot be replaced by a mock in place."""


def mock_code(original: CodeType, body: str) -> CodeType:
    """Return code with the signature, name and free variables of `original` and a mock body.

    The mock is compiled alone: its text must not name anything but parameters and built-ins. The free variables are
    kept (`__class__` too), since `__code__` can only be set to code with as many.
    """
    free, names = original.co_freevars, list(original.co_varnames)
    if not all(name.isidentifier() for name in (original.co_name, *free, *names)):
        raise CannotPatchError(f"{original.co_name} has names that no source can have")
    define = "async def" if original.co_flags & _ASYNC else "def"
    lines = ["def outer():"]
    if free:
        lines.append(f"    {' = '.join(free)} = None")
    lines.append(f"    {define} {original.co_name}({_parameters(original, names)}):")
    if free:
        lines.append(f"        if 0: ({', '.join(free)},)")
    lines.append(textwrap.indent(textwrap.dedent(body), "        "))
    module = compile("\n".join(lines), "<mock>", "exec", dont_inherit=True)
    outer = next(const for const in module.co_consts if isinstance(const, CodeType))
    code = next(const for const in outer.co_consts if isinstance(const, CodeType))
    if code.co_freevars != free:
        raise CannotPatchError(f"{original.co_name} has free variables that cannot be kept")
    changes: dict[str, Any] = {"co_filename": original.co_filename, "co_firstlineno": original.co_firstlineno}
    if original.co_flags & _ITERABLE_COROUTINE:
        changes["co_flags"] = code.co_flags | _ITERABLE_COROUTINE
    if hasattr(original, "co_qualname"):  # Python 3.11
        changes["co_qualname"] = original.co_qualname
    return code.replace(**changes)


def _parameters(code: CodeType, names: list[str]) -> str:
    """Return the text of a signature without defaults and annotations, which belong to the function object."""
    positional, only = code.co_argcount, code.co_posonlyargcount
    parts = names[:positional]
    if only:
        parts.insert(only, "/")
    end = positional + code.co_kwonlyargcount
    keywords = names[positional:end]
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{names[end]}")
        end += 1
    elif keywords:
        parts.append("*")
    parts += keywords
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{names[end]}")
    return ", ".join(parts)


def swap(code: CodeType, key: Key, body: str, places: Places) -> CodeType:
    """Return code in which the function of `key`, itself or nested at any depth, has a mock body."""
    if places.key(code) == key:
        return mock_code(code, body)
    constants = tuple(swap(c, key, body, places) if isinstance(c, CodeType) else c for c in code.co_consts)
    if all(new is old for new, old in zip(constants, code.co_consts)):  # noqa: B905 - no `strict` before Python 3.10
        return code
    return code.replace(co_consts=constants)


class LiveFunctions:
    """The functions of the tree that are alive now, by the keys of their code and of the code inside it."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.by_key: dict[Key, list[FunctionType]] = {}
        self.ready: tuple[Key, str] | None = None
        self.codes: list[CodeType] = []
        for function in gc.get_objects():
            if type(function) is FunctionType:
                for key in self._keys(function.__code__):
                    self.by_key.setdefault(key, []).append(function)

    def _keys(self, code: CodeType) -> Iterator[Key]:
        key = self.places.key(code)
        if key is None:
            return
        yield key
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from self._keys(constant)

    def prepare(self, key: Key, body: str) -> None:
        """Compile a mock body, once for all forks that are to have it."""
        if self.ready != (key, body):
            self.ready = None
            self.codes = [swap(function.__code__, key, body, self.places) for function in self.by_key.get(key, ())]
            self.ready = (key, body)

    def patch(self, key: Key, body: str) -> Patch:
        """Give every live function with that code the mock body, and every one that a later import brings."""
        patch = Patch(key, body, self.places)
        self.prepare(key, body)
        for function, code in zip(self.by_key.get(key, ()), self.codes):  # noqa: B905 - no `strict` before Python 3.10
            function.__code__ = code
            patch.count += 1
        patch.hook_imports()
        return patch


class Patch:
    """One mock in this process."""

    def __init__(self, key: Key, body: str, places: Places) -> None:
        self.key = key
        self.body = body
        self.places = places
        self.count = 0

    def _swapped(self, code: Any) -> Any:  # noqa: ANN401 - what a loader returned: code, or None
        if isinstance(code, CodeType) and self.places.path(code.co_filename) == self.key[0]:
            new = swap(code, self.key, self.body, self.places)
            self.count += new is not code
            return new
        return code

    def hook_imports(self) -> None:
        """Let the loaders of source files, pytest's rewriting one too, hand out the mocked code."""
        from _pytest.assertion import rewrite

        self._wrap(importlib.machinery.SourceFileLoader, "get_code", lambda result: self._swapped(result))
        self._wrap(rewrite, "_read_pyc", lambda result: self._swapped(result))
        self._wrap(rewrite, "_rewrite_test", lambda result: (result[0], self._swapped(result[1])))

    @staticmethod
    def _wrap(owner: Any, name: str, change: Any) -> None:  # noqa: ANN401 - a class or module, a function
        original = getattr(owner, name)

        def wrapped(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401 - whatever the original takes and returns
            return change(original(*args, **keywords))

        setattr(owner, name, wrapped)
