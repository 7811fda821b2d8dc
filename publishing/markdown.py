"""Pieces of Markdown that no name, message or code of a repository can break out of."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote, urlsplit

_BACKTICKS = re.compile("`+")
_SHORTEST_FENCE = 3  # CommonMark 0.31, "Fenced code blocks"
_URL_SAFE = "/:@!$&'*+,;=~%?#"  # what may stand in a link's target; brackets, spaces and pipes are percent-encoded


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def code(text: str) -> str:
    """Return text as a code span that cannot break a table or the span."""
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


def plain(text: str) -> str:
    """Return text for a table cell or paragraph: one line, no pipes, no tags."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def link(label: str, url: str | None) -> str:
    """Return Markdown linked to a web address; the label alone without one or when it is no http(s) address."""
    if url is None or urlsplit(url).scheme not in ("http", "https"):
        return label
    return f"[{label}]({quote(url, safe=_URL_SAFE)})"


def fenced(text: str, language: str = "") -> str:
    """Return text as fenced code; the fence is longer than any run of backticks in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def share(part: int, whole: int) -> str:
    """Return a share in per cent with one decimal; `<0.1%` for what would round to nothing, 0.0% for 0 of 0."""
    text = f"{100 * part / whole if whole else 0:.1f}%"
    return "<0.1%" if part and text == "0.0%" else text


def size(num_bytes: int) -> str:
    """Return a file size with one decimal: KB (1,000 bytes) below 1 MB (1,000,000 bytes), else MB."""
    kilobytes = f"{num_bytes / 1e3:,.1f}"
    return f"{kilobytes} KB" if len(kilobytes) <= len("999.9") else f"{num_bytes / 1e6:,.1f} MB"
