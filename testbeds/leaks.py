"""Whether a prompt gives its own answer away."""

import re

# Shorter answers (`self.name`, `not found`) stand in prose by chance.
MIN_ANSWER_CHARACTERS = 12
# The marks in front of code quoted in a doctest (`>>> ` and `... `, see the doctest module).
_QUOTE_MARK = re.compile(r"^[ \t]*(?:>>>|\.\.\.)", re.MULTILINE)


def contains_answer(prompt: str, answer: str) -> bool:
    """Return whether the whole answer stands in the prompt; white space, doctest marks and a leading `return` apart.

    An answer with fewer than MIN_ANSWER_CHARACTERS characters, white space apart, counts as not contained.
    """
    needle = _squeeze(answer.removeprefix("return "))
    if len(needle) < MIN_ANSWER_CHARACTERS:
        return False
    return needle in _squeeze(prompt) or needle in _squeeze(_QUOTE_MARK.sub("", prompt))


def _squeeze(text: str) -> str:
    return "".join(text.split())
