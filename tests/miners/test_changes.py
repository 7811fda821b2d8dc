import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miners.changes import CommitChanges, FileChange, OldFile, changed_files, display_path, with_renames
from miners.commits import walk
from schemas.config import MiningConfig
from schemas.records import Exclusion
from tests.builders import Entry, RepoBuilder, executable, submodule, symlink

BODY = b"".join(b"line_%d = %d\n" % (n, n) for n in range(30))


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def changes_of(
    repo: RepoBuilder,
    *commits: str,
    config: MiningConfig = MiningConfig(),  # noqa: B008 - frozen
) -> list[CommitChanges]:
    by_id = {header.commit_id: header for tip in commits for header in walk(repo.git_dir, tip)}
    stream = changed_files(repo.git_dir, [by_id[commit] for commit in commits], "o/r", config)
    return [with_renames(repo.git_dir, changes) for changes in stream]


def paths(changes: Sequence[FileChange]) -> list[bytes]:
    return [change.path for change in changes]


class TestOrdinaryCommits:
    def test_before_and_after_of_every_kind_of_change(self, repo: RepoBuilder) -> None:
        first = repo.commit({"same.py": b"1", "pkg/edit.py": b"1", "gone.py": b"1"})
        second = repo.commit({"pkg/edit.py": b"2", "gone.py": None, "new.py": b"3"})
        (changes,) = changes_of(repo, second)
        assert changes == CommitChanges(
            commit_id=second,
            parent_ids=(first,),
            files=(
                FileChange(b"new.py", "100644", repo.blob(b"3"), (None,)),
                FileChange(b"pkg/edit.py", "100644", repo.blob(b"2"), (OldFile("100644", repo.blob(b"1")),)),
            ),
            deleted=(FileChange(b"gone.py", None, None, (OldFile("100644", repo.blob(b"1")),)),),
        )

    def test_a_root_commit_brings_every_file(self, repo: RepoBuilder) -> None:
        root = repo.commit({"a.py": b"1", "b/c.py": b"2"})
        (changes,) = changes_of(repo, root)
        assert changes.parent_ids == ()
        assert changes.files == (
            FileChange(b"a.py", "100644", repo.blob(b"1"), (None,)),
            FileChange(b"b/c.py", "100644", repo.blob(b"2"), (None,)),
        )

    def test_only_python_files_count_and_case_matters(self, repo: RepoBuilder) -> None:
        names = [
            "a.PY",
            "a.PYI",
            "a.pyc",
            "a.py.txt",
            "setup.cfg",
            "x.py/readme.txt",
            "x.pyi/y.in",
            "py",
            ".py",
            "d/e.py",
        ]
        commit = repo.commit(dict.fromkeys(names, b"1"))
        (changes,) = changes_of(repo, commit)
        assert paths(changes.files) == [b".py", b"d/e.py"]
        assert changes.excluded == ()

    def test_paths_are_bytes(self, repo: RepoBuilder) -> None:
        names = [b"HighASCII_\xe9.py", "größe.py".encode(), b'quote"d.py', b"new\nline.py", b":colon.py", b" blank .py"]
        commit = repo.commit(dict.fromkeys(names, b"1"))
        (changes,) = changes_of(repo, commit)
        assert paths(changes.files) == sorted(names)

    def test_a_changed_mode_alone_is_no_change(self, repo: RepoBuilder) -> None:
        repo.commit({"a.py": b"1", "b.py": b"1"})
        commit = repo.commit({"a.py": executable(b"1"), "b.py": executable(b"2")})
        (changes,) = changes_of(repo, commit)
        assert changes.files == (FileChange(b"b.py", "100755", repo.blob(b"2"), (OldFile("100644", repo.blob(b"1")),)),)

    def test_commits_without_python_are_listed_in_order(self, repo: RepoBuilder) -> None:
        commits = [repo.commit({name: b"1"}) for name in ("a.py", "a.txt", "b.py", "b.txt")]
        commits.append(repo.commit({}))
        changes = changes_of(repo, *reversed(commits))
        assert [item.commit_id for item in changes] == commits[::-1]
        assert [len(item.files) for item in changes] == [0, 0, 1, 0, 1]

    def test_no_commits_no_changes(self, repo: RepoBuilder) -> None:
        assert list(changed_files(repo.git_dir, [], "o/r", MiningConfig())) == []

    def test_a_reader_may_stop_early(self, repo: RepoBuilder) -> None:
        commits = [repo.commit({f"{n}.py": b"1"}) for n in range(50)]
        stream = changed_files(repo.git_dir, walk(repo.git_dir, commits[-1]), "o/r", MiningConfig())
        assert next(stream).commit_id == commits[0]

    def test_sha256_repositories(self, tmp_path: Path) -> None:
        repo = RepoBuilder(tmp_path / "sha256.git", object_format="sha256")
        repo.commit({"a.py": b"1"})
        (changes,) = changes_of(repo, repo.commit({"a.py": b"2"}))
        assert changes.files == (FileChange(b"a.py", "100644", repo.blob(b"2"), (OldFile("100644", repo.blob(b"1")),)),)


class TestExclusions:
    def test_links_and_submodules(self, repo: RepoBuilder) -> None:
        commit = repo.commit({"real.py": b"1", "link.py": symlink("real.py"), "sub.py": submodule("1" * 40)})
        (changes,) = changes_of(repo, commit)
        assert paths(changes.files) == [b"real.py"]
        assert changes.excluded == (
            Exclusion(
                f"o/r@{commit}:link.py", "files", "symlink", f"mode 120000, target in blob {repo.blob(b'real.py')}"
            ),
            Exclusion(f"o/r@{commit}:sub.py", "files", "submodule", f"mode 160000, commit {'1' * 40}"),
        )

    def test_notebooks_stubs_and_cython_files(self, repo: RepoBuilder) -> None:
        kinds = {
            "a.ipynb": "notebook", "a.pxd": "cython", "a.pxi": "cython", "a.pyi": "type_stub", "d/a.pyx": "cython",
        }  # fmt: skip
        commit = repo.commit(dict.fromkeys([*kinds, "a.py"], b"1"))
        (changes,) = changes_of(repo, commit, config=MiningConfig(max_files_per_commit=1))
        assert paths(changes.files) == [b"a.py"]
        detail = f"mode 100644, blob {repo.blob(b'1')}"
        assert changes.excluded == tuple(
            Exclusion(f"o/r@{commit}:{path}", "files", reason, detail) for path, reason in kinds.items()
        )

    def test_what_is_no_new_contents_of_a_stub_is_no_exclusion(self, repo: RepoBuilder) -> None:
        sub = submodule("1" * 40)
        repo.commit({"mode.pyi": b"1", "gone.pyx": b"2", "same.ipynb": b"3"})
        commit = repo.commit({"mode.pyi": executable(b"1"), "gone.pyx": None, "link.pyi": symlink("x"), "s.pyx": sub})
        (changes,) = changes_of(repo, commit)
        assert changes == CommitChanges(commit, changes.parent_ids)

    def test_stubs_of_a_merge_that_a_parent_has(self, repo: RepoBuilder) -> None:
        base = repo.commit({"a.pyi": b"0"})
        side = repo.commit({"b.pyi": b"1"}, parents=[base], branch="side")
        main = repo.commit({"a.pyi": b"2"})
        merge = repo.commit({"a.pyi": b"3", "b.pyi": b"1"}, parents=[main, side])
        (changes,) = changes_of(repo, merge)
        assert [(item.row_id, item.reason) for item in changes.excluded] == [(f"o/r@{merge}:a.pyi", "type_stub")]

    def test_a_stub_is_no_source_of_a_rename(self, repo: RepoBuilder) -> None:
        repo.commit({"old.pyi": BODY})
        (changes,) = changes_of(repo, repo.commit({"old.pyi": None, "new.py": BODY}))
        assert (changes.deleted, changes.renames) == ((), ())
        assert changes.files == (FileChange(b"new.py", "100644", repo.blob(BODY), (None,)),)

    @pytest.mark.parametrize(
        ("files", "seen"),
        [
            ({"a.py": b"1"}, True),
            ({"a.py": symlink("b")}, True),
            ({"a.py": submodule("1" * 40)}, True),
            ({"a.ipynb": b"1", "a.pyi": b"1", "a.pyx": b"1", "a.txt": b"1"}, False),
            ({}, False),
        ],
    )
    def test_which_commits_touch_python(self, repo: RepoBuilder, files: dict[str, bytes | Entry], seen: bool) -> None:
        (changes,) = changes_of(repo, repo.commit(files))
        assert changes.has_python is seen

    def test_a_commit_that_deletes_python_or_cannot_be_read_touches_it(self, repo: RepoBuilder) -> None:
        first = repo.commit({"a.py": b"1"})
        second = repo.commit({"a.py": None})
        third = repo.commit({"a.txt": b"1"})
        headers = walk(repo.git_dir, third)
        repo.remove(repo.root_tree(third))
        changes = list(changed_files(repo.git_dir, headers, "o/r", MiningConfig()))
        assert [(item.commit_id, item.has_python) for item in changes] == [
            (first, True), (second, True), (third, True),
        ]  # fmt: skip

    def test_a_file_in_place_of_a_link_is_new(self, repo: RepoBuilder) -> None:
        repo.commit({"a.py": symlink("b.py")})
        (changes,) = changes_of(repo, repo.commit({"a.py": b"x = 1\n"}))
        assert changes.files == (FileChange(b"a.py", "100644", repo.blob(b"x = 1\n"), (None,)),)

    def test_a_deleted_link_is_no_deleted_file(self, repo: RepoBuilder) -> None:
        repo.commit({"a.py": symlink("b.py")})
        (changes,) = changes_of(repo, repo.commit({"a.py": None}))
        assert (changes.files, changes.deleted, changes.excluded) == ((), (), ())

    def test_too_many_files_exclude_the_commit_as_a_whole(self, repo: RepoBuilder) -> None:
        three = repo.commit({f"{n}.py": b"1" for n in range(3)})
        four = repo.commit({f"{n}.py": b"2" for n in range(4)})
        config = MiningConfig(max_files_per_commit=3)
        kept, dropped = changes_of(repo, three, four, config=config)
        assert len(kept.files) == 3
        exclusion = Exclusion(f"o/r@{four}", "commits", "too_many_files", "4 Python files, the limit is 3")
        assert dropped == CommitChanges(four, (three,), excluded=(exclusion,))

    def test_row_ids_escape_bytes_that_are_not_utf8(self, repo: RepoBuilder) -> None:
        commit = repo.commit({b"\xe9.py": symlink("x")})
        (changes,) = changes_of(repo, commit)
        assert [item.row_id for item in changes.excluded] == [f"o/r@{commit}:\\xe9.py"]

    @pytest.mark.parametrize("damage", ["remove", "corrupt"])
    def test_an_unreadable_tree_costs_only_its_commits(self, repo: RepoBuilder, damage: str) -> None:
        commits = [repo.commit({"pkg/a.py": str(n).encode()}) for n in range(6)]
        getattr(repo, damage)(repo.root_tree(commits[2]))
        changes = changes_of(repo, *commits)
        assert [item.commit_id for item in changes] == commits
        # The broken commit and its child, which is compared with it.
        assert [[fault.reason for fault in item.excluded] for item in changes] == [
            [],
            [],
            ["commit_unreadable"],
            ["commit_unreadable"],
            [],
            [],
        ]
        assert [len(item.files) for item in changes] == [1, 1, 0, 0, 1, 1]
        assert changes[2].excluded[0].row_id == f"o/r@{commits[2]}"
        assert changes[2].excluded[0].stage == "commits"
        assert "fatal" in changes[2].excluded[0].detail

    @pytest.mark.parametrize("broken", [0, 5])
    def test_an_unreadable_tree_at_either_end(self, repo: RepoBuilder, broken: int) -> None:
        commits = [repo.commit({"a.py": str(n).encode()}, parents=[], branch=f"b{n}") for n in range(6)]
        repo.remove(repo.root_tree(commits[broken]))
        changes = changes_of(repo, *commits)
        assert [item.commit_id for item in changes] == commits
        assert [bool(item.excluded) for item in changes] == [n == broken for n in range(6)]

    def test_a_missing_parent_costs_only_its_children(self, repo: RepoBuilder) -> None:
        lost = repo.commit({"a.py": b"1"})
        child = repo.commit({"a.py": b"2"})
        grandchild = repo.commit({"a.py": b"3"})
        repo.remove(lost)
        changes = changes_of(repo, child, grandchild)
        assert [[fault.reason for fault in item.excluded] for item in changes] == [["commit_unreadable"], []]

    def test_missing_blobs_are_no_trouble_here(self, repo: RepoBuilder) -> None:
        repo.commit({"a.py": b"1"})
        commit = repo.commit({"a.py": b"2"})
        repo.remove(repo.blob_of(commit, "a.py"))
        (changes,) = changes_of(repo, commit)
        assert paths(changes.files) == [b"a.py"]


class TestMerges:
    def test_a_clean_merge_brings_nothing(self, repo: RepoBuilder) -> None:
        root = repo.commit({"a.py": b"1"})
        left = repo.commit({"a.py": b"2"})
        right = repo.commit({"b.py": b"1"}, parents=[root], branch="side")
        merge = repo.commit({"b.py": b"1"}, parents=[left, right])
        (changes,) = changes_of(repo, merge)
        assert changes == CommitChanges(merge, (left, right))

    def test_an_evil_merge_brings_what_no_parent_has(self, repo: RepoBuilder) -> None:
        root = repo.commit({"a.py": b"1", "both.py": b"1"})
        left = repo.commit({"a.py": b"2"})
        right = repo.commit({"a.py": b"3", "b.py": b"1"}, parents=[root], branch="side")
        merge = repo.commit({"a.py": b"4", "b.py": b"1", "evil.py": b"5", "both.py": None}, parents=[left, right])
        (changes,) = changes_of(repo, merge)
        blob = repo.blob
        assert changes.files == (
            FileChange(b"a.py", "100644", blob(b"4"), (OldFile("100644", blob(b"2")), OldFile("100644", blob(b"3")))),
            FileChange(b"evil.py", "100644", blob(b"5"), (None, None)),
        )
        assert changes.deleted == (
            FileChange(b"both.py", None, None, (OldFile("100644", blob(b"1")), OldFile("100644", blob(b"1")))),
        )

    def test_an_octopus_has_one_before_per_parent(self, repo: RepoBuilder) -> None:
        root = repo.commit({"a.py": b"0"})
        arms = [repo.commit({"a.py": str(n).encode()}, parents=[root], branch=f"arm{n}") for n in range(1, 4)]
        merge = repo.commit({"a.py": b"9"}, parents=arms)
        (changes,) = changes_of(repo, merge)
        before = tuple(OldFile("100644", repo.blob(str(n).encode())) for n in range(1, 4))
        assert changes.files == (FileChange(b"a.py", "100644", repo.blob(b"9"), before),)

    def test_a_merge_with_another_root(self, repo: RepoBuilder) -> None:
        ours = repo.commit({"a.py": b"1"})
        theirs = repo.commit({"b.py": b"1"}, parents=[], branch="other")
        merge = repo.commit({"b.py": b"1", "c.py": b"2"}, parents=[ours, theirs])
        (changes,) = changes_of(repo, merge)
        assert changes.files == (FileChange(b"c.py", "100644", repo.blob(b"2"), (None, None)),)

    def test_the_same_parent_twice(self, repo: RepoBuilder) -> None:
        root = repo.commit({"a.py": b"1"})
        merge = repo.commit({"a.py": b"2"}, parents=[root, root])
        (changes,) = changes_of(repo, merge)
        assert paths(changes.files) == [b"a.py"]


class TestRenames:
    def test_an_unchanged_file_is_followed(self, repo: RepoBuilder) -> None:
        repo.commit({"old/a.py": BODY})
        (changes,) = changes_of(repo, repo.commit({"old/a.py": None, "new/b.py": BODY}))
        assert changes.renames == ((b"new/b.py", b"old/a.py"),)

    def test_an_edited_file_is_followed(self, repo: RepoBuilder) -> None:
        repo.commit({"a.py": BODY, "other.py": b"z = 1\n"})
        (changes,) = changes_of(repo, repo.commit({"a.py": None, "b.py": BODY + b"more = 1\n", "c.py": b"q = 2\n"}))
        assert changes.renames == ((b"b.py", b"a.py"),)

    def test_a_rewritten_file_is_no_rename(self, repo: RepoBuilder) -> None:
        repo.commit({"a.py": BODY})
        (changes,) = changes_of(repo, repo.commit({"a.py": None, "b.py": b"quite = 'different'\n" * 30}))
        assert changes.renames == ()

    def test_a_copy_is_no_rename(self, repo: RepoBuilder) -> None:
        repo.commit({"a.py": BODY})
        (changes,) = changes_of(repo, repo.commit({"b.py": BODY}))
        assert changes.renames == ()

    def test_equal_files_keep_their_names_when_folders_move(self, repo: RepoBuilder) -> None:
        repo.commit({"old/a.py": BODY, "old/b.py": BODY})
        commit = repo.commit({"old/a.py": None, "old/b.py": None, "new/a.py": BODY, "new/b.py": BODY})
        (changes,) = changes_of(repo, commit)
        assert changes.renames == ((b"new/a.py", b"old/a.py"), (b"new/b.py", b"old/b.py"))

    def test_each_old_file_is_used_once(self, repo: RepoBuilder) -> None:
        repo.commit({"a.py": BODY})
        (changes,) = changes_of(repo, repo.commit({"a.py": None, "b.py": BODY, "c.py": BODY}))
        assert changes.renames == ((b"b.py", b"a.py"),)

    def test_missing_blobs_leave_exact_renames(self, repo: RepoBuilder) -> None:
        first = repo.commit({"a.py": BODY, "b.py": BODY + b"1\n"})
        commit = repo.commit({"a.py": None, "b.py": None, "c.py": BODY, "d.py": BODY + b"2\n"})
        repo.remove(repo.blob_of(first, "b.py"))
        (changes,) = changes_of(repo, commit)
        assert changes.renames == ((b"c.py", b"a.py"),)
        assert paths(changes.files) == [b"c.py", b"d.py"]

    def test_a_merge_is_followed_along_its_first_parent(self, repo: RepoBuilder) -> None:
        root = repo.commit({"a.py": BODY})
        left = repo.commit({"x.py": b"1"})
        right = repo.commit({"y.py": b"1"}, parents=[root], branch="side")
        merge = repo.commit({"a.py": None, "b.py": BODY, "y.py": b"1"}, parents=[left, right])
        (changes,) = changes_of(repo, merge)
        assert changes.renames == ((b"b.py", b"a.py"),)

    def test_odd_names(self, repo: RepoBuilder) -> None:
        repo.commit({b"\xe9\n.py": BODY})
        (changes,) = changes_of(repo, repo.commit({b"\xe9\n.py": None, b":new .py": BODY + b"more = 1\n"}))
        assert changes.renames == ((b":new .py", b"\xe9\n.py"),)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"a/b.py", "a/b.py"),
        ("größe.py".encode(), "größe.py"),
        (b"\xe9.py", "\\xe9.py"),
        (b"\\xe9.py", "\\\\xe9.py"),
        (b"\\\xe9.py", "\\\\\\xe9.py"),
        (b"a\\b.py", "a\\\\b.py"),
        (b"\xed\xa0\x80.py", "\\xed\\xa0\\x80.py"),
    ],
)
def test_display_path(path: bytes, text: str) -> None:
    assert display_path(path) == text


@given(st.text("\\xeé9/f", max_size=8), st.integers(0, 8), st.lists(st.integers(0x80, 0xFF), max_size=2))
def test_different_paths_are_displayed_differently(text: str, position: int, odd: list[int]) -> None:
    path = text.encode()[:position] + bytes(odd) + text.encode()[position:]
    shown = display_path(path)
    back = re.sub(rb"\\(?:\\|x(..))", lambda found: bytes.fromhex((found[1] or b"5c").decode()), shown.encode())
    assert back == path
