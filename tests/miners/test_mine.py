import errno
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import miners.take
from miners.changes import CommitChanges
from miners.clone import Clone
from miners.diffs import CommitDiffs, DiffRequest
from miners.mine import MinedRepository, mine_repository
from miners.novelty import DefinitionStore
from schemas.config import MiningConfig, WindowConfig
from schemas.errors import ConfigError, DataError, TransientError
from schemas.records import Exclusion, Novelty, RepositoryRecord, make_row_id
from tests.builders import FIRST_DATE, RepoBuilder, executable, git, submodule, symlink

SINCE = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "1600000000 +0000"
REPO = "example/shapes"
KEY = "local:7"
AREA = b"def area(width, height):\n    return width * height\n"
ROUND = b"def round_up(value):\n    return -(-value // 1)\n"


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def mine(
    builder: RepoBuilder, config: MiningConfig | None = None, web_url: str | None = None, now: datetime = NOW
) -> MinedRepository:
    head = git(builder.git_dir, "rev-parse", "HEAD").decode().strip()
    record = RepositoryRecord(REPO, "local", 7, web_url, "main", head, 1)
    return mine_repository(Clone(builder.git_dir, record), config or MiningConfig(), WindowConfig(SINCE), now)


def rows(mined: MinedRepository) -> list[tuple[str, str, str, str | None, str | None]]:
    return [
        (row.path, row.fun_name, row.novelty.value, row.earlier_path, row.earlier_fun_name) for row in mined.methods
    ]


def reasons(mined: MinedRepository) -> list[tuple[str, str, str]]:
    return [(item.stage, item.reason, item.row_id.removeprefix(REPO)) for item in mined.excluded]


def counts(mined: MinedRepository) -> dict[str, tuple[int, int]]:
    return {report.stage: (report.rows_in, report.rows_out) for report in mined.reports}


class TestRows:
    def test_every_column_of_a_method(self, builder: RepoBuilder) -> None:
        parent = builder.commit({"LICENSE": b"", "x.py": b"# SPDX-License-Identifier: MIT\n"}, "First")
        source = b"# SPDX-License-Identifier: MIT\n\nclass Shape:\n"
        source += b"    @staticmethod\n    def area(a):\n        return a * a\n"
        commit = builder.commit({"pkg/a b.py": source}, "Add shape\n\nMore\n", "1710000000 +0100", "1710000500 -0500")
        mined = mine(builder, web_url="https://example.org/o/n")
        (row,) = mined.methods
        assert row == type(row)(
            row_id=make_row_id("example.org:7", commit, "pkg/a b.py", "Shape.area", 49),
            repo=REPO,
            repo_id=7,
            url=f"https://example.org/o/n/blob/{commit}/pkg/a%20b.py#L4-L6",
            license="MIT",
            license_matches=("header: MIT", "LICENSE: NOASSERTION"),
            copyrights=(),
            commit_id=commit,
            parent_id=parent,
            author_date=datetime(2024, 3, 9, 16, tzinfo=UTC),
            committer_date=datetime(2024, 3, 9, 16, 8, 20, tzinfo=UTC),
            path="pkg/a b.py",
            file_name="a b.py",
            fun_name="Shape.area",
            language="python",
            blob_id=builder.blob_of(commit, "pkg/a b.py"),
            start_byte=49,
            end_byte=len(source) - 1,
            start_line=4,
            end_line=6,
            novelty=Novelty.ADDED,
            earlier_path=None,
            earlier_fun_name=None,
            earlier_commit_id=None,
            similarity=None,
            token_key=row.token_key,
            is_test=False,
            commit_message="Add shape\n\nMore\n",
            author_is_bot=False,
            code="@staticmethod\ndef area(a):\n    return a * a",
        )
        assert source[row.start_byte : row.end_byte].decode() == "@staticmethod\n    def area(a):\n        return a * a"

    def test_changed_files_have_the_diff_and_only_where_a_method_is_added(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA, "b.py": AREA.replace(b"area", b"size")}, author_date=OLD)
        commit = builder.commit({"a.py": AREA + ROUND, "b.py": AREA.replace(b"area", b"size").replace(b"*", b"+")})
        mined = mine(builder)
        assert rows(mined) == [
            ("a.py", "round_up", "added", None, None),
            ("b.py", "size", "modified", "b.py", "size"),
        ]
        (file,) = mined.files
        assert (file.commit_id, file.path, file.old_path) == (commit, "a.py", None)
        assert file.diff.splitlines()[-2:] == ["+def round_up(value):", "+    return -(-value // 1)"]

    def test_a_root_commit_in_the_window_has_no_parent(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA})
        mined = mine(builder)
        assert [(row.fun_name, row.parent_id, row.novelty) for row in mined.methods] == [("area", None, Novelty.ADDED)]
        assert [(file.old_blob_id, file.diff.count("\n+")) for file in mined.files] == [(None, 3)]

    def test_a_file_in_another_encoding_has_offsets_of_the_blob(self, builder: RepoBuilder) -> None:
        source = "# coding: latin-1\n# äöü\ndef f():\n    return 'ß'\n".encode("latin-1")
        builder.commit({"a.py": source})
        (row,) = mine(builder).methods
        assert source[row.start_byte : row.end_byte].decode("latin-1") == row.code == "def f():\n    return 'ß'"

    def test_a_path_that_is_no_utf8_is_escaped_and_quoted(self, builder: RepoBuilder) -> None:
        commit = builder.commit({b"HighASCII_\xe9.py": AREA})
        (row,) = mine(builder, web_url="https://example.org/o/n").methods
        assert row.path == "HighASCII_\\xe9.py"
        assert row.url == f"https://example.org/o/n/blob/{commit}/HighASCII_%E9.py#L1-L2"

    def test_methods_come_by_commit_path_and_position(self, builder: RepoBuilder) -> None:
        builder.commit({"b.py": ROUND + AREA, "a.py": b"def z(): return 1\n"})
        builder.commit({"a.py": b"def y(): return 2\ndef z(): return 1\n"})
        assert [row[:2] for row in rows(mine(builder))] == [
            ("a.py", "z"), ("b.py", "round_up"), ("b.py", "area"), ("a.py", "y"),
        ]  # fmt: skip

    def test_unchanged_methods_are_no_rows(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA + ROUND}, author_date=OLD)
        builder.commit({"a.py": b"import os\n\n" + ROUND + AREA})
        assert rows(mine(builder)) == []

    def test_executable_files_count(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": executable(AREA)})
        assert rows(mine(builder)) == [("a.py", "area", "added", None, None)]


class TestNovelty:
    def test_renamed_files_are_followed(self, builder: RepoBuilder) -> None:
        filler = b"".join(b"def f%d(): return %d\n" % (n, n) for n in range(9))
        builder.commit({"old.py": filler + AREA}, author_date=OLD)
        builder.commit({"old.py": None, "new.py": filler + AREA.replace(b"*", b"+")})
        assert rows(mine(builder)) == [("new.py", "area", "modified", "old.py", "area")]

    def test_a_rename_without_change_brings_nothing(self, builder: RepoBuilder) -> None:
        builder.commit({"old.py": AREA}, author_date=OLD)
        builder.commit({"old.py": None, "new.py": AREA})
        assert rows(mine(builder)) == []

    def test_a_new_method_in_a_renamed_file_has_the_old_path_in_its_file_row(self, builder: RepoBuilder) -> None:
        filler = b"".join(b"def f%d(): return %d\n" % (n, n) for n in range(9))
        old = builder.commit({"old.py": filler}, author_date=OLD)
        builder.commit({"old.py": None, "new.py": filler + AREA})
        (file,) = mine(builder).files
        assert (file.old_path, file.old_blob_id) == ("old.py", builder.blob_of(old, "old.py"))

    def test_moved_from_a_file_that_no_commit_of_the_window_touches(self, builder: RepoBuilder) -> None:
        builder.commit({"lib/old.py": AREA + ROUND}, author_date=OLD)
        builder.commit({"new.py": b"# copied\n" + AREA})
        builder.commit({"other.py": b"class A:\n    " + ROUND.replace(b"\n", b"\n    ").replace(b"round_up", b"ceil")})
        mined = mine(builder)
        assert rows(mined) == [
            ("new.py", "area", "moved", "lib/old.py", "area"),
            ("other.py", "A.ceil", "renamed", "lib/old.py", "round_up"),
        ]
        assert counts(mined)["index"] == (1, 1)

    def test_code_that_was_deleted_comes_back_as_restored(self, builder: RepoBuilder) -> None:
        old = builder.commit({"a.py": AREA, "b.py": ROUND}, author_date=OLD)
        builder.commit({"a.py": None})
        builder.commit({"c.py": AREA + b"\n"})
        mined = mine(builder)
        assert rows(mined) == [("c.py", "area", "restored", "a.py", "area")]
        assert [(row.earlier_commit_id, row.similarity) for row in mined.methods] == [(old, 1.0)]

    def test_commits_outside_the_window_between_those_inside_are_parents_too(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": b"x = 1\n"})
        builder.commit({"b.py": AREA}, author_date=OLD)
        builder.commit({"c.py": AREA + b"\n"})
        assert rows(mine(builder)) == [("c.py", "area", "moved", "b.py", "area")]

    def test_vendored_and_generated_files(self, builder: RepoBuilder) -> None:
        builder.commit({"vendor/a.py": AREA, "b_pb2.py": ROUND, "c.py": b"# Generated by x\ndef f(): return 1\n"})
        mined = mine(builder)
        assert [row[1:3] for row in rows(mined)] == [
            ("round_up", "generated"), ("f", "generated"), ("area", "vendored"),
        ]  # fmt: skip
        assert mined.files == []

    def test_names_of_vendor_folders_come_from_the_configuration(self, builder: RepoBuilder) -> None:
        builder.commit({"vendor/a.py": AREA, "ours/b.py": ROUND})
        mined = mine(builder, MiningConfig(vendored_paths=("ours",)))
        assert [row[1:3] for row in rows(mined)] == [("round_up", "vendored"), ("area", "added")]

    def test_a_clean_merge_brings_nothing(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": AREA}, author_date=OLD)
        side = builder.commit({"b.py": ROUND}, parents=[base], branch="side")
        main = builder.commit({"c.py": b"def f(): return 1\n"})
        builder.commit({"b.py": ROUND}, "Merge", parents=[main, side])
        assert sorted(row[1] for row in rows(mine(builder))) == ["f", "round_up"]

    def test_an_evil_merge_brings_what_no_parent_has(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": AREA}, author_date=OLD)
        side = builder.commit({"a.py": AREA + ROUND}, author_date=OLD, parents=[base], branch="side")
        main = builder.commit({"a.py": b"x = 1\n" + AREA}, author_date=OLD)
        merge = builder.commit(
            {"a.py": b"x = 1\n" + AREA + ROUND + b"def evil(): return 6\n"}, "Merge", parents=[main, side]
        )
        mined = mine(builder)
        assert rows(mined) == [("a.py", "evil", "added", None, None)]
        assert mined.methods[0].parent_id == main
        assert [file.commit_id for file in mined.files] == [merge]

    def test_what_came_in_a_branch_is_known_after_its_merge(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": AREA}, author_date=OLD)
        side = builder.commit({"b.py": ROUND}, author_date=OLD, parents=[base], branch="side")
        main = builder.commit({"c.py": b"x = 1\n"})
        builder.commit({"b.py": ROUND}, "Merge", parents=[main, side])
        builder.commit({"d.py": ROUND + b"\n"})
        assert rows(mine(builder)) == [("d.py", "round_up", "moved", "b.py", "round_up")]


class TestWhatIsLeftOut:
    def test_bad_files_cost_only_themselves(self, builder: RepoBuilder) -> None:
        files = {
            "big.py": b"#" * 2000, "binary.py": b"\0", "good.py": AREA, "latin.py": b"x = '\xe9'\n",
            "lfs.py": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "link.py": symlink("good.py"),
            "sub.py": submodule("a" * 40),
        }  # fmt: skip
        commit = builder.commit(files)
        mined = mine(builder, MiningConfig(max_file_bytes=1000))
        assert rows(mined) == [("good.py", "area", "added", None, None)]
        assert sorted(reasons(mined)) == [
            ("files", "binary", f"@{commit}:binary.py"),
            ("files", "file_too_large", f"@{commit}:big.py"),
            ("files", "lfs_pointer", f"@{commit}:lfs.py"),
            ("files", "submodule", f"@{commit}:sub.py"),
            ("files", "symlink", f"@{commit}:link.py"),
            ("files", "undecodable", f"@{commit}:latin.py"),
        ]
        assert counts(mined) == {
            "commits": (1, 1), "files": (7, 1), "methods": (1, 1), "index": (0, 0), "history": (0, 0),
        }  # fmt: skip

    def test_a_missing_blob_costs_the_commits_that_need_it(self, builder: RepoBuilder) -> None:
        first = builder.commit({"a.py": AREA, "b.py": ROUND})
        second = builder.commit({"a.py": AREA + b"def f(): return 1\n"})
        builder.commit({"a.py": AREA + b"def f(): return 1\ndef g(): return 2\n"})
        builder.remove(builder.blob_of(second, "a.py"))
        mined = mine(builder)
        assert [row[1:3] for row in rows(mined)] == [("area", "added"), ("round_up", "added")]
        assert [item[:2] for item in reasons(mined)] == [
            ("files", "blob_missing"), ("files", "old_version_unreadable"),
        ]  # fmt: skip
        assert mined.commits[0].commit_id == first

    def test_a_missing_blob_in_an_old_tree_is_counted(self, builder: RepoBuilder) -> None:
        old = builder.commit({"a.py": AREA, "b.py": ROUND}, author_date="1660000000 +0000")
        builder.commit({"c.py": b"def f(): return 1\n"})
        builder.remove(builder.blob_of(old, "a.py"))
        mined = mine(builder)
        assert [row[1] for row in rows(mined)] == ["f"]
        assert reasons(mined) == [
            ("index", "blob_missing", f"@{old}:a.py"),
            ("history", "commit_unreadable", f"@{old}"),
        ]
        assert counts(mined)["index"] == (2, 1)
        assert counts(mined)["history"] == (1, 0)

    def test_a_corrupt_blob(self, builder: RepoBuilder) -> None:
        commit = builder.commit({"a.py": AREA, "b.py": ROUND})
        builder.corrupt(builder.blob_of(commit, "a.py"))
        mined = mine(builder)
        assert [row[1] for row in rows(mined)] == ["round_up"]
        assert reasons(mined) == [("files", "object_corrupt", f"@{commit}:a.py")]

    def test_a_missing_tree_costs_its_commit(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA})
        bad = builder.commit({"a.py": AREA + ROUND})
        builder.commit({"a.py": AREA, "b.py": b"def f(): return 1\n"})
        last = builder.commit({"c.py": b"def g(): return 2\n"})
        builder.remove(builder.root_tree(bad))
        mined = mine(builder)
        assert [row[1] for row in rows(mined)] == ["area", "g"]
        assert [(stage, reason) for stage, reason, _ in reasons(mined)] == [("commits", "commit_unreadable")] * 2
        assert mined.commits[-1].commit_id == last

    def test_too_many_files(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA})
        bad = builder.commit({f"m{n}.py": b"def f%d(): return %d\n" % (n, n) for n in range(5)})
        builder.commit({"z.py": b"def f3(): return 3\ndef new(): return 9\n"})
        mined = mine(builder, MiningConfig(max_files_per_commit=4))
        assert rows(mined) == [
            ("a.py", "area", "added", None, None),
            ("z.py", "f3", "moved", "m3.py", "f3"),
            ("z.py", "new", "added", None, None),
        ]
        assert reasons(mined) == [("commits", "too_many_files", f"@{bad}")]
        assert counts(mined)["commits"] == (3, 2)

    def test_dates(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA}, author_date=OLD)
        builder.commit({"b.py": ROUND}, author_date=OLD, committer_date=FIRST_DATE)
        future = NOW + timedelta(days=9)
        builder.commit({"c.py": b"def f(): return 1\n"}, author_date=FIRST_DATE, committer_date=future)
        builder.commit({"d.py": b"def g(): return 1\n"}, author_date=future + timedelta(days=1))
        mined = mine(builder)
        assert rows(mined) == []
        assert [reason for _, reason, _ in reasons(mined)] == [
            "author_date_outside",
            "date_in_future",
            "date_in_future",
        ]
        assert counts(mined)["commits"] == (3, 0)
        assert mined.valid_until == future
        later = mine(builder, now=future)
        assert [row[1:3] for row in rows(later)] == [("f", "added")]
        assert later.valid_until == future + timedelta(days=1)

    def test_nothing_in_the_future(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA})
        assert mine(builder).valid_until is None

    def test_a_repository_without_python(self, builder: RepoBuilder) -> None:
        builder.commit({"README": b"text\n"})
        mined = mine(builder)
        assert reasons(mined) == [("sources", "repository_without_python", "")]
        assert counts(mined) == {
            "commits": (1, 1), "files": (0, 0), "methods": (0, 0), "index": (0, 0), "history": (0, 0),
        }  # fmt: skip

    def test_python_outside_the_window_is_python(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA}, author_date=OLD)
        assert reasons(mine(builder)) == []

    def test_a_method_that_cannot_be_dedented(self, builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(source: bytes, span: object, *, is_sound: bool) -> str:
            raise DataError("dedent_failed", "no")

        monkeypatch.setattr("miners.method_rows.dedent", refuse)
        commit = builder.commit({"a.py": AREA})
        mined = mine(builder)
        row_id = make_row_id(KEY, commit, "a.py", "area", 0)
        assert mined.excluded == [Exclusion(row_id, "methods", "dedent_failed", "no")]
        assert counts(mined)["methods"] == (1, 0)

    def test_a_lost_scope_is_an_exclusion_once(self, builder: RepoBuilder) -> None:
        broken = b"x = [\n    def m(self):\n        return 1\n"
        commit = builder.commit({"a.py": broken})
        builder.commit({"a.py": b"y = 1\n" + broken})
        mined = mine(builder)
        assert mined.excluded == [
            Exclusion(
                make_row_id(KEY, commit, "a.py", "m", 10),
                "methods",
                "scope_unknown",
                "a.py:2: a syntax error hides the scope of m",
            )
        ]

    def test_monstrous_nesting_costs_at_most_its_own_file(self, builder: RepoBuilder) -> None:
        deep = b"def f():\n    return " + b"(" * 20_000 + b")" * 20_000 + b"\n"
        builder.commit({"a.py": deep, "b.py": AREA})
        mined = mine(builder)
        assert ("b.py", "area", "added", None, None) in rows(mined)
        assert counts(mined)["files"][0] == 2

    def test_whatever_one_file_provokes_its_neighbours_stay(
        self, builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = miners.take.is_generated

        def fail(path: str, source: bytes, patterns: tuple[str, ...]) -> bool:
            if path == "a.py":
                raise RecursionError("too deep")
            return real(path, source, patterns)

        monkeypatch.setattr("miners.take.is_generated", fail)
        commit = builder.commit({"a.py": AREA, "b.py": ROUND})
        mined = mine(builder)
        assert [row[1] for row in rows(mined)] == ["round_up"]
        detail = "RecursionError: too deep"
        assert mined.excluded == [Exclusion(f"{REPO}@{commit}:a.py", "files", "file_unparsable", detail)]

    def test_whatever_one_commit_provokes_the_other_commits_stay(
        self, builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = miners.take.CommitDiffs
        first = builder.commit({"a.py": AREA})
        bad = builder.commit({"b.py": ROUND, "c.py": b"\0", "link.py": symlink("a.py")})
        last = builder.commit({"d.py": b"def last(value):\n    return value[-1]\n", "e.py": ROUND})

        def fail(parent: str | None, commit: str, requests: tuple[DiffRequest, ...]) -> CommitDiffs:
            if commit == bad:
                raise UnicodeError("not \ud800 foreseen")
            return real(parent, commit, requests)

        monkeypatch.setattr("miners.take.CommitDiffs", fail)
        mined = mine(builder)
        detail = "UnicodeError: not \ufffd foreseen"
        assert [row.commit_id for row in mined.commits] == [first, last]
        assert rows(mined) == [
            ("a.py", "area", "added", None, None),
            ("d.py", "last", "added", None, None),
            ("e.py", "round_up", "moved", "b.py", "round_up"),
        ]
        assert [row.path for row in mined.files] == ["a.py", "d.py"]
        assert mined.excluded == [Exclusion(f"{REPO}@{bad}", "commits", "commit_failed", detail)]
        assert counts(mined) == {
            "commits": (3, 2), "files": (3, 3), "methods": (3, 3), "index": (0, 0), "history": (0, 0),
        }  # fmt: skip

    def test_an_old_file_that_provokes_anything_is_counted(
        self, builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = miners.take.DefinitionStore.note
        old = builder.commit({"a.py": AREA, "b.py": ROUND}, author_date=OLD)
        bad = builder.blob_of(old, "a.py")
        builder.commit({"c.py": ROUND})

        def fail(store: DefinitionStore, blob_id: str) -> None:
            if blob_id == bad:
                raise RecursionError("too deep")
            real(store, blob_id)

        monkeypatch.setattr("miners.take.DefinitionStore.note", fail)
        mined = mine(builder)
        detail = "RecursionError: too deep"
        assert rows(mined) == [("c.py", "round_up", "moved", "b.py", "round_up")]
        assert mined.excluded == [Exclusion(f"{REPO}@{old}:a.py", "index", "file_unparsable", detail)]
        assert counts(mined)["index"] == (2, 1)

    @pytest.mark.parametrize(
        "error", [OSError(errno.ENOSPC, "no space left"), ConfigError("no git"), TransientError("cut off")]
    )
    def test_what_the_machine_lacks_is_no_fault_of_a_commit(
        self, builder: RepoBuilder, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        def fail(*_: object) -> CommitChanges:
            raise error

        monkeypatch.setattr("miners.take.with_renames", fail)
        builder.commit({"a.py": AREA})
        with pytest.raises(type(error)):
            mine(builder)

    def test_a_path_longer_than_an_argument_may_be_costs_its_commit(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA})
        long = builder.commit({b"n" * 140_000 + b".py": ROUND})
        mined = mine(builder)
        assert rows(mined) == [("a.py", "area", "added", None, None)]
        assert reasons(mined) == [("commits", "commit_failed", f"@{long}")]

    def test_a_message_in_an_odd_encoding(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA}, "Add \\ud800 area", encoding="unicode_escape")
        builder.commit({"b.py": ROUND}, "Round +2AA- up", encoding="utf-7")
        assert [row.commit_message for row in mine(builder).methods] == ["Add \\ud800 area", "Round \ufffd up"]

    def test_paths_that_look_alike_have_rows_of_their_own(self, builder: RepoBuilder) -> None:
        builder.commit({b"a\xff.py": AREA, b"a\\xff.py": ROUND + AREA.replace(b"area", b"size")})
        mined = mine(builder)
        assert [(row.path, row.fun_name) for row in mined.methods] == [
            ("a\\\\xff.py", "round_up"),
            ("a\\\\xff.py", "size"),
            ("a\\xff.py", "area"),
        ]
        assert [row.path for row in mined.files] == ["a\\\\xff.py", "a\\xff.py"]

    def test_a_path_twice_in_a_malformed_tree(self, builder: RepoBuilder) -> None:
        builder.commit({"z.py": b""}, author_date=OLD)
        blobs = [builder.blob(AREA), builder.blob(AREA.replace(b"*", b"+") + ROUND)]
        entry = b"100644 a.py\0"
        tree = builder.write("tree", b"".join(entry + bytes.fromhex(blob) for blob in blobs))
        person = b"A <a@example.org> 1710000000 +0000"
        head = b"tree " + tree.encode() + b"\nauthor " + person + b"\ncommitter " + person + b"\n\nAdd\n"
        commit = builder.raw_commit(head, branch="main")
        mined = mine(builder)
        assert [(row.fun_name, row.blob_id) for row in mined.methods] == [("area", blobs[0]), ("round_up", blobs[1])]
        assert [(row.path, row.blob_id) for row in mined.files] == [("a.py", blobs[0])]
        assert mined.excluded == [
            Exclusion(
                make_row_id(KEY, commit, "a.py", "area", 0),
                "methods",
                "row_id_repeated",
                "a.py:1: the commit's tree has the path more than once",
            )
        ]
        assert counts(mined)["methods"] == (3, 2)


def test_the_same_input_gives_the_same_result(builder: RepoBuilder) -> None:
    builder.commit({"a.py": AREA, "b.py": ROUND}, author_date=OLD)
    builder.commit({"c.py": AREA + b"\n", "d.py": ROUND.replace(b"value", b"x")})
    assert mine(builder) == mine(builder)


def test_a_sha256_repository(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "repo.git", object_format="sha256")
    builder.commit({"a.py": AREA}, author_date=OLD)
    builder.commit({"b.py": AREA + ROUND})
    assert [row[1:4] for row in rows(mine(builder))] == [("area", "moved", "a.py"), ("round_up", "added", None)]


def test_a_missing_commit_costs_itself_and_its_child(builder: RepoBuilder) -> None:
    first = builder.commit({"a.py": AREA})
    second = builder.commit({"b.py": ROUND})
    builder.commit({"c.py": b"def f(): return 1\n"})
    builder.remove(first)
    mined = mine(builder)
    assert [row[1] for row in rows(mined)] == ["f"]
    assert reasons(mined) == [
        ("commits", "commit_unreadable", f"@{first}"),
        ("commits", "commit_unreadable", f"@{second}"),
    ]


def test_the_record_is_handed_on(builder: RepoBuilder) -> None:
    builder.commit({"a.py": AREA})
    mined = mine(builder)
    assert mined.record == replace(mined.record, repo=REPO, repo_id=7)
