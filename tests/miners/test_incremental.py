"""Mining in parts: up to one head and then on, in ranges, after a rewritten history; always the same rows."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from miners.changes import CommitChanges, FileChange, OldFile
from miners.commits import walk
from miners.mine import MinedRepository
from miners.plan import Range, plan_mining
from schemas.config import MiningConfig, WindowConfig
from tests.builders import RepoBuilder, git, symlink
from tests.miners.mining import NOW, OLD, SINCE, clone_of, mine_at

NAMES = ("area", "size", "total", "mean", "norm", "first")


def method(rng: random.Random) -> bytes:
    name, sign = rng.choice(NAMES), rng.choice("+-*/")
    return f"def {name}(one, two):\n    return one {sign} two{rng.choice(('', ' + 1', ' - 2'))}\n\n\n".encode()


def grow(builder: RepoBuilder, seed: int, n_commits: int = 40) -> None:
    """Commit at random: changes, moves, deletions, reverts, branches, merges, odd dates, unreadable files."""
    rng = random.Random(seed)
    commits = [builder.commit({"a.py": method(rng), "b.py": method(rng)}, author_date=OLD)]
    for number in range(n_commits):
        files: dict[str, bytes | None] = {}
        for _ in range(rng.randint(1, 3)):
            path = rng.choice(("a.py", "b.py", "pkg/c.py", "pkg/d.py", "e.py"))
            files[path] = rng.choice((None, b"x = '\xe9'\n", b"".join(method(rng) for _ in range(rng.randint(1, 4)))))
        parents = list(dict.fromkeys(rng.choices(commits[-5:], k=rng.choice((1, 1, 1, 2, 2)))))
        date = rng.choice((OLD, None, None, None, f"{1_710_000_000 + rng.randint(0, 10**6)} +0000"))
        known = git(builder.git_dir, "ls-tree", "-r", "--name-only", parents[0]).decode().split("\n")
        changes = {path: data for path, data in files.items() if data is not None or path in known}
        commits.append(builder.commit(changes, f"Change {number}", author_date=date, parents=parents))
    builder.commit({}, "Merge everything", parents=commits[::-1])


def whole(mined: MinedRepository) -> dict[str, object]:
    """Return everything but the record, which holds the head."""
    names = ("commits", "files", "methods", "history", "indexed", "excluded", "reports", "valid_until")
    return {name: getattr(mined, name) for name in names}


@pytest.mark.parametrize("seed", range(6))
def test_mining_up_to_a_commit_and_then_on_equals_mining_at_once(tmp_path: Path, seed: int) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    grow(builder, seed)
    once = mine_at(builder)
    assert len({row.novelty for row in once.methods}) > 2
    reached = [header.commit_id for header in walk(builder.git_dir, once.record.head)]
    for head in random.Random(seed).sample(reached, 5):
        first = mine_at(builder, head)
        assert whole(mine_at(builder, former=first)) == whole(once)
        middle = reached[len(reached) * 3 // 4]
        assert whole(mine_at(builder, former=mine_at(builder, middle, former=first))) == whole(once)


@pytest.mark.parametrize("seed", range(3))
def test_ranges_give_the_same_rows(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    grow(builder, seed)
    once = mine_at(builder)
    monkeypatch.setattr("miners.plan._MIN_RANGE_FILES", 1)
    for n_ranges in (2, 3, 7):
        assert whole(mine_at(builder, n_ranges=n_ranges)) == whole(once)


def test_a_rewritten_history_is_mined_anew(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    rng = random.Random(1)
    base = builder.commit({"a.py": method(rng)})
    gone = builder.commit({"b.py": b"def gone(): return 1\n"})
    first = mine_at(builder)
    kept = builder.commit({"b.py": b"def kept(): return 2\n"}, parents=[base])
    second = mine_at(builder, former=first)
    assert whole(second) == whole(mine_at(builder))
    assert {row.commit_id for row in second.commits} == {base, kept}
    plan = plan_mining(clone_of(builder), MiningConfig(), WindowConfig(SINCE), NOW, first.former_run())
    assert (plan.rewritten, plan.anew, len(plan.changes)) == (True, True, 2)
    assert gone not in plan.selected


def test_what_lay_in_the_future_is_mined_when_its_time_has_come(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    builder.commit({"a.py": b"def one(): return 1\n"})
    later = NOW + timedelta(days=3)
    builder.commit({"b.py": b"def two(): return 2\n"}, author_date=later)
    builder.commit({"c.py": b"def three(): return 3\n"}, author_date=datetime(2025, 1, 1, tzinfo=UTC))
    first = mine_at(builder)
    assert sorted(row.fun_name for row in first.methods) == ["one", "three"]
    now = later + timedelta(days=1)
    second = mine_at(builder, former=first, now=now)
    assert whole(second) == whole(mine_at(builder, now=now))
    assert sorted(row.fun_name for row in second.methods) == ["one", "three", "two"]


def test_only_new_commits_are_planned(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git")
    old = builder.commit({"a.py": b"x = 1\n"}, author_date=OLD)
    builder.commit({"a.py": b"x = 2\n", "link.py": symlink("a.py")})
    first = mine_at(builder)
    new = builder.commit({"a.py": b"x = 3\n"})
    plan = plan_mining(clone_of(builder), MiningConfig(), WindowConfig(SINCE), NOW, first.former_run())
    assert [item.commit_id for item in plan.changes] == [new]
    assert plan.old_ids == []
    assert plan_mining(clone_of(builder), MiningConfig(), WindowConfig(SINCE), NOW).old_ids == [old]


class TestRanges:
    def test_small_work_is_not_split(self, tmp_path: Path) -> None:
        builder = RepoBuilder(tmp_path / "repo.git")
        builder.commit({"a.py": b"x = 1\n"})
        plan = plan_mining(clone_of(builder), MiningConfig(), WindowConfig(SINCE), NOW)
        assert plan.ranges(8) == [Range(plan.changes, [], {plan.changes[0].commit_id: ()})]

    @pytest.mark.parametrize("seed", range(4))
    def test_no_other_parts_have_a_cheaper_dearest_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
    ) -> None:
        rng = random.Random(seed)
        before = OldFile("100644", "1" * 40)
        changes = [
            CommitChanges(
                f"{number:040}", (), tuple(FileChange(b"%d.py" % path, "100644", "2" * 40, (before,)) for path in paths)
            )
            for number, paths in enumerate(rng.sample(range(6), rng.randint(1, 4)) for _ in range(9))
        ]
        monkeypatch.setattr("miners.plan._MIN_RANGE_FILES", 2)
        builder = RepoBuilder(tmp_path / "repo.git")
        builder.commit({"a.py": b"x = 1\n"})
        plan = replace(plan_mining(clone_of(builder), MiningConfig(), WindowConfig(SINCE), NOW), changes=changes)
        plan = replace(plan, searches_part=False)
        parts = [part.changes for part in plan.ranges(3)]
        assert [change for part in parts for change in part] == changes
        splits = (
            (changes[:one], changes[one:two], changes[two:])
            for one, two in combinations_with_replacement(range(len(changes) + 1), 2)
        )
        assert max(map(cost, parts)) == min(max(map(cost, split)) for split in splits)

    def test_a_dear_commit_is_a_range_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        builder = RepoBuilder(tmp_path / "repo.git")
        ids = [builder.commit({"a.py": b"x = %d\n" % number}) for number in range(3)]
        ids.insert(2, builder.commit({f"{number}.py": b"x = 1\n" for number in range(9)}))
        plan = plan_mining(clone_of(builder), MiningConfig(), WindowConfig(SINCE), NOW)
        monkeypatch.setattr("miners.plan._MIN_RANGE_FILES", 2)
        by_size = sorted(plan.ranges(4), key=lambda part: sum(len(change.files) for change in part.changes))
        assert [change.commit_id for change in by_size[-1].changes] == [ids[2]]


def cost(part: Sequence[CommitChanges]) -> int:
    """Return what a range costs: commits, files, and paths that are met for the first time."""
    paths = {change.path for item in part for change in item.files}
    return 12 * len(part) + 29 * sum(len(item.files) for item in part) + 30 * len(paths)
