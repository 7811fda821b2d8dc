"""Hostile files: whatever one file is, everything its neighbours in the commit and in the history hold is told."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas.config import MiningConfig
from tests.builders import FileChange as Contents
from tests.builders import RepoBuilder, executable, submodule, symlink
from tests.miners.hostile import BETTER, GOOD, OLD, better, good, mine, row


@dataclass(frozen=True, slots=True)
class Case:
    """A file and what becomes of it: its methods (name and code, each once in the file), or a reason."""

    name: str
    contents: Contents
    methods: tuple[tuple[str, bytes], ...] = ()
    reason: str | None = None
    path: bytes = b"m.py"
    shown: str = "m.py"
    novelty: str = "added"
    in_index: bool = True
    """An old tree that holds it is not wholly readable either."""


LF = b"class Crate:\n    def weight(self, unit):\n        total = 0\n\n        return total + unit\n\nEND = 1\n"
WEIGHT = LF[LF.index(b"def") : LF.index(b"\n\nEND")]
MIXED = b"class Crate:\r    def weight(self, unit):\n        total = 0\r\n\r        return total + unit\n\nEND = 1\n"
LATIN = (
    "# -*- coding: latin-1 -*-\n# gr\xfc\xdfe\ndef stra\xdfe(n\xe9):\n    return '\xe4\xf6\xfc' + n\xe9\n\nEND = 1\n"
)
PYTHON_2 = b"""\
import os


def report(rows):
    for row in rows:
        print "%s" % row, `row`
    exec "x = 1" in {}


def modern(value):
    return value


def guarded(path):
    try:
        os.chmod(path, 0777)
    except OSError, error:
        raise ValueError, error
    return 1 <> 2


def last(value):
    return not value
"""
STUB = b"def good(width: int, height: int) -> int: ...\n"

CASES = (
    Case("lf", LF, (("Crate.weight", WEIGHT),)),
    Case("crlf", LF.replace(b"\n", b"\r\n"), (("Crate.weight", WEIGHT.replace(b"\n", b"\r\n")),)),
    Case("cr_only", LF.replace(b"\n", b"\r"), (("Crate.weight", WEIGHT.replace(b"\n", b"\r")),)),
    Case("mixed_line_ends", MIXED, (("Crate.weight", MIXED[MIXED.index(b"def") : MIXED.index(b"\n\nEND")]),)),
    Case("no_final_newline", LF[: LF.index(b"\n\nEND")], (("Crate.weight", WEIGHT),)),
    Case("tabs", LF.replace(b"    ", b"\t"), (("Crate.weight", WEIGHT.replace(b"    ", b"\t")),)),
    Case("form_feed", b"\f\n" + LF.replace(b"\n\nEND", b"\n\f\nEND"), (("Crate.weight", WEIGHT),)),
    Case("byte_order_mark", b"\xef\xbb\xbf" + LF, (("Crate.weight", WEIGHT),)),
    Case("byte_order_mark_and_another_cookie", b"\xef\xbb\xbf# coding: latin-1\n" + LF, reason="undecodable"),
    Case(
        "latin1_with_a_cookie",
        LATIN.encode("latin-1"),
        (("straße", LATIN[LATIN.index("def") : LATIN.index("\n\nEND")].encode("latin-1")),),
    ),
    Case("latin1_without_a_cookie", b"# gr\xfc\xdfe\n" + LF, reason="undecodable"),
    Case("unknown_cookie", b"# coding: klingon\n" + LF, reason="undecodable"),
    Case("utf16", ("\ufeff" + LF.decode()).encode("utf-16-le"), reason="binary"),
    Case("nul_byte", LF + b"\0", reason="binary"),
    Case(
        "python2",
        PYTHON_2,
        (
            ("report", PYTHON_2[PYTHON_2.index(b"def report") : PYTHON_2.index(b"\n\n\ndef modern")]),
            ("modern", b"def modern(value):\n    return value"),
            ("guarded", PYTHON_2[PYTHON_2.index(b"def guarded") : PYTHON_2.index(b"\n\n\ndef last")]),
            ("last", b"def last(value):\n    return not value"),
        ),
    ),
    Case("lfs_pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", reason="lfs_pointer"),
    Case("empty", b""),
    Case("executable", executable(LF), (("Crate.weight", WEIGHT),)),
    Case("symlink", symlink("a_good.py"), reason="symlink", in_index=False),
    Case("symlink_to_nowhere", symlink("../../etc/passwd"), reason="symlink", in_index=False),
    Case("submodule", submodule("1" * 40), reason="submodule", in_index=False),
    Case("notebook", b'{"cells": []}\n', (), "notebook", b"m.ipynb", "m.ipynb", in_index=False),
    Case("type_stub", STUB, (), "type_stub", b"m.pyi", "m.pyi", in_index=False),
    Case("cython", b"cdef int f(): pass\n", (), "cython", b"m.pyx", "m.pyx", in_index=False),
    Case("cython_header", b"cdef int f()\n", (), "cython", b"m.pxd", "m.pxd", in_index=False),
    Case("cython_include", b"cdef int f()\n", (), "cython", b"m.pxi", "m.pxi", in_index=False),
    Case("not_python", b"def f(): pass\n", path=b"m.pyc"),
    Case("upper_case_suffix", LF, path=b"m.PY"),
    Case("latin1_path", LF, (("Crate.weight", WEIGHT),), path=b"m\xe9.py", shown="m\\xe9.py"),
    Case("utf8_path", LF, (("Crate.weight", WEIGHT),), path="größe.py".encode(), shown="größe.py"),
    Case("newline_in_path", LF, (("Crate.weight", WEIGHT),), path=b"m\n\t.py", shown="m\n\t.py"),
    Case("quotes_and_colons", LF, (("Crate.weight", WEIGHT),), path=b":(glob)'m\"*.py", shown=":(glob)'m\"*.py"),
    Case("no_name_but_a_suffix", LF, (("Crate.weight", WEIGHT),), path=b"m/.py", shown="m/.py"),
)
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def _source(case: Case) -> bytes:
    return case.contents if isinstance(case.contents, bytes) else getattr(case.contents, "data", b"")


@cases
def test_a_file_that_a_commit_brings(builder: RepoBuilder, case: Case) -> None:
    commit = builder.commit({"a_good.py": GOOD, case.path: case.contents, "z_good.py": BETTER})
    builder.commit({"later.py": b"def later(): return 1\n"})
    source = _source(case)
    brought = [row(case.shown, name, source, text) for name, text in case.methods]
    rows = sorted([good("a_good.py"), *brought, better("z_good.py")], key=lambda item: (item[0].encode(), item[3]))
    later = row("later.py", "later", b"def later(): return 1", b"def later(): return 1")
    excluded = [] if case.reason is None else [("files", case.reason, f"@{commit}:{case.shown}")]
    assert mine(builder) == ([*rows, later], excluded)


@cases
def test_a_file_of_an_old_tree(builder: RepoBuilder, case: Case) -> None:
    old = builder.commit({"a_good.py": GOOD, case.path: case.contents}, author_date=OLD)
    builder.commit({"a_good.py": GOOD + b"\n\n" + BETTER, "copy.py": b"# copied\n" + GOOD})
    index = case.reason is not None and case.in_index
    assert mine(builder) == (
        [
            row("a_good.py", "better", GOOD + b"\n\n" + BETTER, BETTER.rstrip()),
            row("copy.py", "good", b"# copied\n" + GOOD, GOOD.rstrip(), "moved"),
        ],
        [("index", case.reason, f"@{old}:{case.shown}")] if index else [],
    )


@pytest.mark.parametrize("case", [case for case in CASES if case.path.endswith(b".py")], ids=lambda case: case.name)
def test_a_file_that_a_commit_writes_over(builder: RepoBuilder, case: Case) -> None:
    """Nothing is called new against a version that cannot be read."""
    old = builder.commit({case.path: case.contents}, author_date=OLD)
    new = builder.commit({case.path: GOOD, "z.py": BETTER})
    unreadable = [
        ("files", "old_version_unreadable", f"@{new}:{case.shown}"),
        ("index", case.reason, f"@{old}:{case.shown}"),
    ]
    if case.reason is not None and case.in_index:
        assert mine(builder) == ([better("z.py")], unreadable)
    else:
        rows = sorted([good(case.shown), better("z.py")], key=lambda item: item[0].encode())
        assert mine(builder) == (rows, [])


@cases
def test_a_file_that_a_commit_removes_and_another_writes_anew(builder: RepoBuilder, case: Case) -> None:
    old = builder.commit({case.path: case.contents}, author_date=OLD)
    builder.commit({case.path: None, "new.py": BETTER}, "Remove it")
    builder.commit({"m.py": GOOD}, "Write it anew")
    index = case.reason is not None and case.in_index
    excluded = [("index", case.reason, f"@{old}:{case.shown}")] if index else []
    assert mine(builder) == ([better("new.py"), good("m.py")], excluded)


def test_notebooks_only(builder: RepoBuilder) -> None:
    old = builder.commit({"old.ipynb": b"{}"}, author_date=OLD)
    new = builder.commit({"a.ipynb": b"{}", "old.ipynb": b"{ }", "README.md": b"text\n"})
    assert old != new
    assert mine(builder) == (
        [],
        [
            ("sources", "repository_without_python", ""),
            ("files", "notebook", f"@{new}:a.ipynb"),
            ("files", "notebook", f"@{new}:old.ipynb"),
        ],
    )


def test_a_change_of_mode(builder: RepoBuilder) -> None:
    builder.commit({"a.py": GOOD, "b.py": executable(BETTER), "c.py": GOOD.replace(b"good", b"c")}, author_date=OLD)
    changed = GOOD.replace(b"good", b"c") + BETTER.replace(b"better", b"d").replace(b"1", b"2")
    builder.commit({"a.py": executable(GOOD), "b.py": BETTER, "c.py": executable(changed)})
    text = b"def d(value):\n    return -(-value // 2)"
    assert mine(builder) == ([row("c.py", "d", changed, text)], [])


def test_files_links_submodules_and_folders_change_places(builder: RepoBuilder) -> None:
    """Old code that stood behind no link is `added` where a link was; a file that becomes a link is none any more."""
    names = {"file.py": GOOD, "link.py": symlink("file.py"), "sub.py": submodule("1" * 40), "keep.py": BETTER}
    builder.commit({**names, "folder.py/m.py": b"def m(): return 1\n"}, author_date=OLD)
    first = builder.commit(
        {
            "file.py": symlink("keep.py"), "link.py": b"def was_link(): return 2\n",
            "sub.py": b"def was_sub(): return 3\n",
        }
    )  # fmt: skip
    builder.commit({"folder.py/m.py": None, "folder.py": b"def m(): return 1\ndef n(): return 4\n"})
    second = b"def m(): return 1\ndef n(): return 4\n"
    assert mine(builder) == (
        [
            row("link.py", "was_link", b"def was_link(): return 2\n", b"def was_link(): return 2"),
            row("sub.py", "was_sub", b"def was_sub(): return 3\n", b"def was_sub(): return 3"),
            row("folder.py", "n", second, b"def n(): return 4"),
        ],
        [("files", "symlink", f"@{first}:file.py")],
    )


def test_renames_that_change_only_the_case(builder: RepoBuilder) -> None:
    filler = b"".join(b"def f%d(): return %d\n" % (n, n) for n in range(9))
    builder.commit({"Shapes.py": filler, "Pkg/a.py": GOOD}, author_date=OLD)
    builder.commit({"Shapes.py": None, "shapes.py": filler + BETTER, "Pkg/a.py": None, "pkg/a.py": GOOD})
    assert mine(builder) == ([row("shapes.py", "better", filler + BETTER, BETTER.rstrip())], [])


def test_names_that_differ_only_in_case_stand_side_by_side(builder: RepoBuilder) -> None:
    builder.commit({"A.py": GOOD, "a.py": BETTER})
    assert mine(builder) == ([good("A.py"), better("a.py")], [])


def test_a_path_becomes_utf8(builder: RepoBuilder) -> None:
    filler = b"".join(b"def f%d(): return %d\n" % (n, n) for n in range(9))
    builder.commit({b"caf\xe9.py": filler}, author_date=OLD)
    builder.commit({b"caf\xe9.py": None, "café.py": filler + BETTER})
    assert mine(builder) == ([row("café.py", "better", filler + BETTER, BETTER.rstrip())], [])


def test_a_file_of_a_hundred_thousand_lines(builder: RepoBuilder) -> None:
    data = b"TABLE = [\n" + b"    1,\n" * 99_000 + b"]\n"
    source = data + b"".join(b"def f%d(x):\n    return x + %d\n" % (n, n) for n in range(499)) + GOOD
    assert source.count(b"\n") == 100_002
    builder.commit({"a.py": source, "z.py": BETTER})
    rows, start = [], len(data)
    for n in range(499):
        end = start + len(b"def f%d(x):\n    return x + %d" % (n, n))
        rows.append(("a.py", f"f{n}", "added", start, end, 99_003 + 2 * n, 99_004 + 2 * n))
        start = end + 1
    assert mine(builder) == ([*rows, row("a.py", "good", source, GOOD.rstrip()), better("z.py")], [])


def test_files_at_and_above_five_megabytes(builder: RepoBuilder) -> None:
    head = b"# Generated by the table maker. DO NOT EDIT.\n" + GOOD
    line = b"x = '" + b"y" * 200 + b"'\n"
    fits = head + line * ((5_000_000 - len(head)) // len(line))
    fits += b"#" * (5_000_000 - len(fits))
    commit = builder.commit({"fits.py": fits, "larger.py": fits + b"#", "z.py": BETTER})
    assert mine(builder) == (
        [row("fits.py", "good", fits, GOOD.rstrip(), "generated"), better("z.py")],
        [("files", "file_too_large", f"@{commit}:larger.py")],
    )


@pytest.mark.parametrize(("limit", "kept"), [(2_000, True), (1_999, False)])
def test_a_commit_of_two_thousand_files(builder: RepoBuilder, limit: int, kept: bool) -> None:
    builder.commit({"before.py": GOOD})
    texts = {f"d{n % 7}/m{n:04}.py": b"def f%d(x):\n    return x - %d" % (n, n) for n in range(2_000)}
    many = builder.commit({**texts, **{f"d0/{n}.pyi": STUB for n in range(3)}})
    builder.commit({"z.py": BETTER, "moved.py": b"# from d3\n" + texts["d3/m0003.py"]})
    mined = mine(builder, MiningConfig(max_files_per_commit=limit))
    rows = [row(name, f"f{int(name[-7:-3])}", text, text) for name, text in sorted(texts.items())]
    moved = row("moved.py", "f3", b"# from d3\n" + texts["d3/m0003.py"], texts["d3/m0003.py"], "moved")
    stubs = [("files", "type_stub", f"@{many}:d0/{n}.pyi") for n in range(3)]
    too_many = [("commits", "too_many_files", f"@{many}")]
    assert mined == ([good("before.py"), *(rows if kept else []), moved, better("z.py")], stubs if kept else too_many)
