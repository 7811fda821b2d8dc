"""CommitGen: commit message and code, usable in both directions."""

from schemas.errors import DataError
from schemas.records import DataPoint
from schemas.tasks import CommitGen
from testbeds.leaks import contains_answer
from testbeds.messages import require_meaningful
from testbeds.task import Inputs, extend, require_generation


def commit_gen(point: DataPoint, inputs: Inputs) -> CommitGen:
    """Return the row with the diff of the method's file.

    DataError reasons: `is_test`, `syntax_errors`, `trivial_body`, those of `require_meaningful`, `diff_missing`, and
    `answer_in_prompt` when the message quotes the whole code or the code or diff the whole message.
    """
    require_generation(point)
    text = require_meaningful(point.commit_message, author_is_bot=point.author_is_bot)
    diff = inputs.diffs.get((point.repo, point.commit_id, point.path))
    if not diff:
        raise DataError("diff_missing", f"no diff of {point.path} at {point.commit_id}")
    if contains_answer(point.commit_message, point.code):
        raise DataError("answer_in_prompt", "the commit message quotes the code")
    if contains_answer(point.code, text) or contains_answer(diff, text):
        raise DataError("answer_in_prompt", "the code or its diff quotes the commit message")
    return extend(point, CommitGen, diff=diff)
