"""Hostile histories: whatever shape and dates commits have, all that the readable ones bring is told."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from miners.clone import check_shallow, open_clone
from schemas.errors import DataError
from tests.builders import FIRST_DATE, GIT_ENVIRONMENT, RepoBuilder, git
from tests.miners.hostile import BETTER, GOOD, OLD, SINCE, Row, Told, better, good, mine, mine_dir, row, told
from tests.miners.places import place_of, repos

__all__ = ["repos"]  # fixtures

LAST = b"def last(value):\n    return value[-1]\n"
FIRST = b"def first(value):\n    return value[0]\n"


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "src" / "repo.git")


def last(path: str) -> Row:
    return row(path, "last", LAST, LAST.rstrip())


def first(path: str) -> Row:
    return row(path, "first", FIRST, FIRST.rstrip())


def mine_clone(path: Path, repos: Path) -> Told:
    return told(mine_dir(open_clone(place_of(path), repos).git_dir))


def clone_with(builder: RepoBuilder, target: Path, *options: str) -> Path:
    """Clone with real git over its file protocol, as a user would."""
    command = ["git", "clone", "-q", "--template=", *options, f"file://{builder.path}", str(target)]
    subprocess.run(command, env=GIT_ENVIRONMENT, check=True)
    return target


class TestMerges:
    def test_a_squash_merge_brings_what_its_branch_had(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": GOOD}, author_date=OLD)
        builder.commit({"b.py": BETTER}, parents=[base], branch="side")
        builder.commit({"b.py": BETTER + LAST, "a.py": None}, branch="side")
        main = builder.commit({"c.py": FIRST})
        builder.commit({"b.py": BETTER + LAST, "a.py": None}, "Better (#7)", parents=[main])
        text = BETTER + LAST
        rows = [row("b.py", "better", text, BETTER.rstrip()), row("b.py", "last", text, LAST.rstrip())]
        assert mine(builder) == ([first("c.py"), *rows], [])

    def test_a_squash_merge_whose_branch_is_merged_later(self, builder: RepoBuilder) -> None:
        """Neither commit descends from the other: both bring the method, and it counts once."""
        base = builder.commit({"a.py": GOOD}, author_date=OLD)
        side = builder.commit({"b.py": BETTER}, parents=[base], branch="side")
        squash = builder.commit({"b.py": BETTER}, "Better (#7)", parents=[base])
        builder.commit({"b.py": BETTER, "c.py": LAST}, "Merge", parents=[squash, side])
        assert mine(builder) == ([better("b.py"), better("b.py", "repeated"), last("c.py")], [])

    def test_an_evil_merge_brings_what_no_parent_has(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": GOOD, "old.py": LAST}, author_date=OLD)
        side = builder.commit({"a.py": GOOD + b"X = 1\n"}, parents=[base], branch="side")
        main = builder.commit({"a.py": b"Y = 2\n" + GOOD})
        evil = b"Y = 2\n" + GOOD.replace(b"*", b"+") + b"X = 1\n" + BETTER
        builder.commit({"a.py": evil, "new.py": FIRST, "old.py": None}, "Merge", parents=[main, side])
        builder.commit({"back.py": LAST})
        changed = b"def good(width, height):\n    return width + height"
        assert mine(builder) == (
            [
                row("a.py", "good", evil, changed, "modified"),
                row("a.py", "better", evil, BETTER.rstrip()),
                first("new.py"),
                row("back.py", "last", LAST, LAST.rstrip(), "restored"),
            ],
            [],
        )

    def test_an_octopus_brings_what_none_of_its_parents_has(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": GOOD}, author_date=OLD)
        tips = [
            builder.commit({f"{name}.py": text}, parents=[base], branch=name)
            for name, text in (("one", BETTER), ("two", LAST), ("main", b"x = 1\n"))
        ]
        merged = {"one.py": BETTER, "two.py": LAST, "evil.py": FIRST}
        builder.commit(merged, "Merge", parents=[tips[2], *tips[:2]])
        rows, excluded = mine(builder)
        assert (sorted(rows), excluded) == ([first("evil.py"), better("one.py"), last("two.py")], [])

    def test_a_merge_of_a_commit_with_itself(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": GOOD}, author_date=OLD)
        builder.commit({"b.py": BETTER}, "Merge", parents=[base, base])
        assert mine(builder) == ([better("b.py")], [])


class TestRoots:
    def test_several_roots_and_their_merge(self, builder: RepoBuilder) -> None:
        root = builder.commit({"a.py": GOOD})
        other = builder.commit({"sub/b.py": BETTER}, parents=[], branch="other")
        builder.commit({"sub/b.py": BETTER, "c.py": LAST}, "Merge", parents=[root, other])
        rows, excluded = mine(builder)
        assert (sorted(rows), excluded) == ([good("a.py"), last("c.py"), better("sub/b.py")], [])

    def test_a_root_that_brings_what_another_root_has(self, builder: RepoBuilder) -> None:
        root = builder.commit({"a.py": GOOD}, author_date=OLD)
        other = builder.commit({"b.py": GOOD + BETTER}, parents=[], branch="other")
        builder.commit({"b.py": GOOD + BETTER}, "Merge", parents=[root, other])
        text = GOOD + BETTER
        rows = [row("b.py", "good", text, GOOD.rstrip()), row("b.py", "better", text, BETTER.rstrip())]
        assert mine(builder) == (rows, [])

    def test_roots_and_commits_without_files(self, builder: RepoBuilder) -> None:
        builder.commit({})
        builder.commit({"a.py": GOOD})
        builder.commit({"a.py": None})
        builder.commit({})
        builder.commit({"b.py": BETTER})
        assert mine(builder) == ([good("a.py"), better("b.py")], [])


class TestClocks:
    def test_clocks_that_run_backwards(self, builder: RepoBuilder) -> None:
        days = (20, 5, 15, -900, 1)
        for day, (path, text) in zip(
            days, {"a": GOOD, "b": BETTER, "c": LAST, "d": FIRST, "e": b""}.items(), strict=True
        ):
            builder.commit({f"{path}.py": text}, author_date=FIRST_DATE + timedelta(days=day))
        assert mine(builder) == ([better("b.py"), last("c.py"), good("a.py")], [])

    @pytest.mark.parametrize(
        ("author", "committer", "reason"),
        [
            ("-86400 +0000", "-86400 +0000", "date_invalid"),
            ("-1 +0000", "1710000000 +0000", "date_invalid"),
            ("1710000000 +0000", "", "date_invalid"),
            ("yesterday", "1710000000 +0000", "date_invalid"),
            ("1710000000", "1710000000", "date_invalid"),
            ("0 +0000", "0 +0000", None),
            ("0 +0000", "1710000000 +0000", "author_date_outside"),
            ("1710000000 +0000", "1704067199 +0000", "committer_date_outside"),
            ("1710000000 +0000", "1767225601 +0000", "date_in_future"),
            ("1710000000 +0000", "99999999999 +0000", "date_in_future"),
            ("1710000000 +0000", "99999999999999999999999999 +0000", "date_in_future"),
        ],
    )
    def test_dates(self, builder: RepoBuilder, author: str, committer: str, reason: str | None) -> None:
        """The neighbours before and behind are told; the commit's own code is old for those behind it."""
        builder.commit({"a.py": GOOD})
        odd = builder.commit({"b.py": LAST}, "Odd", author, committer)
        builder.commit({"c.py": BETTER, "d.py": LAST})
        expected = [] if reason is None else [("commits", reason, f"@{odd}")]
        rows = [good("a.py"), better("c.py"), row("d.py", "last", LAST, LAST.rstrip(), "moved")]
        assert mine(builder) == (rows, expected)


class TestIncompleteRepositories:
    def history(self, builder: RepoBuilder) -> list[str]:
        """Four commits: two before the window, two inside."""
        before = datetime(2023, 6, 1, tzinfo=UTC)
        return [
            builder.commit({"LICENSE": b"x", "a.py": GOOD}, author_date=before),
            builder.commit({"b.py": FIRST}, author_date=before + timedelta(days=1)),
            builder.commit({"c.py": BETTER, "again.py": GOOD}),
            builder.commit({"d.py": LAST, "c.py": BETTER + b"\n\n" + FIRST}),
        ]

    def test_a_shallow_clone_cut_before_the_window(self, builder: RepoBuilder, tmp_path: Path, repos: Path) -> None:
        self.history(builder)
        shallow = clone_with(builder, tmp_path / "src" / "shallow", "--depth=3")
        clone = open_clone(place_of(shallow), repos)
        check_shallow(clone, SINCE)
        text = BETTER + b"\n\n" + FIRST
        assert (
            told(mine_dir(clone.git_dir))
            == mine(builder)
            == (
                [
                    row("again.py", "good", GOOD, GOOD.rstrip(), "moved"),
                    better("c.py"),
                    row("c.py", "first", text, FIRST.rstrip(), "moved"),
                    last("d.py"),
                ],
                [],
            )
        )

    def test_a_shallow_clone_cut_inside_the_window(self, builder: RepoBuilder, tmp_path: Path, repos: Path) -> None:
        self.history(builder)
        clone = open_clone(place_of(clone_with(builder, tmp_path / "src" / "shallow", "--depth=2")), repos)
        with pytest.raises(DataError) as error:
            check_shallow(clone, SINCE)
        assert error.value.reason == "repository_shallow"

    def test_a_partial_clone_without_blobs(self, builder: RepoBuilder, tmp_path: Path, repos: Path) -> None:
        """A checkout has fetched the newest blobs, and only those; nothing else is fetched, by a second run neither."""
        git(builder.git_dir, "config", "uploadpack.allowFilter", "true")
        commits = self.history(builder)
        partial = clone_with(builder, tmp_path / "src" / "partial", "--filter=blob:none")
        objects = sorted(path.name for path in (partial / ".git" / "objects").rglob("*"))
        # `again.py` and `a.py` are one blob, which the checkout has; of `c.py` the first version is missing.
        expected = (
            [row("again.py", "good", GOOD, GOOD.rstrip(), "moved"), last("d.py")],
            [
                ("files", "blob_missing", f"@{commits[2]}:c.py"),
                ("files", "old_version_unreadable", f"@{commits[3]}:c.py"),
            ],
        )
        assert mine_clone(partial, repos) == expected
        assert mine_clone(partial, repos) == expected
        assert sorted(path.name for path in (partial / ".git" / "objects").rglob("*")) == objects

    def test_a_partial_clone_with_a_new_commit(self, builder: RepoBuilder, tmp_path: Path, repos: Path) -> None:
        git(builder.git_dir, "config", "uploadpack.allowFilter", "true")
        old = builder.commit({"a.py": GOOD}, author_date=OLD)
        partial = clone_with(builder, tmp_path / "src" / "partial", "--filter=blob:none", "--bare")
        assert mine_clone(partial, repos) == ([], [])
        new = builder.commit({"b.py": BETTER})
        git(partial, "fetch", "-q", "origin", "+refs/heads/main:refs/heads/main")
        objects = sorted(path.name for path in (partial / "objects").rglob("*"))
        missing = [
            ("files", "blob_missing", f"@{new}:b.py"),
            ("index", "blob_missing", f"@{old}:a.py"),
            ("history", "commit_unreadable", f"@{old}"),
        ]
        assert mine_clone(partial, repos) == ([], missing)
        assert sorted(path.name for path in (partial / "objects").rglob("*")) == objects

    def test_a_partial_clone_without_trees(self, builder: RepoBuilder, tmp_path: Path, repos: Path) -> None:
        git(builder.git_dir, "config", "uploadpack.allowFilter", "true")
        commits = self.history(builder)
        partial = clone_with(builder, tmp_path / "src" / "partial", "--filter=tree:0")
        # The checkout has fetched the newest tree, and its parent's is missing.
        assert mine_clone(partial, repos) == (
            [],
            [("commits", "commit_unreadable", f"@{commit}") for commit in sorted(commits[2:])]
            + [("history", "commit_unreadable", f"@{commit}") for commit in sorted(commits[:2])],
        )

    def test_a_clone_that_borrows_its_objects(self, builder: RepoBuilder, tmp_path: Path, repos: Path) -> None:
        builder.commit({"a.py": GOOD})
        command = ["git", "clone", "-q", "--bare", "--shared", str(builder.path), str(tmp_path / "src" / "shared")]
        subprocess.run(command, env=GIT_ENVIRONMENT, check=True)
        assert mine_clone(tmp_path / "src" / "shared", repos) == ([good("a.py")], [])

    @pytest.mark.parametrize("damage", ["remove", "corrupt"])
    @pytest.mark.parametrize("kind", ["blob", "tree", "subtree", "commit"])
    def test_an_object_is_missing_or_corrupt(self, builder: RepoBuilder, damage: str, kind: str) -> None:
        builder.commit({"a.py": GOOD, "d/x.py": b"x = 1\n"})
        bad = builder.commit({"b.py": BETTER, "d/x.py": b"x = 2\n"})
        child = builder.commit({"c.py": LAST, "d/x.py": b"x = 3\n"})
        builder.commit({"d/x.py": b"x = 4\n"})
        builder.commit({"e.py": FIRST})
        subtree = git(builder.git_dir, "rev-parse", f"{bad}:d").decode().strip()
        target = {
            "blob": builder.blob_of(bad, "b.py"),
            "tree": builder.root_tree(bad),
            "subtree": subtree,
            "commit": bad,
        }
        getattr(builder, damage)(target[kind])
        unreadable = [("commits", "commit_unreadable", f"@{commit}") for commit in sorted((bad, child))]
        reason = "blob_missing" if damage == "remove" else "object_corrupt"
        if kind == "blob":
            assert mine(builder) == (
                [good("a.py"), last("c.py"), first("e.py")], [("files", reason, f"@{bad}:b.py")],
            )  # fmt: skip
        elif kind == "commit":
            assert mine(builder) == ([first("e.py")], unreadable)
        else:
            assert mine(builder) == ([good("a.py"), first("e.py")], unreadable)


class TestReplacedHistory:
    @pytest.mark.parametrize("place", ["source", "clone"])
    def test_replacements_and_grafts_change_nothing(self, builder: RepoBuilder, repos: Path, place: str) -> None:
        old = builder.commit({"a.py": GOOD}, author_date=OLD)
        main = builder.commit({"b.py": BETTER})
        newest = builder.commit({"c.py": LAST})
        expected = ([better("b.py"), last("c.py")], [])
        clone = open_clone(place_of(builder.path), repos)
        git_dir = builder.git_dir if place == "source" else clone.git_dir
        git(git_dir, "replace", "--graft", newest, old)
        git(git_dir, "replace", "-f", main, old)
        (git_dir / "info").mkdir(exist_ok=True)
        (git_dir / "info" / "grafts").write_text(f"{main}\n")
        assert told(mine_dir(git_dir)) == expected
        assert mine_clone(builder.path, repos) == expected
        builder.commit({"d.py": FIRST})
        assert mine_clone(builder.path, repos) == ([*expected[0], first("d.py")], [])


def test_a_sha256_repository(tmp_path: Path, repos: Path) -> None:
    builder = RepoBuilder(tmp_path / "src" / "new.git", object_format="sha256")
    base = builder.commit({"a.py": GOOD}, author_date=OLD)
    side = builder.commit({"b.py": BETTER}, parents=[base], branch="side")
    commit = builder.commit({"a.py": None, "moved.py": GOOD, "bad.py": b"\0"})
    builder.commit({"b.py": BETTER, "evil.py": LAST}, "Merge", parents=[commit, side])
    clone = open_clone(place_of(builder.path), repos)
    mined = mine_dir(clone.git_dir)
    rows, excluded = told(mined)
    assert (sorted(rows), excluded) == ([better("b.py"), last("evil.py")], [("files", "binary", f"@{commit}:bad.py")])
    assert {len(item) for method in mined.methods for item in (method.commit_id, method.blob_id)} == {64}
