"""The rows that a reviewer looks at: a seeded sample over all testbeds, made ready for the page.

Galeras (ICSME 2023) validated 960 rows by hand; the sample here is drawn the same way from every testbed and the same
for everybody who gives the same seed, so that two reviewers' marks can be compared.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import DiffLexer, PythonLexer, TextLexer

from publishing.facts import read_columns, shards_of
from publishing.shards import EXCLUSIONS
from publishing.statistics import FEATURES

_LEXERS = {"python": PythonLexer(stripnl=False), "diff": DiffLexer(stripnl=False), "text": TextLexer(stripnl=False)}
_FORMATTER = HtmlFormatter(nowrap=True)
_MOST_CHARACTERS = 6_000  # of one text: a screen shows 60 lines, and one giant must not fill the page
_MOST_TESTS = 20
# Browsers drop these; the pictures of Unicode's block "Control Pictures" show them.
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n\r"}
_WEB = re.compile(r"https?://")


@dataclass(frozen=True, slots=True)
class Panel:
    """One text of a row."""

    title: str
    """What it is, with the name of its column."""
    html: str
    """The text, highlighted and escaped."""
    asked: bool
    """It is what a model is asked for."""


@dataclass(frozen=True, slots=True)
class Item:
    """A row as the page shows it."""

    testbed: str
    """Its testbed."""
    row_id: str
    """Its id."""
    title: str
    """Qualified name."""
    url: str | None
    """Permalink, null without a web address."""
    facts: list[tuple[str, str]]
    """Name and value of what a reviewer checks."""
    features: list[tuple[str, str]]
    """Name and value of each counted feature."""
    panels: list[Panel]
    """Texts, what is given before what is asked for."""


# Texts of each testbed: column, kind of text, asked for or given.
_PANELS: Mapping[str, tuple[tuple[str, str, bool], ...]] = {
    "random_cut": (("prefix", "python", False), ("target", "python", True)),
    "with_docstring": (("prefix", "python", False), ("target", "python", True)),
    "from_docstring": (("prompt_code", "python", False), ("target", "python", True)),
    "commit_gen": (("commit_message", "text", False), ("code", "python", True), ("diff", "diff", False)),
    "summarization_gen": (("code_without_docstring", "python", False), ("target", "text", True)),
    "real_code": (
        ("left_context", "python", False), ("canonical_solution", "python", True), ("right_context", "python", False),
    ),
}  # fmt: skip
_RAW_PANELS = (("code", "python", False),)
_FACTS = (
    "repo", "path", "start_line", "commit_id", "author_date", "committer_date", "license", "novelty", "is_test",
    "commit_message",
)  # fmt: skip


def draw_sample(folder: Path, rows: Mapping[str, int], size: int, seed: int) -> list[tuple[str, str]]:
    """Return testbed and row id of at most `size` rows: as many of every testbed as there are, the rest of larger ones.

    A row's place in the draw is the SHA-256 of seed, testbed and row id, so that other rows do not change it.
    """
    left = size
    chosen = []
    names = sorted((name for name in rows if name != EXCLUSIONS and rows[name]), key=lambda name: rows[name])
    for index, name in enumerate(names):
        wanted = min(rows[name], left // (len(names) - index))
        left -= wanted
        ids = read_columns(folder, name, ["row_id"])["row_id"].to_pylist()
        drawn = nsmallest(wanted, ids, key=lambda row_id, name=name: _rank(seed, name, row_id))  # type: ignore[misc] # bound
        chosen += [(name, row_id) for row_id in drawn]
    order = {name: index for index, name in enumerate(rows)}
    return sorted(chosen, key=lambda item: (order[item[0]], _rank(seed, *item)))


def _rank(seed: int, testbed: str, row_id: str) -> str:
    return hashlib.sha256(f"{seed}\0{testbed}\0{row_id}".encode()).hexdigest()


def read_items(folder: Path, sample: list[tuple[str, str]]) -> Iterator[Item]:
    """Yield the rows of a sample in its order."""
    names = dict.fromkeys(name for name, _ in sample)
    for name in names:
        wanted = [row_id for testbed, row_id in sample if testbed == name]
        found: dict[str, dict[str, Any]] = {}
        for path in shards_of(folder, name):
            table = pq.read_table(path, filters=[("row_id", "in", wanted)])
            found |= {row["row_id"]: row for row in table.to_pylist()}
        for row_id in wanted:
            yield _item(name, found[row_id])


def _item(testbed: str, row: dict[str, Any]) -> Item:
    url = row["url"]
    return Item(
        testbed,
        row["row_id"],
        row["fun_name"],
        url if url and _WEB.match(url) else None,
        [(name, _text(row[name])) for name in _FACTS] + _proof(row),
        [(name, f"{row[name]:,}") for name in FEATURES],
        [_panel(row, *panel) for panel in _PANELS.get(testbed, _RAW_PANELS)],
    )


def _text(value: Any) -> str:  # noqa: ANN401 - any column
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.strftime("%Y-%m-%d %H:%M UTC") if hasattr(value, "strftime") else str(value)


def _proof(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what proves a real_code row."""
    if "mocks" not in row:
        return []
    tests = row["FAIL_TO_PASS"]
    more = [f"and {len(tests) - _MOST_TESTS:,} more"] if len(tests) > _MOST_TESTS else []
    mocks = [f"{mock['kind']}: {mock['verdict']}" for mock in row["mocks"]]
    return [("tests that fail with every mock", "\n".join(tests[:_MOST_TESTS] + more)), ("mocks", "\n".join(mocks))]


def _panel(row: dict[str, Any], column: str, kind: str, asked: bool) -> Panel:
    text, over = row[column], len(row[column]) - _MOST_CHARACTERS
    if over <= 0 or asked:
        return Panel(column, _highlight(text, kind), asked)
    # What stands next to the asked part matters: the end of what comes before it, the start of what comes behind.
    cut = f'<em class="cut">{over:,} characters not shown</em>'
    if column in ("prefix", "left_context"):
        return Panel(column, f"{cut}\n{_highlight(text[over:], kind)}", asked)
    return Panel(column, f"{_highlight(text[:_MOST_CHARACTERS], kind)}{cut}", asked)


def _highlight(text: str, kind: str) -> str:
    return str(highlight(text.translate(_CONTROLS), _LEXERS[kind], _FORMATTER))


def stylesheet() -> str:
    """Return the colours of highlighted code, for light and dark screens."""
    light = HtmlFormatter(style="default").get_style_defs(".code")  # type: ignore[no-untyped-call] # the stubs leave it out
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")  # type: ignore[no-untyped-call] # the stubs leave it out
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
