"""What `make audit` prints and returns."""

from dataclasses import replace
from pathlib import Path

import pytest

from miners.mine import MinedRepository, mine_repository
from schemas.records import Novelty
from tests.builders import RepoBuilder
from tests.oracles import audit


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    built = RepoBuilder(tmp_path / "some", bare=False)
    built.commit({"a.py": b"def old(n): return n\n"}, author_date="1650000000 +0000")
    built.commit({"a.py": b"x = 1\n"}, author_date="1650000060 +0000")
    built.commit({"a.py": b"def old(n): return n\n", "b.py": b"def f(): return 2\ndef g(): return 3\n"})
    return built


def test_agreement_returns_0_and_prints_the_line_for_the_docs(
    builder: RepoBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([str(builder.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "class"
    assert "3 methods judged, 0 marked, 0 unjudged" in lines
    assert "evidence checked: added 2, restored 1; 0 unjudged; wrong: 0" in lines
    head = builder.tips["main"][:10]
    assert lines[-1] == f"| some {head} | 3 | 2024-01-01 | 1 | 2y | 3 | 0 | 2 | 1.00000 | 1.00000 | 1 of 1 | 3 | 0 |"


def test_without_history_both_sides_take_what_comes_back_for_new(
    builder: RepoBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([str(builder.git_dir), "--history", "none"]) == 0
    head = builder.tips["main"][:10]
    row = f"| some {head} | 3 | 2024-01-01 | 1 | none | 3 | 0 | 3 | 1.00000 | 1.00000 | 0 of 0 | 3 | 0 |"
    assert capsys.readouterr().out.splitlines()[-1] == row


@pytest.mark.parametrize(
    ("path", "change", "line"),
    [
        ("b.py", {"novelty": Novelty.VENDORED, "start_byte": 1}, "miner no row, oracle added"),
        ("a.py", {"similarity": 0.5}, "a.py old restored: the similarity is [1.0]"),
    ],
)
def test_a_difference_and_wrong_evidence_return_1_and_are_listed(
    builder: RepoBuilder,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    change: dict[str, object],
    line: str,
) -> None:
    def mine_wrongly(*arguments: object) -> MinedRepository:
        mined = mine_repository(*arguments)
        rows = [replace(row, **change) if row.path == path else row for row in mined.methods]
        return replace(mined, methods=rows)

    monkeypatch.setattr(audit, "mine_repository", mine_wrongly)
    assert audit.main([str(builder.git_dir)]) == 1
    assert line in capsys.readouterr().out.splitlines()[0]
