"""Docstrings of a method: text, signature before it, code without it, and whether a body says anything."""

import inspect
import re

from tree_sitter import Node

from features.parsing import ParsedCode, parse_method
from miners.syntax import docstring_value

# A docstring is valid when it has more than 3 words (Galeras, ICSME 2023, "RawDataDocstring").
VALID_DOCSTRING_WORDS = 3

_BLANKS = rb"(?:[ \t\f]|\\(?:\r\n|\r|\n))*"  # white space inside a logical line, continuations included
_SEMICOLON = re.compile(_BLANKS + rb";" + _BLANKS)
_LINE_REST = re.compile(_BLANKS + rb"(?:\r\n|\r|\n|$)")


def docstring_of(parsed: ParsedCode) -> str | None:
    """Return the docstring cleaned as `inspect.cleandoc` does, None when the method has none.

    Lone surrogates (from escapes such as `\\ud83d`) are backslash-escaped: no Parquet string can hold them.
    """
    statement = parsed.definition.docstring
    value = None if statement is None else docstring_value(statement)
    return None if value is None else inspect.cleandoc(value).encode("utf-8", "backslashreplace").decode("utf-8")


def is_valid_docstring(docstring: str | None) -> bool:
    """Return whether a docstring has more than 3 words."""
    return docstring is not None and len(docstring.split()) > VALID_DOCSTRING_WORDS


def signature_of(parsed: ParsedCode) -> str:
    """Return the header from `async` or `def` to the colon that ends it: no decorators, line breaks kept."""
    definition = parsed.definition
    return parsed.source[definition.function.start_byte : definition.header_end].decode("utf-8")


def code_without_docstring(code: str) -> str:
    """Return the code with the docstring statement removed; unchanged when there is none.

    A docstring that stands alone on its lines goes with them; the semicolon that parts it from a following
    statement goes too; a comment behind it stays. A docstring that is the whole body becomes `pass`, so that the
    result always parses when the code does. Raises DataError as `parse_method` does.
    """
    parsed = parse_method(code)
    docstring = parsed.definition.docstring
    if docstring is None:
        return code
    source, start, end = parsed.source, docstring.start_byte, docstring.end_byte
    if not parsed.definition.statements:
        return (source[:start] + b"pass" + source[end:]).decode("utf-8")
    if (semicolon := _SEMICOLON.match(source, end)) is not None:
        end = semicolon.end()
    line_start = max(source.rfind(b"\n", 0, start), source.rfind(b"\r", 0, start)) + 1
    line_rest = _LINE_REST.match(source, end)
    if line_rest is not None and not source[line_start:start].strip():
        start, end = line_start, line_rest.end()
    return (source[:start] + source[end:]).decode("utf-8")


def is_trivial_body(code: str) -> bool:
    """Return whether the body says nothing: only docstring, constants such as `...`, `pass`, NotImplementedError.

    Raises DataError as `parse_method` does.
    """
    return all(_is_trivial(statement) for statement in parse_method(code).definition.statements)


def _is_trivial(statement: Node) -> bool:
    """Return whether a statement is `pass`, `...`, a bare string, or raises NotImplementedError."""
    if statement.type == "pass_statement":
        return True
    if statement.type not in ("expression_statement", "raise_statement") or not statement.named_children:
        return False
    value = statement.named_children[0]
    if statement.type == "expression_statement":
        return value.type == "ellipsis" or docstring_value(statement) is not None
    raised = value.child_by_field_name("function") if value.type == "call" else value
    return raised is not None and raised.text == b"NotImplementedError"
