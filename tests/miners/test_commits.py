import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miners.commits import (
    CommitHeader,
    count_commits,
    decode_text,
    is_bot,
    parse_header,
    read_commit,
    select,
    walk,
    well_formed,
)
from miners.git_process import ObjectReader
from schemas.config import WindowConfig
from schemas.errors import DataError
from schemas.records import CommitRecord, Exclusion, Kept
from tests.builders import RepoBuilder, git

SINCE = datetime(2024, 1, 1, tzinfo=UTC)
UNTIL = datetime(2024, 7, 1, tzinfo=UTC)
NOW = datetime(2025, 1, 1, tzinfo=UTC)
WINDOW = WindowConfig(SINCE, UNTIL)
OLD = datetime(2023, 3, 1, tzinfo=UTC)
INSIDE = datetime(2024, 3, 1, tzinfo=UTC)
LATE = datetime(2024, 8, 1, tzinfo=UTC)


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def header(author: datetime | int | None, committer: datetime | int | None, commit_id: str = "c" * 40) -> CommitHeader:
    def epoch(when: datetime | int | None) -> int | None:
        return int(when.timestamp()) if isinstance(when, datetime) else when

    return CommitHeader(commit_id, (), epoch(author), "+0000", epoch(committer), "+0000")


def ids(headers: Sequence[CommitHeader]) -> list[str]:
    return [item.commit_id for item in headers]


class TestWalk:
    def test_lists_parents_before_children(self, repo: RepoBuilder) -> None:
        root = repo.commit({"a.py": b"1"})
        left = repo.commit({"a.py": b"2"})
        right = repo.commit({"b.py": b"1"}, parents=[root], branch="side")
        merge = repo.commit(parents=[left, right])
        headers = walk(repo.git_dir, merge)
        assert sorted(ids(headers)) == sorted([root, left, right, merge])
        assert (headers[0].commit_id, headers[-1].commit_id) == (root, merge)
        assert {item.commit_id: item.parent_ids for item in headers} == {
            root: (),
            left: (root,),
            right: (root,),
            merge: (left, right),
        }

    def test_skewed_clocks_hide_no_commit(self, repo: RepoBuilder) -> None:
        dates = [INSIDE, OLD, INSIDE, OLD - timedelta(days=900), INSIDE]
        commits = [repo.commit({"a.py": str(n).encode()}, author_date=when) for n, when in enumerate(dates)]
        assert ids(walk(repo.git_dir, commits[-1])) == commits

    def test_several_roots_are_all_walked(self, repo: RepoBuilder) -> None:
        first = repo.commit({"a.py": b""})
        second = repo.commit({"b.py": b""}, parents=[], branch="other")
        merge = repo.commit(parents=[first, second])
        assert sorted(ids(walk(repo.git_dir, merge))) == sorted([first, second, merge])

    def test_only_what_the_head_reaches(self, repo: RepoBuilder) -> None:
        first = repo.commit({"a.py": b""})
        repo.commit({"b.py": b""}, branch="other")
        assert ids(walk(repo.git_dir, first)) == [first]

    @pytest.mark.parametrize(
        ("stamp", "epoch", "zone"),
        [
            ("0 +0000", 0, "+0000"),
            ("1700000000 -0830", 1_700_000_000, "-0830"),
            ("1700000000 +51800", 1_700_000_000, "+51800"),
            ("1700000000 --700", None, ""),
            ("-86400 +0000", None, ""),
            ("253402300800 +0000", 253_402_300_800, "+0000"),
            ("9" * 30 + " +0000", int("9" * 30), "+0000"),
            ("Thu Jan 1 1970", None, ""),
            ("1700000000", None, ""),
            ("", None, ""),
        ],
    )
    def test_odd_dates_are_survived(self, repo: RepoBuilder, stamp: str, epoch: int | None, zone: str) -> None:
        commit = repo.commit({"a.py": b""}, author_date=stamp, committer_date="1700000000 +0100")
        child = repo.commit({"b.py": b""})
        headers = walk(repo.git_dir, child)
        assert ids(headers) == [commit, child]
        assert (headers[0].author_epoch, headers[0].author_zone) == (epoch, zone)
        assert (headers[0].committer_epoch, headers[0].committer_zone) == (1_700_000_000, "+0100")

    def test_dates_are_in_utc(self, repo: RepoBuilder) -> None:
        summer = timezone(timedelta(hours=2))
        commit = repo.commit({}, author_date=datetime(2024, 6, 1, 1, 30, tzinfo=summer))
        (only,) = walk(repo.git_dir, commit)
        assert only.author_date == datetime(2024, 5, 31, 23, 30, tzinfo=UTC)
        assert only.author_zone == "+0200"

    def test_a_date_beyond_the_year_9999_has_no_datetime(self) -> None:
        assert header(253_402_300_800, 10**30).author_date is None
        assert header(253_402_300_800, 10**30).committer_date is None

    @pytest.mark.parametrize("damage", ["remove", "corrupt"])
    def test_an_unreadable_commit_costs_only_what_lies_behind_it(self, repo: RepoBuilder, damage: str) -> None:
        root = repo.commit({"a.py": b""})
        bad = repo.commit({"a.py": b"1"})
        side = repo.commit({"b.py": b""}, parents=[root], branch="side")
        child = repo.commit({"a.py": b"2"})
        merge = repo.commit(parents=[child, side])
        getattr(repo, damage)(bad)
        headers = walk(repo.git_dir, merge)
        assert {item.commit_id: item.readable for item in headers} == {
            root: True,
            bad: False,
            side: True,
            child: True,
            merge: True,
        }
        position = {commit_id: index for index, commit_id in enumerate(ids(headers))}
        assert position[bad] < position[child] < position[merge]
        assert position[root] < position[side] < position[merge]

    def test_an_unreadable_head_is_an_error(self, repo: RepoBuilder) -> None:
        head = repo.commit({"a.py": b""})
        repo.remove(head)
        with pytest.raises(DataError, match="history_broken"):
            walk(repo.git_dir, head)

    def test_a_head_that_is_no_id_is_refused(self, repo: RepoBuilder) -> None:
        with pytest.raises(DataError, match="object_id_invalid"):
            walk(repo.git_dir, "--output=/tmp/x")

    def test_packed_history_is_the_same(self, repo: RepoBuilder) -> None:
        commits = [repo.commit({"a.py": str(n).encode()}) for n in range(30)]
        before = walk(repo.git_dir, commits[-1])
        git(repo.git_dir, "repack", "-adq")
        git(repo.git_dir, "commit-graph", "write", "--reachable")
        assert walk(repo.git_dir, commits[-1]) == before
        assert count_commits(repo.git_dir, commits[-1]) == 30

    def test_sha256_repositories(self, tmp_path: Path) -> None:
        repo = RepoBuilder(tmp_path / "sha256.git", object_format="sha256")
        first = repo.commit({"a.py": b"1"})
        second = repo.commit({"a.py": b"2"})
        assert [(item.commit_id, item.parent_ids) for item in walk(repo.git_dir, second)] == [
            (first, ()),
            (second, (first,)),
        ]


class TestParseHeader:
    def test_signatures_and_their_continuation_lines_are_no_fields(self) -> None:
        data = (
            b"tree " + b"1" * 40 + b"\nparent " + b"2" * 40 + b"\nauthor A <a@x> 5 +0000\ncommitter C <c@x> 6 +0100\n"
            b"gpgsig -----BEGIN\n author Evil <e@x> 7 +0000\n parent " + b"3" * 40 + b"\n\nparent " + b"4" * 40
        )
        assert parse_header("f" * 40, data) == CommitHeader("f" * 40, ("2" * 40,), 5, "+0000", 6, "+0100")

    @given(st.binary(max_size=200))
    def test_no_bytes_make_it_fail(self, data: bytes) -> None:
        assert parse_header("f" * 40, data).commit_id == "f" * 40

    @pytest.mark.parametrize("tree", [b"", b"tree " + b"1" * 40 + b"\n"])
    def test_a_name_with_brackets_keeps_its_date(self, tree: bytes) -> None:
        data = tree + b"author A > B <a@x> 5 +0000\ncommitter <> 6 -0000\n\n"
        assert parse_header("f" * 40, data) == CommitHeader("f" * 40, (), 5, "+0000", 6, "-0000")

    @given(
        st.lists(
            st.sampled_from(["parent 22", "parent 33", "parent x", "tree 11", " parent 44", "gpgsig x"]), max_size=3
        ),
        st.sampled_from(["author A <a@x> 5 +0000", "author A <a@x>  5 +0000 ", "author A", "author a> b <> 5 +1 >"]),
        st.sampled_from(["committer <> 6 -0000", "committer <> 6", "author X <> 9 +0000", "committer a <b> 7 -1"]),
        st.lists(
            st.sampled_from(["parent 55", "committer <> 8 +0000", "gpgsig", " parent 66", "", "parent"]), max_size=4
        ),
    )
    def test_the_usual_form_is_read_like_any_other(
        self, head: list[str], author: str, committer: str, tail: list[str]
    ) -> None:
        data = "\n".join(["tree 11", *head, author, committer, *tail, "", "text"]).encode()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("miners.commits._USUAL_HEADER", re.compile(b"(?!)"))
            slow = parse_header("f" * 40, data)
        assert parse_header("f" * 40, data) == slow


class TestSelect:
    @pytest.mark.parametrize(
        ("author", "committer", "reason"),
        [
            (INSIDE, INSIDE, "kept"),
            (SINCE, SINCE, "kept"),
            (SINCE - timedelta(seconds=1), SINCE, "author_date_outside"),
            (SINCE, SINCE - timedelta(seconds=1), "committer_date_outside"),
            (UNTIL - timedelta(seconds=1), UNTIL - timedelta(seconds=1), "kept"),
            (INSIDE, UNTIL, "committer_date_outside"),
            (UNTIL, INSIDE, "author_date_outside"),
            (OLD, OLD, None),
            (LATE, LATE, None),
            (OLD, LATE, None),
            (INSIDE, NOW + timedelta(seconds=1), "date_in_future"),
            (NOW + timedelta(days=900), INSIDE, "date_in_future"),
            (NOW + timedelta(days=900), OLD, "date_in_future"),
            (INSIDE, 253_402_300_800, "date_in_future"),
            (None, INSIDE, "date_invalid"),
            (INSIDE, None, "date_invalid"),
            (None, OLD, "date_invalid"),
            (None, NOW + timedelta(days=900), "date_invalid"),
            (None, None, "date_invalid"),
        ],
    )
    def test_every_commit_has_its_fate(
        self, author: datetime | int | None, committer: datetime | int | None, reason: str | None
    ) -> None:
        kept = select([header(author, committer)], WINDOW, NOW, "o/r")
        fates = ["kept"] * len(kept.rows) + [item.reason for item in kept.excluded]
        assert fates == ([] if reason is None else [reason])

    def test_the_moment_of_mining_itself_is_no_future(self) -> None:
        window = WindowConfig(SINCE)
        assert select([header(NOW, NOW)], window, NOW, "o/r").excluded == []

    def test_an_exclusion_names_commit_stage_and_dates(self) -> None:
        kept = select([header(OLD, INSIDE, "d" * 40)], WINDOW, NOW, "o/r")
        detail = "author 2023-03-01T00:00:00+00:00, committer 2024-03-01T00:00:00+00:00"
        assert kept == Kept([], [Exclusion(f"o/r@{'d' * 40}", "commits", "author_date_outside", detail)])

    def test_a_strange_date_is_shown_as_what_it_is(self) -> None:
        kept = select([header(None, INSIDE), header(10**12, INSIDE)], WINDOW, NOW, "o/r")
        assert [item.detail for item in kept.excluded] == [
            "author unreadable, committer 2024-03-01T00:00:00+00:00",
            "author 1000000000000 s after 1970, committer 2024-03-01T00:00:00+00:00",
        ]

    def test_an_unreadable_commit_is_excluded(self) -> None:
        bad = CommitHeader("e" * 40, (), None, "", None, "", readable=False)
        assert [item.reason for item in select([bad], WINDOW, NOW, "o/r").excluded] == ["commit_unreadable"]

    def test_order_and_identity_are_kept(self) -> None:
        headers = [header(INSIDE + timedelta(days=n), INSIDE, str(n) * 40) for n in (3, 1, 2)]
        assert select(headers, WINDOW, NOW, "o/r") == Kept(headers, [])

    @given(st.lists(st.tuples(*[st.one_of(st.none(), st.integers(1_690_000_000, 1_760_000_000))] * 2), max_size=20))
    def test_both_dates_of_every_row_lie_in_the_window(self, dates: list[tuple[int | None, int | None]]) -> None:
        headers = [header(author, committer, f"{n:040x}") for n, (author, committer) in enumerate(dates)]
        kept = select(headers, WINDOW, NOW, "o/r")
        for row in kept.rows:
            assert row.author_date is not None
            assert row.committer_date is not None
            assert SINCE <= row.author_date < UNTIL
            assert SINCE <= row.committer_date < UNTIL
        seen = [item.row_id for item in kept.excluded] + [f"o/r@{row.commit_id}" for row in kept.rows]
        assert len(seen) == len(set(seen)) <= len(headers)


class TestReadCommit:
    def read(self, repo: RepoBuilder, commit_id: str) -> CommitRecord:
        with ObjectReader(repo.git_dir) as reader:
            return read_commit(reader, commit_id, "o/r")

    def test_whole_record(self, repo: RepoBuilder) -> None:
        first = repo.commit({"a.py": b""})
        commit = repo.commit(
            {"a.py": b"1"},
            "Add ein Maß\n\nWith a body.\n",
            author_date=datetime(2024, 3, 1, 12, tzinfo=timezone(timedelta(hours=-5))),
            committer_date=datetime(2024, 3, 2, tzinfo=UTC),
        )
        assert self.read(repo, commit) == CommitRecord(
            repo="o/r",
            commit_id=commit,
            parent_ids=(first,),
            author_date=datetime(2024, 3, 1, 17, tzinfo=UTC),
            committer_date=datetime(2024, 3, 2, tzinfo=UTC),
            commit_message="Add ein Maß\n\nWith a body.\n",
            author_is_bot=False,
        )

    @pytest.mark.parametrize(
        ("message", "encoding", "text"),
        [
            ("Maß".encode("latin-1"), "ISO-8859-1", "Maß"),
            ("日本".encode("shift_jis"), "SHIFT_JIS", "日本"),
            ("Maß".encode("latin-1"), None, "Ma\ufffd"),
            ("Maß".encode(), "no-such-encoding", "Maß"),
            ("Maß".encode("latin-1"), "utf-8", "Ma\ufffd"),
            (b"rot", "rot13", "rot"),
            (b"a \\ud800", "unicode_escape", "a \\ud800"),
            (b"a \\ud800", "Raw-Unicode-Escape", "a \\ud800"),
            (b"xn--ma-hia", "idna", "xn--ma-hia"),
            (b"ma-hia", "punycode", "ma-hia"),
            (b"a", "undefined", "a"),
            (b"+2AA- b", "utf-7", "\ufffd b"),
            (b"b +3AA-", "utf-7", "b \ufffd"),
            (b"+2D3eAA-", "utf-7", "\U0001f600"),
            (b"+AOk-", "utf-7", "é"),
            (b"a", "x" * 5000, "a"),
            (b"", None, ""),
            (b"a\r\nb\n\n\nc", None, "a\r\nb\n\n\nc"),
        ],
    )
    def test_message_encodings(self, repo: RepoBuilder, message: bytes, encoding: str | None, text: str) -> None:
        commit = repo.commit({}, message, encoding=encoding)
        assert self.read(repo, commit).commit_message == text

    @given(st.binary(max_size=40), st.sampled_from(["utf-7", "unicode_escape", "utf-16", "utf-32", "hz", "idna", "no"]))
    def test_decoded_text_always_has_a_utf8_form(self, data: bytes, encoding: str) -> None:
        for errors in ("strict", "replace"):
            assert decode_text(data, encoding, errors).encode() is not None

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_text_of_characters_alone_stays(self, text: str) -> None:
        assert well_formed(text) == text

    def test_surrogates_are_joined_or_replaced(self) -> None:
        assert [well_formed(text) for text in ("\ud83d\ude00", "a\ud83d", "\ude00b", "\ude00\ud83d", "\ud83dé")] == [
            "\U0001f600",
            "a\ufffd",
            "\ufffdb",
            "\ufffd\ufffd",
            "\ufffdé",
        ]

    def test_a_bot_as_author_or_committer(self, repo: RepoBuilder) -> None:
        bot, github = "renovate[bot] <29139614+renovate[bot]@users.noreply.github.com>", "GitHub <noreply@github.com>"
        by_bot = repo.commit({}, author=bot, committer=github)
        through_bot = repo.commit({}, committer=bot)
        by_hand = repo.commit({}, committer=github)
        assert [self.read(repo, commit).author_is_bot for commit in (by_bot, through_bot, by_hand)] == [
            True,
            True,
            False,
        ]

    def test_unreadable_dates_are_an_error(self, repo: RepoBuilder) -> None:
        commit = repo.commit({}, author_date="1700000000 --700")
        with pytest.raises(DataError, match="date_invalid"):
            self.read(repo, commit)

    def test_another_kind_of_object_is_an_error(self, repo: RepoBuilder) -> None:
        blob = repo.blob(b"x")
        with pytest.raises(DataError, match="commit_unreadable"):
            self.read(repo, blob)


@pytest.mark.parametrize(
    "person",
    [
        "dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>",
        "dependabot-preview[bot] <27856297+dependabot-preview[bot]@users.noreply.github.com>",
        "Renovate Bot <bot@renovateapp.com>",
        "renovate-bot <renovate@whitesourcesoftware.com>",
        "pre-commit-ci[bot] <66853113+pre-commit-ci[bot]@users.noreply.github.com>",
        "GitHub Action <action@github.com>",
        "github-actions <github-actions@github.com>",
        "pyup-bot <github-bot@pyup.io>",
        "Hosted Weblate <hosted@weblate.org>",
        "Copybara-Service <copybara-worker@google.com>",
        "Some Name <release-bot@example.org>",
        "greenkeeper[bot] <greenkeeper[bot]@users.noreply.github.com>",
        "allcontributors[bot] <46447321+allcontributors[bot]@users.noreply.github.com>",
    ],
)
def test_bots(person: str) -> None:
    assert is_bot(person)


@pytest.mark.parametrize(
    "person",
    [
        "GitHub <noreply@github.com>",
        "Ada Lovelace <ada@example.org>",
        "Jane Abbot <jane@abbot.example>",
        "Michal <michal@weblate.org>",
        "Talbot Bottomley <robotics@example.edu>",
        "Weblater <w@example.org>",
        "Botond <botond@example.hu>",
        "",
        "no address",
    ],
)
def test_people(person: str) -> None:
    assert not is_bot(person)
