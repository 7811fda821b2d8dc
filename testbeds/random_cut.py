"""RandomCut: code completion, code to code. The docstring is removed, the body is cut at a random token boundary."""

from features.docstrings import code_without_docstring
from schemas.errors import DataError
from schemas.records import DataPoint
from schemas.tasks import RandomCut
from testbeds.cuts import draw_cut
from testbeds.task import Inputs, extend, require_generation

# "> 10 tokens or > 100 characters" (Galeras, ICSME 2023, testbed RandomCut).
MIN_TOKENS = 10
MIN_CHARACTERS = 100


def random_cut(point: DataPoint, inputs: Inputs) -> RandomCut:
    """Return the cut row; prefix + target is the code without its docstring.

    Tokens are the point's token_count, characters those of the code without its docstring. DataError reasons:
    `is_test`, `syntax_errors`, `trivial_body`, `too_short`, `no_cut_point`.
    """
    require_generation(point)
    code = code_without_docstring(point.code)
    if point.token_count <= MIN_TOKENS and len(code) <= MIN_CHARACTERS:
        raise DataError("too_short", f"{point.token_count} tokens, {len(code)} characters without docstring")
    cut = draw_cut(code, inputs.seed, point.row_id)
    return extend(point, RandomCut, prefix=cut.prefix, target=cut.target, cut_byte=cut.cut_byte)
