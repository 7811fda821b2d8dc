"""SummarizationGen: code summarisation, code to text."""

from features.docstrings import code_without_docstring
from schemas.errors import DataError
from schemas.records import DataPoint
from schemas.tasks import SummarizationGen
from testbeds.leaks import contains_answer
from testbeds.task import Inputs, extend, require_docstring, require_generation

# "> 10 words or > 50 characters" (Galeras, ICSME 2023), both of the docstring, the text that is asked for.
MIN_WORDS = 10
MIN_CHARACTERS = 50


def summarization_gen(point: DataPoint, inputs: Inputs) -> SummarizationGen:
    """Return the row whose target is the docstring.

    DataError reasons: `is_test`, `no_docstring`, `docstring_too_short` (not valid), `too_short` (valid, but below
    this testbed's size), `syntax_errors`, `trivial_body`, and `answer_in_prompt` when the docstring's text stands in
    the code a second time.
    """
    require_generation(point)
    docstring = require_docstring(point)
    words = len(docstring.split())
    if words <= MIN_WORDS and len(docstring) <= MIN_CHARACTERS:
        raise DataError("too_short", f"docstring of {words} words and {len(docstring)} characters")
    code = code_without_docstring(point.code)
    if contains_answer(code, docstring):
        raise DataError("answer_in_prompt", "the code has the docstring's text a second time")
    return extend(point, SummarizationGen, code_without_docstring=code, target=docstring)
