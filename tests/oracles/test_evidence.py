"""The check of the evidence accepts the miner's and finds each kind of fault."""

from dataclasses import replace
from pathlib import Path

import pytest

from miners.alike import similarity
from schemas.records import Method, Novelty
from tests.builders import RepoBuilder
from tests.oracles.ast_oracle import Truth, extract
from tests.oracles.evidence import Checked, check_evidence, likeness, words_of
from tests.oracles.test_ast_oracle import SINCE, mine

DEFINITIONS = {
    name: f"def {name}(n):\n    {name}_ = n\n    return {name}_ * {number}\n".encode()
    for number, name in enumerate(("moved", "old_name", "modified", "reformatted", "restored", "repeated"))
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[Novelty, Method], Truth]:
    """Return a history with one row of each class, these rows, and the oracle's view."""
    builder = RepoBuilder(tmp_path_factory.mktemp("evidence") / "repo.git")
    base = builder.commit({"a.py": b"".join(list(DEFINITIONS.values())[:5])}, "Base")
    side = builder.commit({"side.py": DEFINITIONS["repeated"]}, "Side", parents=[base], branch="side")
    changed = DEFINITIONS["modified"].replace(b"return", b"return 1 +")
    laid_out = DEFINITIONS["reformatted"].replace(b"(n)", b"( n )")
    middle = builder.commit({"a.py": changed + laid_out, "b.py": DEFINITIONS["moved"]}, "Change", parents=[base])
    new_name = DEFINITIONS["old_name"].replace(b"def old_name", b"def new_name")
    more = {"c.py": DEFINITIONS["restored"], "d.py": DEFINITIONS["repeated"]}
    tip = builder.commit(more, "More", parents=[middle])
    renamed = builder.commit({"e.py": new_name}, "Rename", parents=[base], branch="third")
    builder.commit({"e.py": new_name, "side.py": DEFINITIONS["repeated"]}, "Merge", parents=[tip, side, renamed])
    mined, truth = mine(builder), extract(builder.git_dir, SINCE)
    return builder.git_dir, {row.novelty: row for row in mined.methods}, truth


Built = tuple[Path, dict[Novelty, Method], Truth]


def check(built: Built, row: Method) -> Checked:
    return check_evidence(built[0], [row], built[2])


def problem_of(built: Built, of: Novelty, **change: object) -> str:
    (line,) = check(built, replace(built[1][of], **change)).problems
    return line.split(": ", 1)[1].split(" (")[0]


def test_the_miners_evidence_holds_in_every_class(built: Built) -> None:
    git_dir, rows, truth = built
    checked = check_evidence(git_dir, rows.values(), truth)
    assert (checked.problems, checked.n_unjudged) == ([], 0)
    others = {Novelty.VENDORED, Novelty.GENERATED, Novelty.COPIED_OLD}
    assert checked.n_checked == dict.fromkeys(set(Novelty) - others, 1)


EVERY = ("moved", "renamed", "modified", "reformatted", "restored", "repeated")
# Where a fault shows earlier than in the other classes.
SOONER = {
    ("restored", "no parent"): "no commit of the history",
    ("repeated", "no parent"): "no commit of the history",
    ("repeated", "no such definition there"): "another name",
}


@pytest.mark.parametrize("novelty", EVERY)
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"earlier_path": "none.py"}, "no such file there"),
        ({"earlier_fun_name": "nobody"}, "no such definition there"),
        ({"similarity": 0.01}, "the similarity is"),
        ({"similarity": None}, "has no evidence"),
        ({"earlier_commit_id": "0" * 40}, "no parent"),
        ({"start_byte": 1}, "the method itself is not there"),
    ],
)
def test_each_fault_is_found_in_each_class(built: Built, novelty: str, change: dict[str, object], problem: str) -> None:
    row = built[1][Novelty(novelty)]
    assert check(built, row).problems == []
    found = problem_of(built, row.novelty, **change)
    assert found.startswith(SOONER.get((novelty, problem), problem))


def test_evidence_of_an_added_method_is_a_fault(built: Built) -> None:
    assert problem_of(built, Novelty.ADDED, earlier_path="a.py") == "has evidence"


def test_classes_that_the_tokens_do_not_bear_out(built: Built) -> None:
    assert problem_of(built, Novelty.MODIFIED, novelty=Novelty.REFORMATTED) == "the tokens differ"
    assert problem_of(built, Novelty.REFORMATTED, novelty=Novelty.MODIFIED) == "the tokens are equal"
    assert problem_of(built, Novelty.MOVED, novelty=Novelty.RENAMED) == "the tokens differ"
    assert problem_of(built, Novelty.RENAMED, novelty=Novelty.MOVED) == "the tokens differ"
    assert problem_of(built, Novelty.MOVED, earlier_fun_name="restored") == "the tokens differ"
    assert problem_of(built, Novelty.MODIFIED, earlier_fun_name="moved") == "another name"
    assert problem_of(built, Novelty.MOVED, novelty=Novelty.REFORMATTED) == "another file"


def test_commits_that_the_class_does_not_allow(built: Built) -> None:
    rows = built[1]
    base = rows[Novelty.RESTORED].earlier_commit_id
    assert (
        problem_of(built, Novelty.RESTORED, earlier_commit_id=rows[Novelty.MOVED].commit_id)
        == "no such definition there"
    )
    assert problem_of(built, Novelty.REPEATED, novelty=Novelty.RESTORED) == "no ancestor"
    assert problem_of(built, Novelty.RESTORED, novelty=Novelty.REPEATED) == "the same line of history"
    assert problem_of(built, Novelty.REPEATED, earlier_commit_id=base) == "no such file there"
    assert problem_of(built, Novelty.RESTORED, novelty=Novelty.MOVED) == "no parent"


def test_what_does_not_parse_is_counted_apart(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    builder.commit({"a.py": b"print 'two'\ndef f(n):\n    return n\n"})
    builder.commit({"a.py": b"def f(n):\n    return -n\n"})
    row = mine(builder).methods[-1]
    checked = check_evidence(builder.git_dir, [row], extract(builder.git_dir, SINCE))
    assert (row.novelty, checked.n_unjudged, checked.n_checked, checked.problems) == (Novelty.MODIFIED, 1, {}, [])


@pytest.mark.parametrize("text", ["", "a", "a b_1 +(+)", "é = 'ß'\x0b\x0c\r\n\t", "_a-b--c"])
def test_words_give_the_miners_similarity(text: str) -> None:
    other = "a = b_1 + 'é'"
    assert likeness(words_of(text.encode()), words_of(other.encode())) == similarity(text.encode(), other.encode())
    assert words_of(b"ab+ab c1") == {b"ab", b"+", b"c1"}
