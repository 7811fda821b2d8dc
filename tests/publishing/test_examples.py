from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from publishing.examples import Example, find_example, render_example
from publishing.facts import read_facts
from publishing.release import write_release
from schemas.arrow import to_table
from schemas.records import DataPoint
from schemas.tasks import FromDocString, RandomCut
from tests.builders import make_point
from tests.publishing.releases import make_inputs, task
from warehouse.tables import write_rows

SHARD = "test-00000-of-00001.parquet"
LONG = "def f():\n    return '" + "x" * 200 + "'"
LONGER = LONG + "\n"


def row(fun_name: str, code: str, license: str | None = "MIT", repo: str = "o/n") -> RandomCut:
    point = make_point(fun_name=fun_name, code=code, license=license, repo=repo)
    return task(point, RandomCut, prefix=code[:8], target=code[8:], cut_byte=8)


def chosen(folder: Path, rows: list[RandomCut], shown_repos: Sequence[str] = ()) -> str | None:
    shards = []
    for index in range(0, len(rows), 2):
        path = folder / f"test-{index:05d}.parquet"
        write_rows(path, rows[index : index + 2], RandomCut)
        shards.append(path)
    example = find_example("random_cut", shards, shown_repos)
    return None if example is None else example.fun_name


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("longer", LONGER), row("short", "def f(): return 1"), row("long", LONG)], "long"),
        ([row("short", "def f(): return 1"), row("less_short", "def f(): return 12")], "less_short"),
        ([row("unlicensed", LONG, None), row("cr", LONG + "\r"), row("nul", LONG + "\0"), row("ok", LONGER)], "ok"),
        ([row("unlicensed", LONG, None)], None),
        ([], None),
    ],
)
def test_the_shortest_telling_row_is_shown(tmp_path: Path, rows: list[RandomCut], expected: str | None) -> None:
    assert chosen(tmp_path, rows) == expected
    assert chosen(tmp_path, rows[::-1]) == expected


def test_equal_lengths_are_told_apart_by_row_id(tmp_path: Path) -> None:
    rows = [row(name, LONG) for name in ("a", "b", "c", "d")]
    expected = min(rows, key=lambda item: item.row_id).fun_name
    assert [chosen(tmp_path, rows), chosen(tmp_path, rows[::-1])] == [expected, expected]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("shown", LONG), row("other", LONGER, repo="a/b")], "other"),
        ([row("shown", LONG), row("short", "def f(): return 1", repo="a/b")], "shown"),
        ([row("shown", LONG), row("unlicensed", LONG, None, repo="a/b")], "shown"),
        ([row("shown", "def f(): return 12"), row("short", "def f(): return 1", repo="a/b")], "short"),
    ],
)
def test_a_telling_row_of_a_repository_not_shown_yet_comes_first(
    tmp_path: Path, rows: list[RandomCut], expected: str
) -> None:
    assert chosen(tmp_path, rows, ["o/n"]) == expected
    assert chosen(tmp_path, rows[::-1], ["o/n"]) == expected


def test_examples_are_of_different_repositories_where_there_are_several(tmp_path: Path) -> None:
    points = [make_point(code=LONG, repo="a/b"), make_point(code=LONGER, repo="o/n")]
    prompts = [task(point, FromDocString, prompt_code="p\n", target="t") for point in points]
    tables = {
        "random_cut": to_table([row("area", LONG, repo="a/b")], RandomCut),
        "from_docstring": to_table(prompts, FromDocString),
    }
    facts = read_facts(write_release(make_inputs([], tables=tables), tmp_path).folder)
    assert [(example.config, example.repo) for example in facts.examples] == [
        ("random_cut", "a/b"),
        ("from_docstring", "o/n"),
    ]


def test_an_example_is_rendered_whole() -> None:
    example = Example(
        config="from_docstring",
        repo="o/n",
        fun_name="C.f",
        url="https://example.org/o/n/blob/1/a.py#L1-L3",
        license="MIT",
        committer_date=datetime(2024, 3, 1, 13, tzinfo=UTC),
        texts=(("prompt_code", 'def f():\n    """Use ```` here."""\n'), ("target", "    return 1")),
    )
    assert render_example(example) == (
        "### from_docstring\n\n"
        "[`C.f` of `o/n`](https://example.org/o/n/blob/1/a.py#L1-L3), committed 2024-03-01, licence MIT.\n\n"
        '`prompt_code`:\n\n`````python\ndef f():\n    """Use ```` here."""\n`````\n\n'
        "`target`:\n\n```python\n    return 1\n```"
    )
    assert "\n\n`C.f` of `o/n`, committed" in render_example(replace(example, url=None))


def test_the_card_shows_one_row_of_each_shown_testbed(tmp_path: Path) -> None:
    point = make_point(code=LONG)
    tables = {
        "raw_data": to_table([point], DataPoint),
        "random_cut": to_table([row("area", LONG)], RandomCut),
        "from_docstring": to_table([task(point, FromDocString, prompt_code="p\n", target="---\n# t")], FromDocString),
    }
    card = (write_release(make_inputs([], tables=tables), tmp_path).folder / "README.md").read_text()
    text = card.split("\n## Examples\n\n")[1].split("\n\n## ")[0]
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "### random_cut",
        "### from_docstring",
        "# t",
    ]
    assert "`target`:\n\n```python\n---\n# t\n```" in text
