"""What a function is, and the mocks that take its meaning away."""

import ast
import asyncio
import inspect
from typing import Any

import pytest

from miners.methods import scan
from miners.syntax import parse
from sandbox.defaults import default_of, yielded
from sandbox.mocks import mocks_of
from sandbox.targets import Function, Target, read_function
from schemas.errors import DataError
from schemas.execution import MockKind


def function(source: str, name: str = "f") -> Function:
    data = source.encode()
    span = next(span for span in scan(data, parse(data), {}) if span.fun_name == name)
    return read_function(data, Target("row", "m.py", name, span.start_byte))


def bodies(source: str, name: str = "f") -> dict[MockKind, str]:
    return {mock.kind: mock.body for mock in mocks_of(function(source, name))}


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        ("str", '""'), ("bytes", 'b""'), ("int", "0"), ("float", "0.0"), ("bool", "False"), ("complex", "0j"),
        ("list", "[]"), ("list[int]", "[]"), ("typing.List[str]", "[]"), ("Sequence[str]", "[]"),
        ("Iterable[int]", "[]"), ("dict[str, list[int]]", "{}"), ("Mapping[str, Any]", "{}"), ("set[int]", "set()"),
        ("frozenset[int]", "frozenset()"), ("tuple", "()"), ("tuple[()]", "()"), ("tuple[int, ...]", "()"),
        ("tuple[int]", "(0,)"), ("tuple[int, str, Path]", '(0, "", None)'), ("Optional[str]", '""'),
        ("str | None", '""'), ("None | int", "0"), ("Union[Path, None, dict[str, int]]", "{}"), ("'int'", "0"),
        ("Literal['a', 'b']", "'a'"), ("Literal[3]", "3"), ("Annotated[int, Gt(3)]", "0"),
        ("Iterator[int]", "iter(())"),
        ("collections.abc.Generator[int, None, None]", "iter(())"), ("TypeGuard[int]", "False"),
        ("Callable[[int], str]", "lambda *args, **kwargs: None"), ("None", None), ("Path", None), ("np.ndarray", None),
        ("Any", None), ("T", None), ("NoReturn", None), ("Optional[Path]", None), ("Awaitable[int]", None),
        ("AsyncIterator[int]", None), ("not valid", None), ("", None), ("tuple[Path, 'Other']", "(None, None)"),
    ],
)  # fmt: skip
def test_default_of_a_type(annotation: str, default: str | None) -> None:
    assert default_of(annotation) == default
    if default is not None:
        ast.parse(default, mode="eval")


def test_method_that_returns_its_own_class_returns_the_instance() -> None:
    source = "class A:\n    def f(this) -> {0}:\n        return A()\n"
    for annotation in ("Self", "A", "'A'", "typing.Self", "A | None"):
        assert bodies(source.format(annotation), "A.f")[MockKind.TYPED] == "        return this"
    for decorator in ("classmethod", "staticmethod"):
        text = f"class A:\n    @{decorator}\n    def f(cls) -> 'A':\n        return A()\n"
        assert MockKind.TYPED not in bodies(text, "A.f")


@pytest.mark.parametrize(
    ("annotation", "element"),
    [("Iterator[int]", "int"), ("Generator[str, None, None]", "str"), ("AsyncIterator['A']", "'A'"), ("int", ""),
     ("", ""), ("(", "")],
)  # fmt: skip
def test_what_a_generator_yields(annotation: str, element: str) -> None:
    assert yielded(annotation) == element


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f() -> int:\n\treturn 1\n", ["\tpass", "\treturn 0", '\traise NotImplementedError("mock")']),
        ("def f(): return 1\n", ["pass", None, 'raise NotImplementedError("mock")']),
        ("def f() -> str: return 'a'\n", ["pass", 'return ""', 'raise NotImplementedError("mock")']),
        ("def f() -> None:\n  g()\n", ["  pass", None, '  raise NotImplementedError("mock")']),
        ("def f() -> list[int]:\r\n  yield 1\r\n",
         ["  return\r\n  yield", None, '  raise NotImplementedError("mock")\r\n  yield']),
        ("@contextmanager\ndef f() -> Iterator[int]:\n  yield 1\n",
         ["  yield", "  yield 0", '  raise NotImplementedError("mock")\n  yield']),
        ("@contextlib.asynccontextmanager\nasync def f():\n  yield 1\n",
         ["  yield", None, '  raise NotImplementedError("mock")\n  yield']),
        ("async def f() -> int:\n  return 1\n", ["  pass", "  return 0", '  raise NotImplementedError("mock")']),
        ("def f():\n  return lambda: (yield)\n", ["  pass", None, '  raise NotImplementedError("mock")']),
        ("def f(): yield 1\n", ["return; yield", None, 'raise NotImplementedError("mock"); yield']),
    ],
)  # fmt: skip
def test_mocks_keep_what_a_function_is(source: str, expected: list[str | None]) -> None:
    found = bodies(source)
    assert [found.get(kind) for kind in MockKind] == expected


@pytest.mark.parametrize("name", ["__init__", "__new__"])
def test_construction_has_no_typed_mock(name: str) -> None:
    source = f"class A:\n    def {name}(self) -> 'A':\n        self.x = 1\n"
    assert set(bodies(source, f"A.{name}")) == {MockKind.PASS, MockKind.RAISE}


def test_special_method_without_annotation_returns_what_the_language_demands() -> None:
    assert (
        bodies("class A:\n    def __len__(self):\n        return 3\n", "A.__len__")[MockKind.TYPED].strip()
        == "return 0"
    )
    assert MockKind.TYPED not in bodies("def __len__(self):\n    return 3\n", "__len__")


@pytest.mark.parametrize(
    "source",
    [
        "async def f() -> int:\n    return await g()\n",
        "async def f():\n    yield 1\n",
        "def f():\n    x = yield\n    yield from x\n",
        "def f(*, a, b=1, **c) -> dict:\n    return c\n",
    ],
)
def test_mocked_function_is_of_the_same_kind_as_the_original(source: str) -> None:
    def flags(text: str) -> tuple[bool, ...]:
        names: dict[str, Any] = {}
        exec(text, names)  # our own text
        tests = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
        return tuple(test(names["f"]) for test in tests)

    code = function(source).code
    for mock in mocks_of(function(source)):
        assert flags((code.left + mock.body.encode() + code.right).decode()) == flags(source)


def test_typed_mock_of_a_coroutine_returns_the_awaited_value() -> None:
    names: dict[str, Any] = {}
    source = "async def f() -> list[int]:\n    return [1]\n"
    code = function(source).code
    exec(code.left + bodies(source)[MockKind.TYPED].encode() + code.right, names)  # our own text
    assert asyncio.run(names["f"]()) == []


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("    pass\n", "nothing to take away: pass"),
        ("    ...\n", "nothing to take away: ..."),
        ("    return None\n", "nothing to take away: return None"),
        ('    """Doc."""\n    raise NotImplementedError("later")\n',
         'nothing to take away: raise NotImplementedError("later")'),
        ('    """Doc."""\n', "f has no statement behind its docstring"),
    ],
)  # fmt: skip
def test_body_that_says_nothing_is_no_target(body: str, detail: str) -> None:
    with pytest.raises(DataError) as caught:
        function("def f():\n" + body)
    assert (caught.value.reason, caught.value.detail) == ("trivial_body", detail)


def test_overload_is_no_target_and_an_abstract_method_with_a_body_is_one() -> None:
    with pytest.raises(DataError, match="trivial_body: the body of an overload never runs"):
        function("@typing.overload\ndef f(a: int) -> int:\n    return a\n")
    assert function("class A:\n    @abstractmethod\n    def f(self):\n        return 1\n", "A.f").first_line == 2


def test_place_of_code_counts_decorators_and_every_kind_of_line_end() -> None:
    assert function("x = 1\r\ny = 2\rz = 3\n@a\n@b\ndef f():\n    return 1\n").key == ("m.py", "f", 4)
    assert function("class A:\n  class B:\n    def f(self):\n      return 1\n", "A.B.f").class_name == "B"
    nested = function("def g():\n  def f(x):\n    return 1\n  return f\n", "g.<locals>.f")
    assert (nested.key, nested.class_name, nested.first_parameter) == (("m.py", "f", 2), "", "")


def test_place_without_a_function_is_refused() -> None:
    with pytest.raises(DataError, match=r"no_definition: no function definition starts at byte 3 of m\.py"):
        read_function(b"def f():\n    return 1\n", Target("row", "m.py", "f", 3))
