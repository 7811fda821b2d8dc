"""Functions that may be proven, and what a mock of each must keep: kind of function, return type, place of its body."""

import ast
import re
from dataclasses import dataclass

from tree_sitter import Node

from miners.scopes import functions
from miners.syntax import parse
from sandbox.splice import Spliced, split_body
from schemas.errors import DataError

_LINE_END = re.compile(rb"\r\n|\n|\r")
# Nested scopes whose `yield` makes the function around them no generator.
_SCOPES = frozenset({"function_definition", "lambda", "class_definition"})
# Decorators of generators that must yield exactly once.
_YIELD_ONCE = frozenset({"contextmanager", "asynccontextmanager", "fixture"})


@dataclass(frozen=True, slots=True)
class Target:
    """A function to be proven."""

    row_id: str
    """Row that it belongs to; how results are keyed."""
    path: str
    """File, relative to the tree."""
    fun_name: str
    """Qualified name."""
    start_byte: int
    """Offset of its first decorator or `def` in the file."""


@dataclass(frozen=True, slots=True)
class Function:
    """A target as its file has it."""

    target: Target
    """Which one."""
    code: Spliced
    """Its file, cut around its body."""
    name: str
    """Name of its code object."""
    first_line: int
    """First line of its code object: that of the first decorator."""
    is_async: bool
    """It is a coroutine function or an asynchronous generator function."""
    is_generator: bool
    """It has a `yield` of its own."""
    yields_once: bool
    """A decorator demands that it yields exactly once."""
    returns: str
    """Text of its return annotation, without the quotes of a quoted one; empty without one."""
    first_parameter: str
    """Name of its first parameter, in a method of an instance alone; else empty."""
    class_name: str
    """Name of the class whose method it is; else empty."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Return what tells its code object from all others of the tree."""
        return (self.target.path, self.name, self.first_line)


def read_function(source: bytes, target: Target) -> Function:
    """Return a target's properties.

    DataError `no_definition` when no function starts there, `trivial_body` when its body says nothing that a mock could
    take away (nothing, `pass`, `...`, `return`, `return None`, `raise NotImplementedError`) or it is an overload, whose
    body never runs.
    """
    root = parse(source).root_node
    scoped = next((s for s in functions(source, root, root.has_error) if s.outer.start_byte == target.start_byte), None)
    if scoped is None:
        raise DataError("no_definition", f"no function definition starts at byte {target.start_byte} of {target.path}")
    code = split_body(source, target.start_byte)
    decorators = [_last_name(child) for child in scoped.outer.named_children if child.type == "decorator"]
    if "overload" in decorators:
        raise DataError("trivial_body", "the body of an overload never runs")
    if _is_trivial(code):
        raise DataError("trivial_body", f"nothing to take away: {_excerpt(code.body)}")
    function = scoped.function
    name = scoped.name.rpartition(".")[2]
    outer = scoped.name.rpartition(".")[0]
    in_class = bool(outer) and not outer.endswith("<locals>")
    plain = in_class and name != "__new__" and not {"staticmethod", "classmethod"}.intersection(decorators)
    return Function(
        target=target,
        code=code,
        name=name,
        first_line=1 + len(_LINE_END.findall(source, 0, target.start_byte)),
        is_async=any(child.type == "async" for child in function.children),
        is_generator=_yields(function),
        yields_once=not _YIELD_ONCE.isdisjoint(decorators),
        returns=_unquoted(_text(function.child_by_field_name("return_type"))),
        first_parameter=_first_parameter(function) if plain else "",
        class_name=outer.rpartition(".")[2] if in_class else "",
    )


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def _unquoted(annotation: str) -> str:
    """Return the content of an annotation that is a string, else the annotation."""
    try:
        value = ast.literal_eval(annotation)
    except (SyntaxError, ValueError):
        return annotation
    return value if isinstance(value, str) else annotation


def _last_name(decorator: Node) -> str:
    """Return the last part of a decorator's name: `overload` of `@typing.overload`, `fixture` of `@fixture(...)`."""
    return _text(decorator).lstrip("@").split("(")[0].strip().rpartition(".")[2]


def _first_parameter(function: Node) -> str:
    parameters = function.child_by_field_name("parameters")
    first = None if parameters is None else next((c for c in parameters.named_children if c.type != "comment"), None)
    if first is None:
        return ""
    name = first if first.type == "identifier" else next((c for c in first.children if c.type == "identifier"), None)
    return "" if first.type.endswith("splat_pattern") else _text(name)


def _yields(function: Node) -> bool:
    body = function.child_by_field_name("body")
    stack = [] if body is None else [body]
    while stack:
        node = stack.pop()
        if node.type == "yield":
            return True
        stack.extend(child for child in node.children if child.type not in _SCOPES)
    return False


def _is_trivial(code: Spliced) -> bool:
    """Tell whether every statement of a body is one that does nothing, or only says that it is not implemented."""
    text = b"def f():\n" + (b" " if code.inline else b"") + code.body + b"\n"
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return False  # a newer Python's syntax, or another encoding: something is there
    definition = module.body[0]
    return isinstance(definition, ast.FunctionDef) and all(_says_nothing(node) for node in definition.body)


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Return):
        return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    if isinstance(node, ast.Raise) and node.exc is not None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return False


def _excerpt(body: bytes) -> str:
    return " ".join(body.decode("utf-8", "replace").split())[:80]
