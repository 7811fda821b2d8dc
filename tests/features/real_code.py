"""Functions of installed code, each with its own indentation removed, as input for comparisons."""

import ast
import warnings
from pathlib import Path


def methods_of(path: Path) -> list[str]:
    """Return the functions of a file that stand in modules and classes, in source order; none when it does not parse.

    A function that no longer parses as one statement once its lines are dedented is left out.
    """
    try:
        text = path.read_text(encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = text.split("\n")
    return [code for node in _functions(tree) if (code := _dedented(node, lines)) is not None]


def _functions(scope: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node)
        elif isinstance(node, ast.ClassDef | ast.If | ast.Try):
            found.extend(_functions(node))
    return found


def _dedented(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str | None:
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    indent = " " * node.col_offset
    own = lines[first - 1 : node.end_lineno]
    if not own[0].startswith(indent):
        return None
    code = "\n".join(line.removeprefix(indent) for line in own)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parsed = ast.parse(code)
        except SyntaxError:
            return None
    return code if len(parsed.body) == 1 else None
