"""A whole search over HTTP: nothing lost, nothing twice, few requests, whatever goes wrong on the way."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from miners.search import read_repository, reduce_repository
from schemas.errors import PipelineError
from schemas.records import Exclusion
from schemas.search import Discovery, SearchWindow
from tests.github.server import Asked, FakeClock, Hub, Reply, least_calls, serving
from tests.github.support import LATER, STARTED, change, comparable, found_ids, run
from tests.github.universe import TODAY, Repository, equal_universe, ids, large_universe, young_universe

ROOT = Path(__file__).resolve().parents[2]
POPULAR = {"stars": ">1000"}


def questions(hub: Hub) -> list[tuple[str, str]]:
    """Return the searches that were answered: query and page."""
    return [(asked.query["q"], asked.query["page"]) for asked in hub.searches]


class TestTheBars:
    def test_all_is_found_once_with_few_requests(self, tmp_path: Path) -> None:
        hub = Hub(large_universe())
        found = run(hub, tmp_path, **POPULAR)
        assert len(hub.rows) == 4_317
        assert found_ids(found) == ids(hub.rows)
        assert [row for row in found.repositories if row.aliases] == []
        assert found.excluded == []
        assert found.discovery.total == found.discovery.found == sum(row.found for row in found.windows) == 4_317
        assert (found.discovery.uncovered, found.discovery.incomplete) == (0, 0)
        assert found.discovery.calls == len(hub.searches) <= 1.5 * least_calls([4_317])
        assert max(Counter(questions(hub)).values()) == 1

    @pytest.mark.parametrize("seed", [1, 2])
    def test_faults_on_a_fifth_of_the_requests_change_nothing(self, tmp_path: Path, seed: int) -> None:
        rows = large_universe()
        plain = run(Hub(rows), tmp_path / "plain", **POPULAR)
        hub = Hub(rows, fault_rate=0.2, seed=seed)
        assert comparable(run(hub, tmp_path / "faulty", **POPULAR)) == comparable(plain)
        failed = [asked for asked in hub.asked if asked.status != 200]
        assert len(failed) >= 0.1 * len(hub.asked)
        assert Counter(questions(hub)) == Counter(dict.fromkeys(questions(hub), 1))

    def test_kill_minus_nine_loses_no_answer(self, tmp_path: Path) -> None:
        rows = large_universe()
        expected = run(Hub(rows), tmp_path / "whole", **POPULAR)
        hub = Hub(rows, clock=FakeClock())
        unread: list[Asked] = []
        with serving(hub) as api_url:
            for fatal in (2, 30, 0):
                child = subprocess.Popen(
                    [sys.executable, "-m", "tests.github.child", api_url, str(tmp_path / "kept"), ">1000"],
                    cwd=ROOT, stdout=subprocess.PIPE, text=True,
                )  # fmt: skip

                def kill(number: int, fatal: int = fatal, child: subprocess.Popen[str] = child) -> None:
                    if number == fatal:
                        os.kill(child.pid, signal.SIGKILL)
                        child.wait()

                hub.before_search = kill
                output, _ = child.communicate(timeout=120)
                assert child.returncode == (-signal.SIGKILL if fatal else 0)
                with hub.lock:  # the server may still be writing down what it was asked last
                    unread += hub.asked[-1:] if fatal else []
        assert list(map(int, output.split())) == found_ids(expected)
        # A question was asked twice only where the answer came too late.
        asked = Counter(questions(hub))
        asked.subtract((item.query["q"], item.query["page"]) for item in unread)
        assert set(asked.values()) == {1}
        assert len(asked) == expected.discovery.calls


class TestWhatMoves:
    """Rows are never changed in place: each hook replaces the hub's list."""

    def test_a_repository_that_is_found_in_two_windows_counts_once_under_its_newest_name(self, tmp_path: Path) -> None:
        hub = Hub(large_universe())
        first = min(hub.rows, key=lambda row: row.stars)

        def rise(number: int) -> None:
            if number == 5:
                hub.rows = change(hub.rows, {first.repo_id: {"stars": 90_000, "name": "new/name"}})

        hub.before_search = rise
        found = run(hub, tmp_path, **POPULAR)
        assert found_ids(found) == ids(hub.rows)
        [row] = [row for row in found.repositories if row.repo_id == first.repo_id]
        assert (row.repo, row.aliases) == ("new/name", (first.name,))

    def test_what_slides_over_the_edge_of_a_page_is_found_by_reading_again(self, tmp_path: Path) -> None:
        """The first rows of page 1 lose what they were found for: all others move up by one page's edge."""
        hub = Hub([replace(row, stars=number + 5) for number, row in enumerate(equal_universe(450))])
        gone = {row.repo_id: {"stars": 1} for row in sorted(hub.rows, key=lambda row: row.stars)[:3]}

        def fall(number: int) -> None:
            if number == 2:
                hub.rows = change(hub.rows, gone)

        hub.before_search = fall
        found = run(hub, tmp_path, stars=">=5")
        assert set(found_ids(found)) >= {row.repo_id for row in hub.rows if row.stars >= 5}
        assert [(row.total, row.found) for row in found.windows] == [(447, 447)]
        assert [number for _, number in questions(hub)] == ["1", "2", "3", "4", "5"] * 2

    def test_a_window_that_shows_too_little_is_read_again_then_reported(self, tmp_path: Path) -> None:
        hub = Hub(equal_universe(250))
        rows = [row.json("https://hub.example") for row in hub.rows]
        body = {"total_count": 250, "incomplete_results": False, "items": rows[:90]}
        import json

        hub.scripted = [Reply(200, json.dumps(body | {"items": rows[i : i + 90]}).encode()) for i in (0, 0, 0) * 3]
        found = run(hub, tmp_path)
        assert [(row.total, row.found) for row in found.windows] == [(250, 90)]
        assert (found.discovery.total, found.discovery.found, len(hub.asked)) == (250, 90, 9)

    def test_a_window_that_outgrows_the_cap_while_it_is_read_is_split(self, tmp_path: Path) -> None:
        hub = Hub([replace(row, stars=number % 50) for number, row in enumerate(equal_universe(1_000))])
        more = [replace(row, repo_id=row.repo_id + 5_000, name=f"more/{row.repo_id}") for row in equal_universe(60)]

        def grow(number: int) -> None:
            if number == 4:
                hub.rows = hub.rows + more

        hub.before_search = grow
        found = run(hub, tmp_path)
        assert found_ids(found) == ids(hub.rows)
        assert len(hub.rows) == 1_060

    def test_a_sorted_part_is_checked_by_what_is_left(self, tmp_path: Path) -> None:
        """Repositories are made while the lowest part is read: the rest has the same number, the whole has not."""
        hub = Hub([replace(row, stars=number % 400) for number, row in enumerate(equal_universe(2_000))])
        more = [replace(row, repo_id=row.repo_id + 5_000, name=f"more/{row.repo_id}") for row in equal_universe(7)]
        fallen = {max(hub.rows, key=lambda row: row.stars).repo_id: {"stars": 0}}

        def grow(number: int) -> None:
            if number == 10:
                hub.rows = change(hub.rows, fallen) + more

        hub.before_search = grow
        found = run(hub, tmp_path)
        assert found_ids(found) == ids(hub.rows)

    def test_github_runs_out_of_time_now_and_then(self, tmp_path: Path) -> None:
        rows = young_universe(2_000)
        expected = run(Hub(rows), tmp_path / "plain", stars=">=3")
        hub = Hub(rows, incomplete=lambda number, query: number % 3 == 0)
        found = run(hub, tmp_path / "slow", stars=">=3")
        assert comparable(found).repositories == comparable(expected).repositories
        assert found.windows == expected.windows
        assert found.discovery.calls == len(hub.searches) > expected.discovery.calls

    def test_a_window_for_which_github_always_runs_out_of_time_is_reported(self, tmp_path: Path) -> None:
        hub = Hub(equal_universe(80), incomplete=lambda number, query: True)
        found = run(hub, tmp_path)
        assert [(row.total, row.found, row.incomplete) for row in found.windows] == [(40, 0, True)]
        assert found.discovery.incomplete == 1
        assert len(hub.asked) == 4 * 3

    def test_an_answer_of_another_form_is_no_result(self, tmp_path: Path) -> None:
        hub = Hub([], scripted=[Reply(200, b'{"hello": "world"}')])
        with pytest.raises(PipelineError, match=r"GitHub's answer is not as documented \(KeyError\('total_count'\)\)"):
            run(hub, tmp_path)


class TestWhatIsRecorded:
    def test_every_column(self, tmp_path: Path) -> None:
        hub = Hub([replace(row, stars=4, licence="NOASSERTION", archived=True) for row in equal_universe(1)])
        found = run(hub, tmp_path, stars=">=3", size="<30000")
        assert found.discovery == Discovery(
            api_url=found.discovery.api_url,
            query="language:Python is:public stars:>=3 size:<=29999",
            licences=(),
            started_at=STARTED,
            finished_at=STARTED,
            incremental=False,
            total=1,
            found=1,
            uncovered=0,
            incomplete=0,
            calls=1,
            lookups=0,
        )
        assert found.windows == [
            SearchWindow(
                1, "language:Python is:public stars:>=3 size:<=29999", None,
                {"stars": ">=3", "size": "<=29999"}, 1, 1, False, 0,
            )
        ]  # fmt: skip
        [row] = found.repositories
        assert row == read_repository(reduce_repository(hub.rows[0].json(hub.base)))
        assert (row.repo_id, row.repo, row.stars, row.license, row.archived) == (1, "same/r0", 4, None, True)
        assert (row.clone_url, row.web_url) == (f"{hub.base}/same/r0.git", f"{hub.base}/same/r0")

    def test_what_cannot_be_used_is_excluded_and_what_is_private_not_named(self, tmp_path: Path) -> None:
        one, two, three = equal_universe(3)
        rows = [one, replace(two, disabled=True), replace(three, private=True)]
        body = {"total_count": 3, "incomplete_results": False, "items": [row.json("https://localhost") for row in rows]}
        import json

        found = run(Hub([], scripted=[Reply(200, json.dumps(body).encode())]), tmp_path)
        host = found.discovery.api_url.split("/")[2]
        clone = "https://localhost/same/r0.git"
        assert found.excluded == [
            Exclusion(f"{host}:3", "discovery", "repository_private", "not public"),
            Exclusion("same/r0", "discovery", "clone_url_refused", f"{clone} is no https address of {host}"),
            Exclusion("same/r1", "discovery", "repository_disabled", "GitHub has disabled repository 2"),
        ]


class TestRepeated:
    def test_nothing_changed(self, tmp_path: Path) -> None:
        hub = Hub(large_universe(2_400))
        first = run(hub, tmp_path, **POPULAR)
        hub.asked.clear()
        again = run(hub, tmp_path, started=LATER, former=first, **POPULAR)
        assert comparable(again).repositories == comparable(first).repositories
        assert [(row.query, row.total, row.found) for row in again.windows] == [
            (row.query, row.total, row.found) for row in first.windows
        ]
        assert (again.discovery.incremental, again.discovery.lookups) == (True, 0)
        pushed = [asked for asked in hub.searches if "2024-07-01T00:00:00Z" in asked.query["q"]]
        assert len(hub.searches) - len(pushed) == len(first.windows)
        assert {asked.status for asked in hub.searches} == {200, 304}

    def test_only_what_changed_is_asked_for(self, tmp_path: Path) -> None:
        hub = Hub(large_universe(3_300))
        hub.rows = [replace(row, pushed=min(row.pushed or TODAY, TODAY - timedelta(days=9))) for row in hub.rows]
        first = run(hub, tmp_path, **POPULAR)
        ranked = sorted(hub.rows, key=lambda row: (row.stars, row.repo_id))
        gone, left, blocked, renamed, risen, hidden = (
            ranked[0],
            ranked[9],
            ranked[1_900],
            ranked[3],
            ranked[40],
            ranked[60],
        )
        new = replace(ranked[7], repo_id=9_999_999, name="brand/new", pushed=LATER - timedelta(days=2))
        starred = replace(ranked[8], repo_id=9_999_998, name="late/fame", stars=1_001)
        hub.rows = [
            *change(hub.rows, {
                gone.repo_id: {"gone": 404},
                blocked.repo_id: {"gone": 451},
                left.repo_id: {"stars": 900},
                hidden.repo_id: {"private": True},
                renamed.repo_id: {"name": "new/name", "pushed": LATER - timedelta(days=1)},
                risen.repo_id: {"stars": 500_000},
            }),
            new,
            starred,
        ]  # fmt: skip
        hub.asked.clear()
        again = run(hub, tmp_path, started=LATER, former=first, **POPULAR)
        fresh = run(Hub(hub.rows), tmp_path / "fresh", started=LATER, **POPULAR)
        assert found_ids(again) == found_ids(fresh)
        names = {row.repo_id: (row.repo, row.aliases) for row in again.repositories}
        assert names[renamed.repo_id] == ("new/name", (renamed.name,))
        assert names[new.repo_id] == ("brand/new", ())
        reasons = {item.row_id: item.reason for item in again.excluded}
        host = again.discovery.api_url.split("/")[2]
        assert reasons == {
            gone.name: "repository_deleted",
            blocked.name: "repository_blocked",
            left.name: "search_left",
            f"{host}:{hidden.repo_id}": "repository_private",
        }
        assert again.discovery.lookups == 4
        # The two windows of the middle are as they were: their first page is all that was asked for.
        assert again.discovery.calls < fresh.discovery.calls

    def test_a_repeated_search_finds_what_a_new_one_finds_whatever_changed(self, tmp_path: Path) -> None:
        hub = Hub(young_universe(1_300))
        found = run(hub, tmp_path, stars=">=3")
        for month in range(1, 4):
            changes: dict[int, Mapping[str, object]] = {
                row.repo_id: {"stars": row.stars + 1, "pushed": STARTED + timedelta(days=30 * month - 1)}
                for row in hub.rows
                if row.repo_id % 11 == month
            }
            hub.rows = change(hub.rows, changes) + [young(number, month) for number in range(40)]
            started = STARTED + timedelta(days=30 * month)
            found = run(hub, tmp_path, started=started, former=found, stars=">=3")
            fresh = run(Hub(hub.rows), tmp_path / str(month), started=started, stars=">=3")
            assert found_ids(found) == found_ids(fresh)
            assert {row.repo_id: row.stars for row in found.repositories} == {
                row.repo_id: row.stars for row in fresh.repositories
            }


def young(number: int, month: int) -> Repository:
    made = STARTED + timedelta(days=30 * month - 10)
    return Repository(50_000 + month * 100 + number, f"fresh/{month}-{number}", 3, created=made, pushed=made)
