"""What the task files make of a model's output."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publishing.harness.answers import (
    code_answer,
    edit_similarity,
    exact_match,
    fill,
    judge,
    levenshtein,
    text_answer,
)


def by_table(first: str, second: str) -> int:
    """The textbook's table, row by row."""
    row = list(range(len(second) + 1))
    for i, one in enumerate(first, 1):
        above, row[0] = row[:], i
        for j, other in enumerate(second, 1):
            row[j] = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (one != other))
    return row[-1]


@given(st.text(alphabet="abé\n", max_size=70), st.text(alphabet="abé\n", max_size=70))
def test_the_distance_is_that_of_the_textbooks_table(first: str, second: str) -> None:
    assert levenshtein(first, second) == by_table(first, second)


def test_similarity_is_one_minus_the_share_of_edits() -> None:
    assert edit_similarity("kitten", "sitting") == 1 - 3 / 7
    assert edit_similarity("", "") == 1.0
    assert edit_similarity("", "x") == 0.0
    assert edit_similarity("a = 1  \nb\n", "\n a = 1\nb") == 1.0


def test_only_white_space_at_ends_does_not_count() -> None:
    assert exact_match("return 1  \n", "return 1") == 1.0
    assert exact_match("return  1", "return 1") == 0.0


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("return 1\n", "return 1"),
        ("    return 1\n\n", "    return 1"),
        ("Sure:\n```python\n    return 1\n```\nDone.", "    return 1"),
        ("```\nreturn '''`'''\n", "return '''`'''"),
        ("~~~py\nreturn 1\n~~~~", "return 1"),
        ("````\n```\nx\n```\n````", "```\nx\n```"),
        ("<think>return 2</think>\n    return 1", "    return 1"),
        ("def f(a):\n    return 1", "return 1"),
        ("```python\ndef f(a):\n    b = 2\n    return b\n```", "b = 2\n    return b"),
        ("", ""),
    ],
)
def test_code_is_found_in_an_output(output: str, answer: str) -> None:
    assert code_answer(output, "def f(a):\n    ") == answer


def test_what_was_given_is_dropped_only_when_it_is_repeated_whole() -> None:
    assert code_answer("def f(a): pass", "def f(b):") == "def f(a): pass"
    assert code_answer("x", "") == "x"


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ('"""Return the area."""', "Return the area."),
        ("'Return the area.'", "Return the area."),
        ("```\nFix the area\n```", "Fix the area"),
        ("<think>hm</think> Say `x`.", "Say `x`."),
        ('"', '"'),
        (" ", ""),
    ],
)
def test_words_are_found_in_an_output(output: str, answer: str) -> None:
    assert text_answer(output) == answer


def test_a_prompt_is_filled_once() -> None:
    assert fill("{a} and {b}", {"a": "{b}", "b": "\\1 {c}"}) == "{b} and \\1 {c}"


STUB = """
import json, sys
options = dict(zip(sys.argv[3::2], sys.argv[4::2]))
answers = [json.loads(line) for line in open(options["--answers"], encoding="utf-8")]
seen = {}
with open(options["--out"], "w", encoding="utf-8") as out:
    for answer in reversed(answers):
        pass
    for answer in answers:
        name = answer["instance_id"]
        sample = seen[name] = seen.get(name, -1) + 1
        verdict = "passed" if answer["answer"] == "good" else "failed"
        row = {"instance_id": name, "sample": sample, "verdict": verdict, "reason": options["--workspace"]}
        print(json.dumps(row), file=out)
"""


def test_answers_are_judged_by_the_command_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stub.py").write_text(STUB)
    monkeypatch.setenv("POSTQUEM", f"'{sys.executable}' '{tmp_path}/stub.py'")
    monkeypatch.setenv("POSTQUEM_WORKSPACE", "w")
    answers = [("b", "good"), ("a", "bad"), ("b", "bad"), ("b", "good")]
    expected = [("passed", "w"), ("failed", "w"), ("failed", "w"), ("passed", "w")]
    assert judge(answers, tmp_path) == expected


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{sys.executable} -c 'import sys; sys.exit(\"Error: no tasks\")'", "failed: Error: no tasks$"),
        ("/nowhere/postquem", r"/nowhere/postquem cannot be run \(.*\); set POSTQUEM to the command$"),
    ],
)
def test_a_command_that_fails_says_nothing_about_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str
) -> None:
    monkeypatch.setenv("POSTQUEM", command)
    with pytest.raises(RuntimeError, match=message):
        judge([("a", json.dumps("x"))], tmp_path)
