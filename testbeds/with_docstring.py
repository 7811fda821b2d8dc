"""WithDocString: code completion, code and text to code. The docstring stays, the body is cut behind it."""

from schemas.errors import DataError
from schemas.records import DataPoint
from schemas.tasks import WithDocString
from testbeds.cuts import draw_cut
from testbeds.leaks import contains_answer
from testbeds.task import Inputs, extend, require_docstring, require_generation


def with_docstring(point: DataPoint, inputs: Inputs) -> WithDocString:
    """Return the cut row; prefix + target is the code, the docstring is in the prefix.

    DataError reasons: `is_test`, `no_docstring`, `docstring_too_short`, `syntax_errors`, `trivial_body`,
    `no_cut_point`, and `answer_in_prompt` when the docstring quotes the whole target.
    """
    require_generation(point)
    docstring = require_docstring(point)
    cut = draw_cut(point.code, inputs.seed, point.row_id)
    if contains_answer(docstring, cut.answer):
        raise DataError("answer_in_prompt", "the docstring quotes the target")
    return extend(point, WithDocString, prefix=cut.prefix, target=cut.target, cut_byte=cut.cut_byte)
