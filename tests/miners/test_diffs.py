from pathlib import Path

import pytest

from miners.diffs import CommitDiffs, DiffRequest, file_diff, file_diffs
from tests.builders import RepoBuilder, executable, git, symlink

BODY = b"".join(b"line_%d = %d\n" % (n, n) for n in range(30))


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def test_a_changed_file(repo: RepoBuilder) -> None:
    first = repo.commit({"pkg/a.py": b"one\ntwo\nthree\nfour\nfive\n", "b.py": b"1\n"})
    second = repo.commit({"pkg/a.py": b"one\ntwo\nthree\nfour\nFIVE\nsix", "b.py": b"2\n"})
    old, new = repo.blob_of(first, "pkg/a.py"), repo.blob_of(second, "pkg/a.py")
    assert file_diff(repo.git_dir, first, second, [DiffRequest(b"pkg/a.py")]) == {
        b"pkg/a.py": (
            "diff --git a/pkg/a.py b/pkg/a.py\n"
            f"index {old}..{new} 100644\n"
            "--- a/pkg/a.py\n"
            "+++ b/pkg/a.py\n"
            "@@ -2,4 +2,5 @@ one\n"
            " two\n"
            " three\n"
            " four\n"
            "-five\n"
            "+FIVE\n"
            "+six\n"
            "\\ No newline at end of file\n"
        )
    }


def test_without_a_parent_everything_is_new(repo: RepoBuilder) -> None:
    root = repo.commit({"a.py": b"x = 1\n"})
    assert file_diff(repo.git_dir, None, root, [DiffRequest(b"a.py")]) == {
        b"a.py": (
            "diff --git a/a.py b/a.py\n"
            "new file mode 100644\n"
            f"index {'0' * 40}..{repo.blob(b'x = 1' + bytes([10]))}\n"
            "--- /dev/null\n"
            "+++ b/a.py\n"
            "@@ -0,0 +1 @@\n"
            "+x = 1\n"
        )
    }


def test_a_sha256_root(tmp_path: Path) -> None:
    repo = RepoBuilder(tmp_path / "sha256.git", object_format="sha256")
    root = repo.commit({"a.py": b"x = 1\n"})
    assert file_diff(repo.git_dir, None, root, [DiffRequest(b"a.py")])[b"a.py"].endswith("@@ -0,0 +1 @@\n+x = 1\n")


def test_many_files_in_one_call_each_get_their_own(repo: RepoBuilder) -> None:
    names = [b"a.py", b"d/a.py", b"d/b.py", b"\xe9.py", b'q"u.py', b"new\nline.py", b"[x].py", b"x.py", "ß.py".encode()]
    first = repo.commit({name: b"old " + name + b"\n" for name in names})
    second = repo.commit({name: b"new " + name + b"\n" for name in names})
    diffs = file_diff(repo.git_dir, first, second, [DiffRequest(name) for name in names])
    assert list(diffs) == sorted(names)
    for name in names:
        text = name.decode("utf-8", "replace").split("\n")[0]
        assert f"\n-old {text}" in diffs[name]
        assert f"\n+new {text}" in diffs[name]
        assert diffs[name].count("diff --git ") == 1


def test_a_path_is_never_a_pattern(repo: RepoBuilder) -> None:
    first = repo.commit({"*.py": b"1\n", "a.py": b"1\n"})
    second = repo.commit({"*.py": b"2\n", "a.py": b"2\n"})
    assert list(file_diff(repo.git_dir, first, second, [DiffRequest(b"*.py")])) == [b"*.py"]


def test_more_files_than_fit_on_one_command_line(repo: RepoBuilder) -> None:
    names = [b"%03d.py" % n for n in range(450)]
    root = repo.commit(dict.fromkeys(names, b"1\n"))
    diffs = file_diff(repo.git_dir, None, root, [DiffRequest(name) for name in names])
    assert list(diffs) == names


def test_contents_that_look_like_a_diff(repo: RepoBuilder) -> None:
    trap = b"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n"
    root = repo.commit({"a.py": trap, "x.py": b"1\n"})
    diffs = file_diff(repo.git_dir, None, root, [DiffRequest(b"a.py"), DiffRequest(b"x.py")])
    assert diffs[b"a.py"].endswith("+diff --git a/x.py b/x.py\n+--- a/x.py\n++++ b/x.py\n+@@ -1 +1 @@\n")
    assert diffs[b"x.py"].endswith("@@ -0,0 +1 @@\n+1\n")


def test_an_unchanged_file_has_no_diff(repo: RepoBuilder) -> None:
    first = repo.commit({"a.py": b"1\n", "b.py": b"1\n"})
    second = repo.commit({"b.py": b"2\n"})
    assert file_diff(repo.git_dir, first, second, [DiffRequest(b"a.py")]) == {}
    assert file_diff(repo.git_dir, first, second, []) == {}


def test_a_renamed_file_is_compared_with_its_old_self(repo: RepoBuilder) -> None:
    first = repo.commit({"old.py": BODY, "b.py": b"1\n"})
    second = repo.commit({"old.py": None, "new.py": BODY + b"more = 1\n", "b.py": b"2\n"})
    diffs = file_diff(repo.git_dir, first, second, [DiffRequest(b"new.py", b"old.py"), DiffRequest(b"b.py")])
    assert list(diffs) == [b"b.py", b"new.py"]
    assert diffs[b"new.py"].startswith("diff --git a/old.py b/new.py\nsimilarity index ")
    assert "\nrename from old.py\nrename to new.py\n" in diffs[b"new.py"]
    assert diffs[b"new.py"].endswith("\n line_29 = 29\n+more = 1\n")


def test_crlf_and_lone_carriage_returns_stay(repo: RepoBuilder) -> None:
    root = repo.commit({"a.py": b"x\r\ny\rz\r\n"})
    assert file_diff(repo.git_dir, None, root, [DiffRequest(b"a.py")])[b"a.py"].endswith("@@\n+x\r\n+y\rz\r\n")


def test_another_encoding_is_decoded(repo: RepoBuilder) -> None:
    root = repo.commit({"a.py": b"# coding: latin-1\ns = '\xdf'\n"})
    (diff,) = file_diff(repo.git_dir, None, root, [DiffRequest(b"a.py", encoding="iso-8859-1")]).values()
    assert diff.endswith("+s = 'ß'\n")
    (diff,) = file_diff(repo.git_dir, None, root, [DiffRequest(b"a.py")]).values()
    assert diff.endswith("+s = '\ufffd'\n")


@pytest.mark.parametrize("encoding", ["idna", "punycode", "unicode_escape", "none"])
def test_an_encoding_that_decodes_no_pieces_gives_utf8(repo: RepoBuilder, encoding: str) -> None:
    root = repo.commit({"a.py": b"s = '\xdf'\n"})
    (diff,) = file_diff(repo.git_dir, None, root, [DiffRequest(b"a.py", encoding=encoding)]).values()
    assert diff.endswith("@@\n+s = '\ufffd'\n")


def test_a_diff_has_no_lone_surrogates(repo: RepoBuilder) -> None:
    root = repo.commit({"a.py": b"+2AA-\n"})
    (diff,) = file_diff(repo.git_dir, None, root, [DiffRequest(b"a.py", encoding="utf-7")]).values()
    assert diff.encode().decode() == diff


def test_a_link_that_becomes_a_file_has_both_halves(repo: RepoBuilder) -> None:
    first = repo.commit({"a.py": symlink("b.py"), "z.py": b"1\n"})
    second = repo.commit({"a.py": b"x = 1\n", "z.py": b"2\n"})
    diffs = file_diff(repo.git_dir, first, second, [DiffRequest(b"a.py"), DiffRequest(b"z.py")])
    assert diffs[b"a.py"].count("diff --git ") == 2
    assert diffs[b"z.py"].endswith("-1\n+2\n")


def test_a_mode_alone_has_a_header_alone(repo: RepoBuilder) -> None:
    first = repo.commit({"a.py": b"1\n", "b.py": b"1\n"})
    second = repo.commit({"a.py": executable(b"1\n"), "b.py": b"2\n"})
    diffs = file_diff(repo.git_dir, first, second, [DiffRequest(b"a.py"), DiffRequest(b"b.py")])
    assert diffs[b"a.py"] == "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n"
    assert diffs[b"b.py"].endswith("-1\n+2\n")


def test_a_missing_blob_costs_only_its_own_diff(repo: RepoBuilder) -> None:
    first = repo.commit({"a.py": b"1\n", "b.py": b"one\n", "c.py": b"3\n"})
    second = repo.commit({"a.py": b"2\n", "b.py": b"two\n", "c.py": b"4\n"})
    repo.remove(repo.blob_of(first, "b.py"))
    requests = [DiffRequest(name) for name in (b"a.py", b"b.py", b"c.py")]
    diffs = file_diff(repo.git_dir, first, second, requests)
    assert list(diffs) == [b"a.py", b"c.py"]


def test_configuration_and_attributes_change_nothing(repo: RepoBuilder) -> None:
    first = repo.commit({"a.py": BODY + b"def f():\n" + BODY + b"x\n", ".gitattributes": b"*.py -diff -text\n"})
    second = repo.commit({"a.py": BODY + b"def f():\n" + BODY + b"y\n"})
    plain = file_diff(repo.git_dir, first, second, [DiffRequest(b"a.py")])
    (repo.git_dir / "info").mkdir(exist_ok=True)
    (repo.git_dir / "info" / "attributes").write_text("*.py binary diff=odd\n")
    for key, value in (
        ("diff.context", "9"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.algorithm", "patience"),
        ("diff.interHunkContext", "50"),
        ("diff.external", "/bin/false"),
        ("diff.odd.textconv", "/bin/false"),
        ("diff.odd.command", "/bin/false"),
        ("diff.renames", "copies"),
        ("diff.orderFile", "/nonexistent"),
        ("core.quotePath", "true"),
        ("color.ui", "always"),
        ("core.abbrev", "5"),
    ):
        git(repo.git_dir, "config", key, value)
    assert file_diff(repo.git_dir, first, second, [DiffRequest(b"a.py")]) == plain
    assert plain[b"a.py"].endswith("\n-x\n+y\n")


def test_many_commits_at_once_give_what_each_gives_alone(tmp_path: Path) -> None:
    repo = RepoBuilder(tmp_path / "repo.git")
    commits = [repo.commit({f"{number}.py": b"x = 1\n", "same.py": b"y = %d\n" % number}) for number in range(300)]
    side = repo.commit({"0.py": b"x = 2\n"}, parents=[commits[0]], branch="side")
    merge = repo.commit({"0.py": b"x = 3\n", "no newline.py": b"z"}, "Merge", parents=[commits[-1], side])
    lost = repo.commit({"lost.py": b"z = 1\n", "0.py": b"x = 4\n"}, parents=[merge])
    repo.remove(repo.blob_of(lost, "lost.py"))
    names = (b"same.py", b"0.py", b"1.py", b"no newline.py", b"lost.py")
    requests = tuple(DiffRequest(name) for name in names)
    parents = [None, *commits[:-1], commits[-1], merge]
    wanted = [
        CommitDiffs(parent, commit, requests) for parent, commit in zip(parents, [*commits, merge, lost], strict=True)
    ]
    found = file_diffs(repo.git_dir, wanted)
    assert sum(map(len, found.values())) == 300 + 2 + 2 + 1
    for item in (wanted[0], wanted[1], wanted[150], *wanted[-2:]):
        assert found[item.commit] == file_diff(repo.git_dir, item.parent, item.commit, requests)
    assert file_diffs(repo.git_dir, []) == {}


def test_renamed_many_and_long_paths_do_not_wait() -> None:
    def can_wait(*requests: DiffRequest) -> bool:
        return CommitDiffs(None, "0" * 40, requests).can_wait

    assert can_wait(DiffRequest(b"a.py"))
    assert not can_wait(DiffRequest(b"a.py", b"b.py"))
    assert not can_wait(*[DiffRequest(b"%d.py" % number) for number in range(201)])
    assert not can_wait(*[DiffRequest(b"%d" % number * 4_000) for number in range(6)])
