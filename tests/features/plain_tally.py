"""The obvious way to count tokens, lines and conditions: split by lizard's pattern, look at each token."""

import re

from features.lexical import CONDITIONS, Tally

# lizard 1.24, lizard_languages/token_pattern.py, without the alternatives of other languages.
TOKEN = re.compile(
    rb"#[^\n]*"  # comment
    rb'|"""(?:\\.|[^\\])*?"""'
    rb"|'''(?:\\.|[^\\])*?'''"
    rb"|[A-Za-z0-9_\x80-\xff]+"  # name, keyword, string prefix, part of a number
    rb'|"(?:\\.|[^"\\\n])*"'
    rb"|'(?:\\.|[^'\\\n])*'"
    rb"|:=|::|\*\*|<<=|>>=|==|!=|<=|>=|->|\+\+|--|\+=|-=|\^=|&=|\|=|//=?|\.\.\."
    rb"|\\\r?\n|\n"  # line continuation, line end
    rb"|[^ \t\r\f\v]",
    re.DOTALL,
)


def plain_tally(text: bytes) -> Tally:
    """Return what `features.lexical.tally` returns."""
    n_tokens = n_lines = n_conditions = 0
    fresh = True  # no token of this line yet
    for token in TOKEN.findall(text):
        if token == b"\n":
            fresh = True
        elif not token.startswith(b"#"):
            n_tokens += 1
            n_lines += fresh + token.count(b"\n")
            fresh = False
            n_conditions += token in CONDITIONS
    return Tally(n_tokens, n_lines, n_conditions)
