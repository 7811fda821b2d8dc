"""The miner and the oracle agree on built histories, and the comparison finds what it has to find."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from miners.clone import Clone
from miners.mine import MinedRepository, mine_repository
from schemas.config import MiningConfig, WindowConfig
from schemas.records import Exclusion, Novelty, RepositoryRecord
from tests.builders import RepoBuilder, git
from tests.oracles.ast_oracle import Truth, compare, extract, functions_of

SINCE = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "1600000000 +0000"


def mine(builder: RepoBuilder) -> MinedRepository:
    head = git(builder.git_dir, "rev-parse", "HEAD").decode().strip()
    record = RepositoryRecord("example/built", "local", None, None, "main", head, 1)
    return mine_repository(Clone(builder.git_dir, record), MiningConfig(), WindowConfig(SINCE), NOW)


NAMES = ("area", "volume", "size", "reset", "close")
BODIES = (
    "return {n}",
    "x = '''\n  text\n'''\n    return x + {n}",
    "'''Doc {n}.'''\n    return 1",
    "if {n}:\n        a()\n        b()",
    "if {n}:\n        a()\n    b()",
    "def inner():\n        return {n}\n    return inner",
    "pass",
    "'''Doc {n}.'''",
    "return {name}({n} - 1) if {n} else 1",
    "return (1,\n{n})",
)
DECORATORS = ("", "", "", "@property\n", "@a\n# why\n@b({n})\n")
Definition = tuple[str, str]


def draw_definition(dice: random.Random) -> Definition:
    """Return a name and a definition of it."""
    name, number = dice.choice(NAMES), str(dice.randrange(3))
    head = dice.choice(DECORATORS) + dice.choice(("def", "def", "async def")) + f" {name}(n):"
    body = dice.choice(BODIES)
    text = f"{head}\n    {body}\n" if "\n" in body or dice.random() < 0.8 else f"{head} {body}\n"
    return name, text.replace("{n}", number).replace("{name}", name)


def reformat(dice: random.Random, text: str) -> str:
    """Return the same tokens in another layout."""
    change: Callable[[str], str] = dice.choice(
        (
            lambda old: old.replace(":\n    ", ":\n    # a comment\n    ", 1),
            lambda old: old.replace("(n)", "( n )"),
            lambda old: old.replace("Doc", "Text"),
            lambda old: old.replace("@a\n", "@a  # here\n"),
        )
    )
    return change(text)


def render(dice: random.Random, definitions: list[Definition]) -> bytes:
    """Return a file: some definitions at the top, some in a class, some in blocks."""
    pieces = ["import os\n"]
    for index, (_, text) in enumerate(definitions):
        kind = (index + len(definitions)) % 4
        if kind in (0, 1):
            pieces.append(text)
        else:
            head = f"class C{index % 2}:\n" if kind == 2 else "if os:\n"
            # Text inside multi-line strings is shifted too, which makes it other text: both sides have to see that.
            pieces.append(head + "".join(f"    {line}" for line in text.splitlines(keepends=True)))
    newline = dice.choice(("\n", "\n", "\n", "\r\n"))
    return "\n".join(pieces).replace("\n", newline).encode()


def edit(dice: random.Random, files: dict[str, list[Definition]]) -> None:
    """Change one file: add, delete, move, copy, rename, reformat, or rename the file."""
    path = dice.choice(sorted(files))
    here = files[path]
    other = files[dice.choice(sorted(files))]
    action = dice.randrange(7)
    if action <= 1 or not here:
        here.insert(dice.randrange(len(here) + 1), draw_definition(dice))
    elif action == 2:
        here.pop(dice.randrange(len(here)))
    elif action == 3:
        other.append(here.pop(dice.randrange(len(here))))
    elif action == 4:
        name, text = dice.choice(here)
        new = dice.choice(NAMES)
        other.append((new, text.replace(f"def {name}(", f"def {new}(").replace(f"{name}(", f"{new}(")))
    elif action == 5:
        index = dice.randrange(len(here))
        here[index] = (here[index][0], reformat(dice, here[index][1]))
    else:
        files[f"pkg/{dice.randrange(100)}.py"] = files.pop(path)


def build(path: Path, seed: int) -> RepoBuilder:
    """Build a history of random edits with branches and merges, good and evil; the first commits are old."""
    dice = random.Random(seed)
    builder = RepoBuilder(path)
    files: dict[str, list[Definition]] = {f"m{n}.py": [draw_definition(dice) for _ in range(3)] for n in range(3)}
    written: dict[str, bytes] = {}
    tips: list[str] = []
    for step in range(14):
        for _ in range(dice.randrange(1, 4)):
            edit(dice, files)
        rendered = {name: render(random.Random(len(name)), definitions) for name, definitions in files.items()}
        change = {name: data for name, data in rendered.items() if written.get(name) != data}
        gone = dict.fromkeys(name for name in written if name not in rendered)
        parents = None if len(tips) < 3 or step % 4 else [tips[-1], tips[-3]]
        tips.append(builder.commit(change | gone, f"Step {step}", OLD if step < 3 else None, parents=parents))
        written = rendered
        if step % 4 == 2:
            # A side branch that the merge two steps later brings in.
            side = {"side.py": render(dice, [draw_definition(dice)])}
            tips[-1:] = [builder.commit(side, "Side", parents=[tips[-1]], branch="side"), tips[-1]]
    return builder


@pytest.mark.parametrize("seed", range(6))
def test_miner_and_oracle_agree_in_every_class_on_built_histories(tmp_path: Path, seed: int) -> None:
    builder = build(tmp_path / "repo.git", seed)
    truth = extract(builder.git_dir, SINCE)
    mined = mine(builder)
    result = compare(mined, truth)
    assert (result.differences, result.other_classes, result.n_unjudged, truth.unreadable) == ([], [], 0, set())
    assert (result.precision, result.recall, result.f1) == (1.0, 1.0, 1.0)
    assert result.n_both == len([row for row in mined.methods if row.novelty is Novelty.ADDED]) > 0


def test_the_built_histories_hold_every_class(tmp_path: Path) -> None:
    seen: set[Novelty] = set()
    for seed in range(6):
        seen |= set(extract(build(tmp_path / str(seed), seed).git_dir, SINCE).novelty.values())
    others = {Novelty.VENDORED, Novelty.GENERATED, Novelty.COPIED_OLD, Novelty.REPEATED}
    assert seen == set(Novelty) - others


class TestFunctions:
    def test_spans_names_and_nesting(self) -> None:
        source = b"class A:\n    @p\n    def f(self):\n        def g(): pass\n        return g  # c\n    # d\n"
        found = functions_of(source) or []
        assert [(item.name, source[item.start : item.end], item.nested) for item in found] == [
            ("A.f", b"@p\n    def f(self):\n        def g(): pass\n        return g", False),
            ("A.f.<locals>.g", b"def g(): pass", True),
        ]

    def test_signatures_ignore_layout_comments_and_docstring(self) -> None:
        one = functions_of(b"def f(a):\n    '''Doc.'''\n    return a\n") or []
        other = functions_of(b"class A:\n  def f( a ): return a  # c\n") or []
        assert one[0].signatures == other[0].signatures

    def test_offsets_of_another_encoding(self) -> None:
        source = "# coding: latin-1\n# ä\ndef f(): return 'ß'\n".encode("latin-1")
        assert [source[item.start : item.end] for item in functions_of(source) or []] == [
            b"def f(): return '\xdf'"
        ]  # fmt: skip

    @pytest.mark.parametrize("source", [b"def f(:\n", b"x = '\xe9'\n", b"# coding: nonsense\n", b"\0"])
    def test_what_does_not_parse_is_none(self, source: bytes) -> None:
        assert functions_of(source) is None


class TestComparison:
    def mined(self, tmp_path: Path) -> tuple[MinedRepository, Truth]:
        builder = RepoBuilder(tmp_path / "repo.git")
        builder.commit({"a.py": b"def f(): return 1\n", "b.py": b"def g(): return 2\n"})
        return mine(builder), extract(builder.git_dir, SINCE)

    def test_agreement(self, tmp_path: Path) -> None:
        result = compare(*self.mined(tmp_path))
        assert (result.n_mined, result.n_oracle, result.n_both, result.f1) == (2, 2, 2, 1.0)

    def test_a_method_that_the_miner_misses_lowers_recall(self, tmp_path: Path) -> None:
        mined, truth = self.mined(tmp_path)
        result = compare(replace(mined, methods=mined.methods[:1]), truth)
        assert (result.precision, result.recall, round(result.f1, 3)) == (1.0, 0.5, 0.667)
        assert [line.endswith("miner None, oracle added") for line in result.differences] == [True]

    def test_a_method_that_the_miner_invents_lowers_precision(self, tmp_path: Path) -> None:
        mined, truth = self.mined(tmp_path)
        invented = replace(mined.methods[0], start_byte=1)
        result = compare(replace(mined, methods=[*mined.methods, invented]), truth)
        assert (round(result.precision, 3), result.recall) == (0.667, 1.0)

    def test_another_class_than_added_on_both_sides_is_listed_apart(self, tmp_path: Path) -> None:
        mined, truth = self.mined(tmp_path)
        key = next(iter(truth.novelty))
        truth.novelty[key] = Novelty.MOVED
        moved = [
            replace(row, novelty=Novelty.RENAMED) if row.path == key[1] else row for row in mined.methods
        ]  # fmt: skip
        result = compare(replace(mined, methods=moved), truth)
        assert (result.differences, len(result.other_classes), result.f1) == ([], 1, 1.0)

    def test_marked_unreadable_and_excluded_files_are_left_out(self, tmp_path: Path) -> None:
        mined, truth = self.mined(tmp_path)
        marked = [replace(row, novelty=Novelty.VENDORED) if row.path == "a.py" else row for row in mined.methods]
        assert compare(replace(mined, methods=marked), truth).n_marked == 1
        commit = mined.methods[0].commit_id
        truth.unreadable.add((commit, "b.py"))
        left = Exclusion(f"example/built@{commit}:a.py", "files", "file_too_large")
        result = compare(replace(mined, methods=[], excluded=[left]), truth)
        assert (result.n_unjudged, result.n_oracle, result.f1) == (2, 0, 1.0)


def test_miner_and_oracle_agree_on_cherry_picks(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    base = builder.commit({"a.py": b"x = 1\n"})
    fix = builder.commit({"a.py": b"def f(n):\n    return n\n"}, parents=[base], branch="side")
    pick = builder.commit({"b.py": b"def f(n):\n    return n\n"}, parents=[base])
    builder.commit({"a.py": b"def f(n):\n    return n\n"}, "Merge", parents=[pick, fix])
    truth = extract(builder.git_dir, SINCE)
    assert truth.novelty == {
        (fix, "a.py", "f", 0, 22): Novelty.ADDED,
        (pick, "b.py", "f", 0, 22): Novelty.REPEATED,
    }
    result = compare(mine(builder), truth)
    assert (result.differences, result.other_classes, result.n_both) == ([], [], 1)
