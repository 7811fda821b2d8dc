"""Code that the history brought before is not new: reverts, cherry-picks, back-ports, squash merges."""

from pathlib import Path

import pytest

from miners.commits import CommitHeader
from miners.mine import MinedRepository
from miners.origins import Lineage
from schemas.config import MiningConfig
from tests.builders import RepoBuilder
from tests.miners.mining import OLD, mine_at

AREA = b"def area(width, height):\n    return width * height\n"
ROUND = b"def round_up(value):\n    return -(-value // 1)\n"
ASYNC = b"async def area(\n    width):\n    'a'\n    return 1\n"
Row = tuple[str, str, str, str, str | None]


@pytest.fixture
def builder(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def rows(mined: MinedRepository) -> list[Row]:
    """Return (commit, path, name, class, earlier commit and path and name) in short form."""
    return [
        (row.commit_id, row.path, row.fun_name, row.novelty.value, earlier)
        for row in mined.methods
        for earlier in [
            None if row.earlier_path is None else f"{row.earlier_commit_id}:{row.earlier_path}:{row.earlier_fun_name}"
        ]
    ]


def header(commit_id: str, *parent_ids: str) -> CommitHeader:
    return CommitHeader(commit_id, parent_ids, 0, "+0000", 0, "+0000")


def test_which_commits_descend_from_which() -> None:
    headers = [header("a"), header("b", "a"), header("c", "a"), header("d", "b", "c", "b"), header("e", "c", "gone")]
    ids = {item.commit_id for item in headers}
    every = Lineage(headers, ids)
    pairs = {(one, other) for one in ids for other in ids if every.descends(one, other)}
    assert pairs == {
        ("b", "a"), ("c", "a"), ("d", "a"), ("e", "a"), ("d", "b"), ("d", "c"), ("e", "c"),
    }  # fmt: skip
    some = Lineage(headers, {"d", "e"}, {"a", "b", "e"})
    assert {(one, other) for one in "de" for other in "abe" if some.descends(one, other)} == {
        pair for pair in pairs if pair[0] in "de" and pair[1] in "abe"
    }


class TestRestored:
    def test_a_reverted_deletion(self, builder: RepoBuilder) -> None:
        first = builder.commit({"a.py": AREA + ROUND})
        builder.commit({"a.py": ROUND}, "Remove area")
        back = builder.commit({"a.py": AREA + ROUND}, 'Revert "Remove area"')
        assert rows(mine_at(builder)) == [
            (first, "a.py", "area", "added", None),
            (first, "a.py", "round_up", "added", None),
            (back, "a.py", "area", "restored", f"{first}:a.py:area"),
        ]

    def test_the_version_that_comes_back_decides_and_not_the_first_one(self, builder: RepoBuilder) -> None:
        first = builder.commit({"a.py": AREA})
        second = builder.commit({"a.py": AREA.replace(b"*", b"+")})
        builder.commit({"a.py": b""})
        third = builder.commit({"a.py": AREA.replace(b"*", b"+")})
        fourth = builder.commit({"a.py": b"x = 1\n"})
        builder.commit({"a.py": b""})
        fifth = builder.commit({"a.py": AREA.replace(b"*", b"-")})
        assert fourth != fifth
        assert [row[1:] for row in rows(mine_at(builder))] == [
            ("a.py", "area", "added", None),
            ("a.py", "area", "modified", f"{first}:a.py:area"),
            ("a.py", "area", "restored", f"{second}:a.py:area"),
            ("a.py", "area", "added", None),
        ]
        assert third != second

    def test_under_another_path_and_in_other_clothes(self, builder: RepoBuilder) -> None:
        first = builder.commit({"a.py": AREA})
        builder.commit({"a.py": None})
        text = (
            b'class Shape:\n    def area(width,height):\n        """Return it."""\n        return width*height  # it\n'
        )
        back = builder.commit({"pkg/b.py": text})
        assert rows(mine_at(builder))[1:] == [(back, "pkg/b.py", "Shape.area", "restored", f"{first}:a.py:area")]

    def test_another_name_is_new_code(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA})
        builder.commit({"a.py": None})
        back = builder.commit({"a.py": AREA.replace(b"area", b"size")})
        assert rows(mine_at(builder))[1:] == [(back, "a.py", "size", "added", None)]

    def test_from_before_the_window_and_deleted_there(self, builder: RepoBuilder) -> None:
        old = builder.commit({"lib/old.py": ROUND + AREA}, author_date=OLD)
        builder.commit({"lib/old.py": ROUND}, author_date=OLD)
        builder.commit({"c.py": b"x = 1\n"})
        back = builder.commit({"new.py": b"import os\n" + AREA})
        mined = mine_at(builder)
        assert rows(mined) == [(back, "new.py", "area", "restored", f"{old}:lib/old.py:area")]
        assert {report.stage: (report.rows_in, report.rows_out) for report in mined.reports}["history"] == (2, 2)

    def test_the_oldest_of_several_old_commits_is_named(self, builder: RepoBuilder) -> None:
        old = builder.commit({"z.py": AREA}, author_date="1650000000 +0000")
        builder.commit({"z.py": None, "b.py": AREA + b"\n\n"}, author_date="1655000000 +0000")
        builder.commit({"b.py": b"x = 1\n"}, author_date="1656000000 +0000")
        back = builder.commit({"new.py": AREA})
        assert rows(mine_at(builder)) == [(back, "new.py", "area", "restored", f"{old}:z.py:area")]

    def test_the_last_version_from_before_the_window_which_a_commit_of_the_window_removed(
        self, builder: RepoBuilder
    ) -> None:
        builder.commit({"a.py": AREA}, author_date=OLD)
        last = builder.commit({"a.py": AREA.replace(b"*", b"+") + ROUND}, author_date=OLD)
        gone = builder.commit({"a.py": ROUND})
        back = builder.commit({"b.py": AREA.replace(b"*", b"+")})
        mined = mine_at(builder)
        assert rows(mined) == [(back, "b.py", "area", "restored", f"{last}:a.py:area")]
        assert gone not in {row.commit_id for row in mined.history}
        assert {report.stage: (report.rows_in, report.rows_out) for report in mined.reports}["history"] == (2, 2)

    def test_the_last_version_removed_before_the_window(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA}, author_date=OLD)
        last = builder.commit({"a.py": AREA.replace(b"*", b"+")}, author_date=OLD)
        builder.commit({"a.py": None}, author_date=OLD)
        back = builder.commit({"b.py": AREA.replace(b"*", b"+")})
        assert rows(mine_at(builder)) == [(back, "b.py", "area", "restored", f"{last}:a.py:area")]

    def test_a_version_between_the_first_and_the_last_from_before_the_window(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": ROUND + AREA}, author_date=OLD)
        between = builder.commit({"a.py": ROUND + AREA.replace(b"*", b"+")}, author_date=OLD)
        builder.commit({"a.py": ROUND + AREA.replace(b"*", b"-")}, author_date=OLD)
        builder.commit({"a.py": ROUND}, author_date=OLD)
        back = builder.commit({"b.py": AREA.replace(b"*", b"+")})
        assert rows(mine_at(builder)) == [(back, "b.py", "area", "restored", f"{between}:a.py:area")]

    def test_another_decorator_or_docstring_before_the_window(self, builder: RepoBuilder) -> None:
        documented = b'def area(width, height):\n    """Return what it covers."""\n    return width * height\n'
        builder.commit({"a.py": b"@one\n" + documented}, author_date=OLD)
        two = builder.commit({"a.py": b"@two\n" + documented}, author_date=OLD)
        builder.commit({"a.py": b"x = 1\n"}, author_date=OLD)
        back = builder.commit({"b.py": b"@two\n" + AREA})
        assert rows(mine_at(builder)) == [(back, "b.py", "area", "restored", f"{two}:a.py:area")]

    def test_what_an_old_merge_alone_brought(self, builder: RepoBuilder) -> None:
        root = builder.commit({"a.py": b"x = 1\n"}, author_date=OLD)
        side = builder.commit({"a.py": b"x = 2\n"}, author_date=OLD, parents=[root], branch="side")
        main = builder.commit({"a.py": b"x = 3\n"}, author_date=OLD, parents=[root])
        merge = builder.commit({"a.py": AREA}, "Merge", author_date=OLD, parents=[main, side])
        builder.commit({"a.py": b"x = 4\n"}, author_date=OLD)
        back = builder.commit({"b.py": AREA})
        assert rows(mine_at(builder)) == [(back, "b.py", "area", "restored", f"{merge}:a.py:area")]

    def test_what_a_commit_of_the_window_with_too_many_files_brought(self, builder: RepoBuilder) -> None:
        builder.commit({"z.py": b"x = 1\n"})
        large = builder.commit({"a.py": AREA, "b.py": ROUND, "c.py": b"x = 1\n"})
        builder.commit({"a.py": None})
        back = builder.commit({"d.py": AREA})
        mined = mine_at(builder, config=MiningConfig(max_files_per_commit=2))
        assert rows(mined) == [(back, "d.py", "area", "restored", f"{large}:a.py:area")]

    def test_what_another_branch_removed_is_an_origin_when_an_ancestor_had_it(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA}, author_date=OLD)
        last = builder.commit({"a.py": AREA.replace(b"*", b"+")}, author_date=OLD)
        side = builder.commit({"a.py": b"x = 1\n"}, parents=[last], branch="side")
        other = builder.commit({"a.py": b"y = 1\n"}, parents=[last])
        back = builder.commit({"b.py": AREA.replace(b"*", b"+")})
        builder.commit({"a.py": b"z = 1\n"}, "Merge", parents=[back, side])
        assert rows(mine_at(builder)) == [(back, "b.py", "area", "restored", f"{last}:a.py:area")]
        assert other != side

    def test_the_history_is_not_searched_when_the_configuration_says_so(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA}, author_date=OLD)
        builder.commit({"a.py": b"x = 1\n"}, author_date=OLD)
        back = builder.commit({"a.py": AREA})
        mined = mine_at(builder, config=MiningConfig(search_history="none"))
        assert rows(mined) == [(back, "a.py", "area", "added", None)]
        assert mined.history == []

    def test_a_decorated_method_in_a_class_of_an_old_commit(self, builder: RepoBuilder) -> None:
        text = b"class A:\n    @property\n    def size(self):\n        return self.width * self.height\n"
        old = builder.commit({"a.py": text}, author_date=OLD)
        builder.commit({"a.py": b"x = 1\n"}, author_date=OLD)
        back = builder.commit({"a.py": text})
        assert rows(mine_at(builder)) == [(back, "a.py", "A.size", "restored", f"{old}:a.py:A.size")]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (AREA, AREA.replace(b":\n", b":\n    # a comment\n    '''doc'''\n")),
            (AREA.replace(b":\n", b':\n    ("one"\n     r"two")  # both\n\n'), AREA),
            (AREA.replace(b"\n", b"\r\n").replace(b":", b":\r\n    'doc'", 1), AREA),
            (AREA.replace(b"* ", b"*\\\n        "), AREA),
            (b"# coding: latin-1\n'\xe9'\n" + AREA + b"'\xe9'\n", AREA),
            (ASYNC, b"async  def area(\n  width  # it\n):\n    return 1\n"),
            (b"def area(): pass; 'x'\n", b"def area(): pass ; 'x'\n"),
            (b"\xef\xbb\xbf" + AREA, AREA),
            (AREA + AREA.replace(b"*", b"+"), AREA.replace(b"*", b"+")),
            (b"def area():\n    'a'\n    'b'\n", b"def area():\n    'c'\n    'b'\n"),
        ],
    )
    def test_equal_tokens_before_the_window_however_they_are_written(
        self, builder: RepoBuilder, old: bytes, new: bytes
    ) -> None:
        first = builder.commit({"a.py": old}, author_date=OLD)
        builder.commit({"a.py": b"x = 1\n"}, author_date=OLD)
        back = builder.commit({"b.py": new})
        assert rows(mine_at(builder)) == [(back, "b.py", "area", "restored", f"{first}:a.py:area")]

    @pytest.mark.parametrize(
        "old",
        [
            AREA.replace(b"* height", b"* height * 2"),
            AREA.replace(b"return ", b"return -"),
            b"if x:\n  def area(width, height):\n    if 1:\n     return width * height\n",
            b"'''\n" + AREA + b"'''\n",
        ],
    )
    def test_other_tokens_under_the_same_line_before_the_window(self, builder: RepoBuilder, old: bytes) -> None:
        builder.commit({"a.py": old}, author_date=OLD)
        builder.commit({"a.py": b"x = 1\n"}, author_date=OLD)
        back = builder.commit({"b.py": AREA})
        assert rows(mine_at(builder)) == [(back, "b.py", "area", "added", None)]

    def test_what_stood_on_a_branch_that_the_commit_does_not_descend_from_is_no_origin(
        self, builder: RepoBuilder
    ) -> None:
        base = builder.commit({"x.py": b"x = 1\n"}, author_date=OLD)
        side = builder.commit({"a.py": AREA}, author_date=OLD, parents=[base], branch="side")
        gone = builder.commit({"a.py": b"y = 1\n"}, author_date=OLD, parents=[side], branch="side")
        main = builder.commit({"b.py": AREA}, parents=[base])
        builder.commit({"a.py": b"y = 1\n"}, "Merge", parents=[main, gone])
        assert rows(mine_at(builder)) == [(main, "b.py", "area", "added", None)]


class TestRepeated:
    def test_a_cherry_pick_counts_once(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": b"x = 1\n"})
        fix = builder.commit({"a.py": b"x = 1\n" + AREA}, "Fix", parents=[base], branch="stable")
        other = builder.commit({"b.py": b"y = 1\n"}, parents=[base])
        pick = builder.commit({"a.py": b"x = 1\n" + AREA}, "Fix\n\n(cherry picked from commit)", parents=[other])
        builder.commit({}, "Merge stable", parents=[pick, fix])
        assert rows(mine_at(builder)) == [
            (fix, "a.py", "area", "added", None),
            (pick, "a.py", "area", "repeated", f"{fix}:a.py:area"),
        ]

    def test_the_earlier_committer_date_counts_whatever_branch_it_is_on(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": b"x = 1\n"}, author_date="1710000000 +0000")
        late = builder.commit({"a.py": AREA}, author_date="1720000000 +0000", parents=[base])
        early = builder.commit({"b.py": AREA}, author_date="1715000000 +0000", parents=[base], branch="side")
        builder.commit({"b.py": AREA}, "Merge", author_date="1730000000 +0000", parents=[late, early])
        assert rows(mine_at(builder)) == [
            (early, "b.py", "area", "added", None),
            (late, "a.py", "area", "repeated", f"{early}:b.py:area"),
        ]

    def test_a_squash_merge_repeats_its_branch(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": b"x = 1\n"})
        one = builder.commit({"a.py": b"x = 1\n" + AREA}, parents=[base], branch="topic")
        two = builder.commit({"a.py": b"x = 1\n" + AREA.replace(b"*", b"+") + ROUND}, parents=[one], branch="topic")
        squash = builder.commit({"a.py": b"x = 1\n" + AREA.replace(b"*", b"+") + ROUND}, "Squash", parents=[base])
        builder.commit({}, "Merge topic", parents=[squash, two])
        assert rows(mine_at(builder)) == [
            (one, "a.py", "area", "added", None),
            (two, "a.py", "area", "modified", f"{one}:a.py:area"),
            (two, "a.py", "round_up", "added", None),
            (squash, "a.py", "area", "repeated", f"{two}:a.py:area"),
            (squash, "a.py", "round_up", "repeated", f"{two}:a.py:round_up"),
        ]

    def test_equal_code_of_another_class_is_no_repetition(self, builder: RepoBuilder) -> None:
        base = builder.commit({"a.py": b"x = 1\n"})
        text = b"class A:\n    def __len__(self):\n        return len(self.items)\n"
        side = builder.commit({"b.py": text}, parents=[base], branch="side")
        main = builder.commit({"c.py": text.replace(b"A", b"B")}, parents=[base])
        builder.commit({"b.py": text}, "Merge", parents=[main, side])
        assert rows(mine_at(builder)) == [
            (side, "b.py", "A.__len__", "added", None),
            (main, "c.py", "B.__len__", "added", None),
        ]

    def test_two_files_of_one_commit_both_count(self, builder: RepoBuilder) -> None:
        commit = builder.commit({"a.py": AREA, "b.py": AREA + b"\n"})
        assert rows(mine_at(builder)) == [
            (commit, "a.py", "area", "added", None),
            (commit, "b.py", "area", "added", None),
        ]


def test_an_octopus_merge_brings_what_none_of_its_parents_has(builder: RepoBuilder) -> None:
    base = builder.commit({"a.py": b"x = 1\n"}, author_date=OLD)
    tips = [
        builder.commit({f"{name}.py": AREA.replace(b"area", name.encode())}, parents=[base], branch=name)
        for name in ("b", "c", "d")
    ]
    files = {f"{name}.py": AREA.replace(b"area", name.encode()) for name in ("c", "d")}
    merge = builder.commit({**files, "e.py": ROUND}, "Octopus", parents=tips)
    assert rows(mine_at(builder)) == [
        (tips[0], "b.py", "b", "added", None),
        (tips[1], "c.py", "c", "added", None),
        (tips[2], "d.py", "d", "added", None),
        (merge, "e.py", "round_up", "added", None),
    ]


LONG_AGO, LATELY = "1500000000 +0000", "1690000000 +0000"  # 2017 and July 2023


class TestPartOfTheHistory:
    """`search_history = "2y"`: commits from 2022 on, and what stood before them."""

    def test_code_that_was_taken_away_lately_is_found_however_old_it_is(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA}, author_date=LONG_AGO, committer_date=LONG_AGO)
        last = builder.commit({"b.py": b"x = 1\n"}, author_date=LONG_AGO, committer_date=LONG_AGO)
        builder.commit({"a.py": b"x = 1\n"}, author_date=LATELY, committer_date=LATELY)
        back = builder.commit({"a.py": AREA})
        assert rows(mine_at(builder)) == [(back, "a.py", "area", "restored", f"{last}:a.py:area")]

    def test_code_that_the_window_takes_away_is_found_with_its_file(self, builder: RepoBuilder) -> None:
        last = builder.commit({"a.py": AREA, "b.py": ROUND}, author_date=LONG_AGO, committer_date=LONG_AGO)
        gone = builder.commit({"a.py": None, "b.py": ROUND + AREA.replace(b"*", b"+")})
        back = builder.commit({"c.py": AREA})
        assert rows(mine_at(builder)) == [
            (gone, "b.py", "area", "added", None),
            (back, "c.py", "area", "restored", f"{last}:a.py:area"),
        ]

    def test_code_that_was_taken_away_long_ago_is_not(self, builder: RepoBuilder) -> None:
        first = builder.commit({"a.py": AREA}, author_date=LONG_AGO, committer_date=LONG_AGO)
        builder.commit({"a.py": b"x = 1\n"}, author_date=LONG_AGO, committer_date=LONG_AGO)
        back = builder.commit({"a.py": AREA})
        assert rows(mine_at(builder)) == [(back, "a.py", "area", "added", None)]
        mined = mine_at(builder, config=MiningConfig(search_history="all"))
        assert rows(mined) == [(back, "a.py", "area", "restored", f"{first}:a.py:area")]

    def test_what_a_merge_takes_away_counts_for_each_parent(self, builder: RepoBuilder) -> None:
        base = builder.commit({"x.py": b"x = 1\n"}, author_date=LONG_AGO, committer_date=LONG_AGO)
        side = builder.commit(
            {"a.py": AREA}, parents=[base], branch="side", author_date=LONG_AGO, committer_date=LONG_AGO
        )
        main = builder.commit({"a.py": ROUND}, parents=[base], author_date=LONG_AGO, committer_date=LONG_AGO)
        builder.commit({"a.py": b"y = 1\n"}, "Merge", parents=[main, side])
        back = builder.commit({"b.py": AREA, "c.py": ROUND})
        assert rows(mine_at(builder)) == [
            (back, "b.py", "area", "restored", f"{side}:a.py:area"),
            (back, "c.py", "round_up", "restored", f"{main}:a.py:round_up"),
        ]

    def test_a_grown_history_gives_what_a_whole_one_gives(self, builder: RepoBuilder) -> None:
        builder.commit({"a.py": AREA, "b.py": ROUND}, author_date=LONG_AGO, committer_date=LONG_AGO)
        builder.commit({"a.py": b"x = 1\n"}, author_date=LATELY, committer_date=LATELY)
        month = builder.commit({"b.py": b"x = 2\n"})
        former = mine_at(builder)
        builder.commit({"b.py": ROUND})
        builder.commit({"c.py": AREA})
        assert mine_at(builder, former=former) == mine_at(builder)
        assert former.record.head == month
        assert [row.novelty.value for row in mine_at(builder).methods] == ["restored", "restored"]
