"""Rows as the page shows them: whole values, hostile texts, long texts, the draw."""

from dataclasses import replace
from pathlib import Path

import pytest

from publishing.release import write_release
from publishing.report.figures import FEATURES
from publishing.report.samples import Item, draw_sample, read_items, stylesheet
from schemas.arrow import to_table
from schemas.execution import RealCode
from schemas.records import DataPoint
from tests.builders import make_point
from tests.publishing.releases import make_inputs, points, real_code_row


def item_of(folder: Path, testbed: str, row_id: str) -> Item:
    [item] = read_items(folder, [(testbed, row_id)])
    return item


def raw_item(folder: Path, **columns: object) -> Item:
    point = make_point(**columns)
    release = write_release(make_inputs(tables={"raw_data": to_table([point], DataPoint)}), folder).folder
    return item_of(release, "raw_data", point.row_id)


def test_a_row_has_its_facts_features_and_texts(tmp_path: Path) -> None:
    point = make_point()
    item = raw_item(tmp_path)
    facts = dict(item.facts)
    assert (item.testbed, item.row_id, item.title, item.url) == ("raw_data", point.row_id, point.fun_name, point.url)
    assert facts["repo"] == point.repo
    assert facts["author_date"] == f"{point.author_date:%Y-%m-%d %H:%M} UTC"
    assert facts["is_test"] == "no"
    assert facts["novelty"] == "added"
    assert item.features == [(name, f"{getattr(point, name):,}") for name in FEATURES]
    assert [(panel.title, panel.asked) for panel in item.panels] == [("code", False)]


def test_what_is_not_known_is_said_to_be_unknown(tmp_path: Path) -> None:
    facts = dict(raw_item(tmp_path, license=None, is_test=True).facts)
    assert (facts["license"], facts["is_test"]) == ("unknown", "yes")


@pytest.mark.parametrize("url", [None, "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", " https://x"])
def test_only_web_addresses_become_links(tmp_path: Path, url: str | None) -> None:
    assert raw_item(tmp_path, url=url).url is None


def test_code_is_escaped_and_coloured(tmp_path: Path) -> None:
    html = raw_item(tmp_path, code="def f():\n    return '</pre><script>alert(1)</script>'\n").panels[0].html
    assert "<script" not in html
    assert "</pre" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert '<span class="k">def</span>' in html


def test_control_characters_are_shown_as_their_pictures(tmp_path: Path) -> None:
    html = raw_item(tmp_path, code="x = '\0\x1b\x0c'\ty\n").panels[0].html
    assert "␀␛␌" in html
    assert "\t" in html


def test_long_texts_are_cut_and_say_so(tmp_path: Path) -> None:
    html = raw_item(tmp_path, code="x = 1\n" + "#" * 7_000).panels[0].html
    assert html.endswith('<em class="cut">1,006 characters not shown</em>')
    assert html.count("#") == 6_000 - len("x = 1\n")


def test_an_answer_is_never_cut(tmp_path: Path) -> None:
    row = replace(real_code_row(points()[0]), canonical_solution="    return 1  # " + "#" * 7_000 + "\n")
    inputs = make_inputs()
    tables = {**inputs.tables, "real_code": to_table([row], RealCode)}
    folder = write_release(replace(inputs, tables=tables), tmp_path).folder
    assert item_of(folder, "real_code", row.row_id).panels[1].html.count("#") == 7_001


def test_of_a_long_left_context_the_end_is_shown_and_of_the_right_one_the_start(tmp_path: Path) -> None:
    row = replace(
        real_code_row(points()[0]), left_context="first = 1\n" + "#" * 7_000 + "\ndef f():\n",
        right_context="\nnext = 2\n" + "#" * 7_000 + "\nlast = 3\n",
    )  # fmt: skip
    inputs = make_inputs()
    tables = {**inputs.tables, "real_code": to_table([row], RealCode)}
    folder = write_release(replace(inputs, tables=tables), tmp_path).folder
    left, solution, right = item_of(folder, "real_code", row.row_id).panels
    assert "first" not in left.html
    assert ">f</span>" in left.html
    assert (solution.title, solution.asked) == ("canonical_solution", True)
    assert "next" in right.html
    assert "last" not in right.html


def test_real_code_shows_what_proves_it(release: Path) -> None:
    [(_, row_id)] = draw_sample(release, {"real_code": 1}, 1, 0)
    facts = dict(item_of(release, "real_code", row_id).facts)
    assert facts["tests that fail with every mock"] == "a"
    assert facts["mocks"] == "pass: caught\nraise: survived"


def test_of_many_tests_the_first_are_named(tmp_path: Path) -> None:
    tests = tuple(f"t.py::test_{index:02d}" for index in range(23))
    row = replace(real_code_row(points()[0]), FAIL_TO_PASS=tests, PASS_TO_PASS=tests)
    inputs = make_inputs()
    tables = {**inputs.tables, "real_code": to_table([row], RealCode)}
    folder = write_release(replace(inputs, tables=tables), tmp_path).folder
    named = dict(item_of(folder, "real_code", row.row_id).facts)["tests that fail with every mock"].splitlines()
    assert named == [*tests[:20], "and 3 more"]


@pytest.mark.parametrize(
    ("testbed", "panels"),
    [
        ("random_cut", [("prefix", False), ("target", True)]),
        ("with_docstring", [("prefix", False), ("target", True)]),
        ("from_docstring", [("prompt_code", False), ("target", True)]),
        ("commit_gen", [("commit_message", False), ("code", True), ("diff", False)]),
        ("raw_data_docstring", [("code", False)]),
    ],
)
def test_what_is_given_comes_before_what_is_asked_for(
    release: Path, testbed: str, panels: list[tuple[str, bool]]
) -> None:
    [drawn] = draw_sample(release, {testbed: 1}, 1, 0)
    assert [(panel.title, panel.asked) for panel in item_of(release, *drawn).panels] == panels


def test_items_come_in_the_order_of_the_sample(release: Path) -> None:
    sample = draw_sample(release, {"raw_data": 6, "commit_gen": 6}, 8, 3)
    assert [(item.testbed, item.row_id) for item in read_items(release, sample)] == sample


def test_another_seed_draws_other_rows_in_another_order(release: Path) -> None:
    rows = {"raw_data": 6}
    assert draw_sample(release, rows, 6, 1) != draw_sample(release, rows, 6, 2)
    assert sorted(draw_sample(release, rows, 6, 1)) == sorted(draw_sample(release, rows, 6, 2))
    assert draw_sample(release, rows, 0, 1) == []


def test_colours_are_there_for_light_and_dark_screens() -> None:
    light, dark = stylesheet().split("@media (prefers-color-scheme: dark)")
    assert ".code .k {" in light
    assert ".code .k {" in dark
