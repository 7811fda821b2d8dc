"""The default value of an annotated type, as source text: what a typed mock returns."""

import ast
from collections.abc import Callable

_PLAIN = {
    "str": '""', "Text": '""', "AnyStr": '""', "LiteralString": '""', "bytes": 'b""', "bytearray": "bytearray()",
    "memoryview": 'memoryview(b"")', "int": "0", "float": "0.0", "complex": "0j", "bool": "False",
    "TypeGuard": "False", "TypeIs": "False", "range": "range(0)",
    "list": "[]", "List": "[]", "Sequence": "[]", "MutableSequence": "[]", "Iterable": "[]", "Collection": "[]",
    "Container": "[]", "Reversible": "[]", "deque": "[]",
    "dict": "{}", "Dict": "{}", "Mapping": "{}", "MutableMapping": "{}", "OrderedDict": "{}", "defaultdict": "{}",
    "DefaultDict": "{}", "Counter": "{}",
    "set": "set()", "Set": "set()", "AbstractSet": "set()", "MutableSet": "set()", "frozenset": "frozenset()",
    "FrozenSet": "frozenset()", "Iterator": "iter(())", "Generator": "iter(())",
    "Callable": "lambda *args, **kwargs: None",
}  # fmt: skip
"""By the last part of a type's name; types that are not here have no default but None."""
# What the data model demands of methods that usually are not annotated.
_SPECIAL = {
    "__len__": "0", "__hash__": "0", "__int__": "0", "__index__": "0", "__float__": "0.0", "__bool__": "False",
    "__contains__": "False", "__eq__": "False", "__ne__": "False", "__lt__": "False", "__le__": "False",
    "__gt__": "False", "__ge__": "False", "__str__": '""', "__repr__": '""', "__format__": '""', "__bytes__": 'b""',
    "__iter__": "iter(())", "__dir__": "[]",
}  # fmt: skip


def default_of(annotation: str, owner: str = "", instance: str = "") -> str | None:
    """Return source text of a type's default value; None where there is none that differs from None.

    `owner` is the class of a method and `instance` the name by which its body knows the instance: a method that returns
    its own class (`Self`, or by name) returns the instance unchanged.
    """
    try:
        node = ast.parse(annotation.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return _Defaults(owner, instance).of(node)


def special_default(name: str) -> str | None:
    """Return the default of a special method that has no annotation; None for any other function."""
    return _SPECIAL.get(name)


def yielded(annotation: str) -> str:
    """Return what an annotated generator yields: `T` of `Iterator[T]`, `Generator[T, ...]`; empty when unknown."""
    try:
        node = ast.parse(annotation.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    if not isinstance(node, ast.Subscript):
        return ""
    return ast.unparse(_arguments(node)[0])


def _arguments(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]


class _Defaults:
    def __init__(self, owner: str, instance: str) -> None:
        self.owner = owner
        self.instance = instance

    def of(self, node: ast.expr) -> str | None:
        """Return the default of a parsed annotation."""
        if isinstance(node, ast.Constant):
            return default_of(node.value, self.owner, self.instance) if isinstance(node.value, str) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.first([node.left, node.right])
        if isinstance(node, ast.Subscript):
            return self.generic(_name(node.value), node)
        return self.named(_name(node))

    def named(self, name: str) -> str | None:
        """Return the default of a type by the last part of its name."""
        if self.instance and name in ("Self", self.owner):
            return self.instance
        return "()" if name in ("tuple", "Tuple") else _PLAIN.get(name)

    def generic(self, name: str, node: ast.Subscript) -> str | None:
        """Return the default of a subscripted type."""
        arguments = _arguments(node)
        forms: dict[str, Callable[[], str | None]] = {
            "Optional": lambda: self.of(arguments[0]),
            "Union": lambda: self.first(arguments),
            "Annotated": lambda: self.of(arguments[0]),
            "Literal": lambda: _literal(arguments[0]),
            "tuple": lambda: self.tuple(node, arguments),
            "Tuple": lambda: self.tuple(node, arguments),
        }
        return forms[name]() if name in forms else self.named(name)

    def first(self, members: list[ast.expr]) -> str | None:
        """Return the first default that a union's members have."""
        return next((text for member in members if (text := self.of(member)) is not None), None)

    def tuple(self, node: ast.Subscript, arguments: list[ast.expr]) -> str:
        """Return a tuple of the annotated shape."""
        ellipsis = isinstance(arguments[-1], ast.Constant) and arguments[-1].value is ...
        if ellipsis or (isinstance(node.slice, ast.Tuple) and not node.slice.elts):
            return "()"
        parts = [self.of(argument) or "None" for argument in arguments]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _literal(node: ast.expr) -> str | None:
    return ast.unparse(node) if isinstance(node, ast.Constant) and node.value is not None else None
