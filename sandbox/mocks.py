"""What stands in place of a body: nothing, a value of the annotated type, an exception."""

from dataclasses import dataclass

from sandbox.defaults import default_of, special_default, yielded
from sandbox.inside.forks import MOCK_ERROR
from sandbox.targets import Function
from schemas.execution import MockKind

_RAISE = 'raise {}("{}")'.format(*MOCK_ERROR)


@dataclass(frozen=True, slots=True)
class Mock:
    """A body that takes a function's meaning away."""

    kind: MockKind
    """Which one."""
    body: str
    """Its text, as an answer would be spliced."""


def mocks_of(function: Function) -> tuple[Mock, ...]:
    """Return the mocks of a function, at most one of each kind: `pass`, `typed`, `raise`.

    A function stays what it is: generators yield nothing (once, where a decorator demands that), coroutines return.
    `typed` is left out where no default is known that differs from what `pass` returns: without an annotation, for
    `None`, for classes of the project, for generators.
    """
    generator = function.is_generator
    empty = ["yield"] if function.yields_once else ["return", "yield"]
    mocks = [Mock(MockKind.PASS, _body(function, empty if generator else ["pass"]))]
    typed = _typed(function)
    if typed is not None:
        mocks.append(Mock(MockKind.TYPED, _body(function, [typed])))
    mocks.append(Mock(MockKind.RAISE, _body(function, [_RAISE, "yield"] if generator else [_RAISE])))
    return tuple(mocks)


def _typed(function: Function) -> str | None:
    """Return the statement of a typed mock."""
    if function.is_generator:
        value = default_of(yielded(function.returns)) if function.yields_once else None
        return None if value is None else f"yield {value}"
    if function.name in ("__init__", "__new__"):
        return None
    if function.returns:
        value = default_of(function.returns, function.class_name, function.first_parameter)
    else:
        value = special_default(function.name) if function.class_name else None
    return None if value is None else f"return {value}"


def _body(function: Function, statements: list[str]) -> str:
    code = function.code
    if code.inline:
        return "; ".join(statements)
    indent, newline = code.indent.decode("ascii"), code.newline.decode("ascii")
    return newline.join(indent + statement for statement in statements)
