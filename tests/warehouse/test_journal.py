"""What was answered is kept."""

import errno
from pathlib import Path

import pytest

from schemas.errors import PipelineError
from warehouse import tables
from warehouse.journal import Journal


def test_a_value_comes_back_under_its_key_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "github")
    assert journal.get("a") is None
    journal.put("a", {"n": 1, "text": "é\u2028\ud800"})
    journal.put("b", {})
    assert (journal.get("a"), journal.get("b"), journal.get("c")) == ({"n": 1, "text": "é\u2028\ud800"}, {}, None)
    journal.put("a", {"n": 2})
    assert Journal(tmp_path / "github").get("a") == {"n": 2}
    journal.remove("a")
    journal.remove("a")
    assert (journal.get("a"), journal.get("b")) == (None, {})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"key": "a"}', '{"key": "b", "value": {}}', '{"key": "a", "value": 1}']
)
def test_a_damaged_file_counts_as_nothing(tmp_path: Path, text: str) -> None:
    journal = Journal(tmp_path)
    journal.put("a", {"n": 1})
    [path] = tmp_path.rglob("*.json")
    path.write_text(text)
    assert journal.get("a") is None


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    journal.put("a", {"n": 1})

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tables, "fsync", full)
    with pytest.raises(PipelineError, match="the disk is full"):
        journal.put("a", {"n": 2})
    assert journal.get("a") == {"n": 1}
