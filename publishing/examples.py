"""One small row of a testbed for the card, chosen from the rows alone so that every build shows the same."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq

from publishing.markdown import code, fenced, link, plain

# Prompt and answer columns of the testbeds that the card shows a row of.
SHOWN = {"random_cut": ("prefix", "target"), "from_docstring": ("prompt_code", "target")}
# Characters of code: shorter methods show little of the task, and the shortest above this fits on a screen.
_MIN_CHARACTERS = 200
_COLUMNS = ("row_id", "repo", "fun_name", "url", "license", "committer_date", "code")


@dataclass(frozen=True, slots=True)
class Example:
    """A row to show."""

    config: str
    """The testbed."""
    repo: str
    """owner/name."""
    fun_name: str
    """Qualified name of the method."""
    url: str | None
    """Permalink, null when the repository has no web address."""
    license: str
    """SPDX expression: code without a known licence is not shown."""
    committer_date: datetime
    """Committer date, UTC."""
    texts: tuple[tuple[str, str], ...]
    """Column and text of what is given and of what is asked for."""


def find_example(config: str, shards: Sequence[Path], shown_repos: Collection[str] = ()) -> Example | None:
    """Return the shortest row of at least 200 characters of printable code with a known licence, else the longest.

    Of the rows on the same side of 200 characters, those of repositories not in `shown_repos` come first. Rows of
    equal length are told apart by row id; None when no row will do.
    """
    shown = SHOWN[config]
    best: tuple[tuple[bool, bool, int, str], Example] | None = None
    for path in shards:
        with pq.ParquetFile(path) as file:
            rows = file.read(columns=[*_COLUMNS, *shown]).to_pylist()
        for row in rows:
            size = len(row["code"])
            if row["license"] is None or not _printable(row["code"]):
                continue
            short = size < _MIN_CHARACTERS
            rank = (short, row["repo"] in shown_repos, -size if short else size, row["row_id"])
            if best is None or rank < best[0]:
                texts = tuple((name, row[name]) for name in shown)
                values = {name: row[name] for name in ("repo", "fun_name", "url", "license", "committer_date")}
                best = rank, Example(config=config, texts=texts, **values)
    return None if best is None else best[1]


def render_example(example: Example) -> str:
    """Return the example as Markdown."""
    title = link(f"{code(example.fun_name)} of {code(example.repo)}", example.url)
    lines = [
        f"### {example.config}",
        f"{title}, committed {example.committer_date.date().isoformat()}, licence {plain(example.license)}.",
    ]
    for name, text in example.texts:
        lines += [f"`{name}`:", fenced(text, "python")]
    return "\n\n".join(lines)


def _printable(text: str) -> bool:
    """Tell whether a text shows on a page as it is: no control characters but tabs and line feeds."""
    return all(char >= " " or char in "\t\n" for char in text)
