"""FromDocString: code generation, text to code. Signature and docstring are given, the body is asked for."""

import re

from miners.syntax import Definition
from schemas.errors import DataError
from schemas.records import DataPoint
from schemas.tasks import FromDocString
from testbeds.cuts import statement_tokens
from testbeds.leaks import contains_answer
from testbeds.task import Inputs, extend, require_docstring, require_generation, require_parsed

_BLANK = rb"(?:[ \t\f]|\\(?:\r\n|\r|\n))*"  # white space inside a logical line, continuations included
# What may stand between a docstring and the next statement: a semicolon, then a comment and the line's end.
_DOCSTRING_TAIL = re.compile(_BLANK + rb"(?:;" + _BLANK + rb")?(?:(?:#[^\r\n]*)?(?:\r\n|\r|\n))?")


def from_docstring(point: DataPoint, inputs: Inputs) -> FromDocString:
    """Return the row; prompt_code + target is the code, and prompt_code ends with the docstring's line.

    A statement on the docstring's own line (`"..."; return 1`) begins the target. Comments on the lines between
    docstring and body belong to the target. DataError reasons: `is_test`, `no_docstring`, `docstring_too_short`,
    `syntax_errors`, `trivial_body`, and `answer_in_prompt` when the prompt quotes the whole body.
    """
    require_generation(point)
    docstring = require_docstring(point)
    parsed = require_parsed(point.code)
    source, definition = parsed.source, parsed.definition
    end = prompt_end(source, definition)
    answer = " ".join(token.text for token in statement_tokens(definition))
    prompt = source[:end].decode()
    if contains_answer(prompt, answer) or contains_answer(docstring, answer):
        raise DataError("answer_in_prompt", "the docstring quotes the body")
    return extend(point, FromDocString, prompt_code=prompt, target=source[end:].decode())


def prompt_end(source: bytes, definition: Definition) -> int:
    """Return the offset behind the docstring's line, or behind its semicolon when a statement follows there."""
    if definition.docstring is None:
        # The data point has a docstring, so this is another reading of the same code by the grammar.
        raise DataError("syntax_errors", "the docstring is not where the syntax tree should have it")
    tail = _DOCSTRING_TAIL.match(source, definition.docstring.end_byte)
    return definition.docstring.end_byte if tail is None else tail.end()
