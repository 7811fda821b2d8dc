"""Files of answers: several samples of a task, and every line that is wrong."""

import json
from pathlib import Path

import pytest

from schemas.errors import ConfigError
from scoring.answers import Answers, read_answers

IDS = ["a", "b", "c"]


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_lines_and_lists_of_one_task_are_its_samples_in_order(tmp_path: Path) -> None:
    path = write(
        tmp_path / "answers.jsonl",
        {"instance_id": "b", "answer": "x"},
        {"instance_id": "a", "answers": ["1", "", "1"], "model": "ignored"},
        {"instance_id": "z", "answer": "y"},
        {"instance_id": "b", "answer": "x"},
        {"instance_id": "c", "answers": []},
    )
    path.write_text(path.read_text(encoding="utf-8") + "\n  \n", encoding="utf-8")
    assert read_answers(path, IDS) == Answers({"a": ("1", "", "1"), "b": ("x", "x")}, ("c",), ("z",), 2)


def test_line_separators_in_an_answer_do_not_end_its_line(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"instance_id": "a", "answer": "x = \'\u2028\'"}\r\n', encoding="utf-8")
    assert read_answers(path, IDS).by_instance == {"a": ("x = '\u2028'",)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is no JSON"),
        ("[]", "line 2 has no instance_id"),
        ('{"answer": "x"}', "line 2 has no instance_id"),
        ('{"instance_id": 3, "answer": "x"}', "line 2 has no instance_id"),
        ('{"instance_id": "a"}', "line 2 must have either answer or answers"),
        ('{"instance_id": "a", "answer": "x", "answers": ["x"]}', "line 2 must have either answer or answers"),
        ('{"instance_id": "a", "answer": null}', 'line 2: an answer is a text .* write "" for an empty answer'),
        ('{"instance_id": "a", "answers": "x"}', "line 2: an answer is a text and answers is a list"),
        ('{"instance_id": "a", "answers": ["x", null]}', "line 2: an answer is a text and answers is a list"),
        ('{"instance_id": "a", "answer": "\\ud800"}', "line 2 holds half a surrogate pair"),
    ],
)
def test_wrong_line_is_named_with_its_number(line: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "answers.jsonl", {"instance_id": "a", "answer": ""})
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_answers(path, IDS)


def test_file_that_is_missing_empty_or_no_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the answers .*No such file"):
        read_answers(tmp_path / "none.jsonl", IDS)
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(ConfigError, match="holds no answer; a line looks like"):
        read_answers(tmp_path / "empty.jsonl", IDS)
    (tmp_path / "latin.jsonl").write_bytes(b'{"instance_id": "\xe9"}')
    with pytest.raises(ConfigError, match="are not UTF-8"):
        read_answers(tmp_path / "latin.jsonl", IDS)
