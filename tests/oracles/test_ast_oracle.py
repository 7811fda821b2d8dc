"""The miner and the oracle agree on built histories, in every class and with the evidence of every row."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from miners.clone import Clone
from miners.mine import MinedRepository, mine_repository
from schemas.config import MiningConfig, WindowConfig
from schemas.records import Novelty, RepositoryRecord
from tests.builders import RepoBuilder, git
from tests.oracles.ast_oracle import extract
from tests.oracles.comparison import compare
from tests.oracles.evidence import check_evidence

SINCE = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "1600000000 +0000"


def mine(builder: RepoBuilder, search_history: str = "all") -> MinedRepository:
    head = git(builder.git_dir, "rev-parse", "HEAD").decode().strip()
    record = RepositoryRecord("example/built", "local", None, None, "main", head, 1)
    config = MiningConfig(search_history=search_history)
    return mine_repository(Clone(builder.git_dir, record), config, WindowConfig(SINCE), NOW)


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


@pytest.mark.parametrize("search_history", ["all", "none", "4y"])
@pytest.mark.parametrize("seed", range(6))
def test_miner_and_oracle_agree_in_every_class_on_built_histories(
    tmp_path: Path, seed: int, search_history: str
) -> None:
    builder = build(tmp_path / "repo.git", seed)
    truth = extract(builder.git_dir, SINCE, search_history=search_history)
    mined = mine(builder, search_history)
    result = compare(mined, truth)
    assert (result.differences, result.n_unjudged, truth.unreadable) == ([], 0, set())
    counts = Counter(row.novelty for row in mined.methods)
    assert result.confusion == {(novelty, novelty): count for novelty, count in counts.items()}
    assert counts[Novelty.ADDED] > 0
    checked = check_evidence(builder.git_dir, mined.methods, truth)
    assert (checked.problems, checked.n_unjudged, checked.n_checked) == ([], 0, counts)


def test_the_built_histories_hold_every_class(tmp_path: Path) -> None:
    seen: set[Novelty] = set()
    for seed in range(6):
        seen |= set(extract(build(tmp_path / str(seed), seed).git_dir, SINCE).novelty.values())
    others = {Novelty.VENDORED, Novelty.GENERATED, Novelty.COPIED_OLD, Novelty.REPEATED}
    assert seen == set(Novelty) - others


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
    assert result.confusion == {(Novelty.ADDED, Novelty.ADDED): 1, (Novelty.REPEATED, Novelty.REPEATED): 1}


def test_code_of_the_window_that_comes_back_is_found_without_the_history_as_well(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    old, young = b"def old(n):\n    return n\n", b"def young(n):\n    return -n\n"
    builder.commit({"a.py": old}, author_date=OLD)
    brought = builder.commit({"b.py": young})
    builder.commit({"a.py": old + b"x = 1\n"})
    builder.commit({"a.py": b"x = 1\n", "b.py": b"x = 1\n"})
    back = builder.commit({"a.py": old, "b.py": young})
    key = {
        name: (back, path, name, 0, len(text) - 1)
        for name, path, text in (("old", "a.py", old), ("young", "b.py", young))
    }
    first = {(brought, "b.py", "young", 0, len(young) - 1): Novelty.ADDED}
    restored = {key["young"]: Novelty.RESTORED}
    assert extract(builder.git_dir, SINCE).novelty == first | restored | {key["old"]: Novelty.RESTORED}
    without = extract(builder.git_dir, SINCE, search_history="none")
    assert without.novelty == first | restored | {key["old"]: Novelty.ADDED}
    assert compare(mine(builder, search_history="none"), without).differences == []


@pytest.mark.parametrize("removed_first", [True, False])
def test_code_that_a_part_of_the_history_takes_away_counts_as_old(tmp_path: Path, removed_first: bool) -> None:
    """A commit from before what is searched brought it; only who removed it may be looked at."""
    builder = RepoBuilder(tmp_path / "repo.git")
    old = b"def old(n):\n    return n\n"
    builder.commit({"a.py": old}, author_date=OLD)
    builder.commit({"a.py": b"x = 1\n"}, author_date=OLD if removed_first else None)
    back = builder.commit({"a.py": old})
    expected = {(back, "a.py", "old", 0, len(old) - 1): Novelty.ADDED if removed_first else Novelty.RESTORED}
    truth = extract(builder.git_dir, SINCE, search_history="3y")
    assert truth.novelty == expected
    assert compare(mine(builder, "3y"), truth).differences == []


def test_a_date_that_git_cannot_read_is_outside_the_window(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    builder.commit({"a.py": b"def f(): return 1\n"})
    commit_id = builder.commit({"b.py": b"def g(): return 1\n"}, author_date="rubbish")
    truth = extract(builder.git_dir, SINCE)
    assert [key[2] for key in truth.novelty] == ["f"]
    assert commit_id not in truth.inside
