"""The client against a loopback GitHub: limits, faults, tokens, single repositories."""

import ast
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from miners.github import GitHubClient
from schemas.errors import ConfigError, DataError, TransientError
from schemas.search import SearchConfig
from tests.github.server import PRIMARY, SECONDARY, FakeClock, Hub, Reply, error, serving
from tests.github.universe import equal_universe
from warehouse.journal import Journal

ROOT = Path(__file__).resolve().parents[2]
QUERY = "language:Python is:public"


def search(hub: Hub, *pages: int, tokens: Sequence[str] = ("secret-1",)) -> tuple[list[Any], list[str]]:
    """Ask for pages; return the bodies and what was told."""
    hub.clock = hub.clock or FakeClock()
    notes: list[str] = []
    with serving(hub) as api_url:
        client = GitHubClient(SearchConfig(api_url=api_url), tokens, notes.append, hub.clock)
        return [json.loads(client.search(QUERY, "stars", page).body) for page in pages], notes


def test_a_page_is_asked_for_politely() -> None:
    hub = Hub(equal_universe(120))
    [first, second], notes = search(hub, 1, 2)
    assert [first["total_count"], len(first["items"]), len(second["items"]), notes] == [120, 100, 20, []]
    asked = hub.asked[1]
    assert (asked.path, asked.query, asked.token) == (
        "/search/repositories",
        {"q": QUERY, "sort": "stars", "order": "asc", "per_page": "100", "page": "2"},
        "secret-1",
    )
    assert asked.agent.startswith("Postquem/")


def test_without_a_token_none_is_sent() -> None:
    hub = Hub(equal_universe(1))
    search(hub, 1, tokens=())
    assert [asked.token for asked in hub.asked] == [None]


@pytest.mark.parametrize(
    ("reply", "slept"),
    [
        (error(429, SECONDARY), [60]),
        (error(429, "Too many requests", retry_after="5"), [6]),
        (error(403, SECONDARY), [60]),
        (error(403, SECONDARY, retry_after="9"), [10]),
        (error(403, "You have triggered an abuse detection mechanism."), [60]),
        (error(403, PRIMARY), [60]),
        (error(429, PRIMARY, retry_after="5"), [6]),
        (Reply(500, b"<html>"), [1]),
        (Reply(502, b""), [1]),
        (Reply(200, b'{"total_count": 1, "ite'), [1]),
        (Reply(200, b"[]"), [1]),
    ],
)
def test_one_bad_answer_then_a_good_one(reply: Reply, slept: list[float]) -> None:
    clock = FakeClock()
    hub = Hub(equal_universe(3), clock=clock, scripted=[reply])
    [page], _ = search(hub, 1)
    assert (page["total_count"], [round(seconds) for seconds in clock.slept]) == (3, slept)
    assert [asked.status for asked in hub.asked] == [reply.status, 200]


def test_the_primary_limit_is_kept_and_waited_for() -> None:
    clock = FakeClock()
    hub = Hub(equal_universe(1_000), clock=clock, limits={"search": 4, "core": 9})
    pages, notes = search(hub, *range(1, 10))
    assert [len(page["items"]) for page in pages] == [100] * 9
    assert {asked.status for asked in hub.asked} == {200}
    assert 2 * 60 <= sum(clock.slept) <= 2 * 60 + 20
    assert len(notes) >= 2
    assert notes[0].startswith("  GitHub: the search limit is used up; resumes at ")


@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_that_others_used_up_is_waited_for(status: int) -> None:
    """Another program with the same token: our own count is wrong, the refusal's headers are right."""
    clock = FakeClock()
    hub = Hub(equal_universe(3), clock=clock, limits={"search": 10, "core": 9}, limit_status=status)
    hub.used["secret-1", "search"] = (clock.now() + 33, 10)
    [page], _ = search(hub, 1)
    assert (page["total_count"], clock.slept) == (3, [34])
    assert [asked.status for asked in hub.asked] == [status, 200]


def test_two_tokens_take_turns_at_the_limit() -> None:
    clock = FakeClock()
    hub = Hub(equal_universe(1_000), clock=clock, limits={"search": 6, "core": 9})
    search(hub, *range(1, 7), tokens=["a", "b"])
    assert [asked.token for asked in hub.asked] == ["a", "a", "a", "b", "b", "b"]
    assert clock.slept == []


def test_a_token_that_github_does_not_know_is_left_out() -> None:
    hub = Hub(equal_universe(3), tokens=("good",))
    [page], notes = search(hub, 1, tokens=["stale-secret", "good"])
    assert page["total_count"] == 3
    assert notes == ["  GitHub refuses token 1 of 2 (Bad credentials); going on without it"]


def test_only_wrong_tokens_are_for_the_user_to_mend_and_never_shown() -> None:
    hub = Hub(equal_universe(3), tokens=("good",))
    with pytest.raises(ConfigError) as caught:
        search(hub, 1, tokens=["stale-secret"])
    assert str(caught.value) == (
        "GitHub refuses token 1 of 1 (Bad credentials); give a valid one in GITHUB_TOKEN, or none"
    )


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (error(403, "Resource not accessible by personal access token"), "refuses to search .403: Resource not acc"),
        (error(422, "Validation Failed"), "refuses the search 'language:Python is:public': Validation Failed; correct"),
        (error(404, "Not Found"), r"refuses to search \(404: Not Found\)"),
    ],
)
def test_a_refusal_is_not_tried_again(reply: Reply, message: str) -> None:
    hub = Hub(equal_universe(3), scripted=[reply])
    with pytest.raises(ConfigError, match=message):
        search(hub, 1)
    assert len(hub.asked) == 1


def test_a_redirect_to_another_host_is_not_followed() -> None:
    hub = Hub([], scripted=[Reply(301, b"{}", {"location": "http://127.0.0.9:1/x"})])
    with pytest.raises(ConfigError, match="is not the address of the API"):
        search(hub, 1)


def test_a_server_that_is_down_ends_the_run_after_a_while() -> None:
    clock = FakeClock()
    with serving(Hub([])) as api_url:
        pass
    client = GitHubClient(SearchConfig(api_url=api_url), ["t"], lambda text: None, clock)
    with pytest.raises(TransientError, match=r"GitHub does not answer \(ConnectionError\)"):
        client.search(QUERY, None, 1)
    assert clock.slept == [1, 2, 4, 8, 16, 32, 60]


class TestSingleRepositories:
    def lookup(self, hub: Hub, folder: Path, *repo_ids: int) -> list[dict[str, Any]]:
        hub.clock = FakeClock()
        with serving(hub) as api_url:
            client = GitHubClient(SearchConfig(api_url=api_url), ["t"], lambda text: None, hub.clock)
            return [client.lookup(repo_id, Journal(folder)) for repo_id in repo_ids]

    def test_what_is_known_is_asked_for_with_its_tag(self, tmp_path: Path) -> None:
        hub = Hub(equal_universe(2))
        first, again, other = self.lookup(hub, tmp_path, 1, 1, 2)
        assert first == again
        assert (first["full_name"], other["full_name"]) == ("same/r0", "same/r1")
        assert [asked.status for asked in hub.asked] == [200, 304, 200]

    def test_what_changed_is_seen(self, tmp_path: Path) -> None:
        hub = Hub(equal_universe(1))
        hub.clock = FakeClock()
        with serving(hub) as api_url:
            client = GitHubClient(SearchConfig(api_url=api_url), ["t"], lambda text: None, hub.clock)
            client.lookup(1, Journal(tmp_path))
            hub.rows = [replace(hub.rows[0], stars=99)]
            assert client.lookup(1, Journal(tmp_path))["stargazers_count"] == 99
        assert [asked.status for asked in hub.asked] == [200, 200]

    @pytest.mark.parametrize(
        ("status", "reason"), [(404, "repository_deleted"), (451, "repository_blocked"), (403, "repository_blocked")]
    )
    def test_why_a_repository_is_not_given_out(self, tmp_path: Path, status: int, reason: str) -> None:
        hub = Hub([replace(equal_universe(1)[0], gone=status)])
        with pytest.raises(DataError) as caught:
            self.lookup(hub, tmp_path, 1)
        assert (caught.value.reason, len(hub.asked)) == (reason, 1)
        assert caught.value.detail.startswith(f"GitHub answered {status} for repository 1: ")


def test_one_module_alone_knows_pygithub() -> None:
    knowing = set()
    for path in sorted(ROOT.glob("*/*.py")):
        if path.parent.name in ("tests", "bench"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if any(name.split(".")[0] == "github" for name in names):
                knowing.add(path.relative_to(ROOT).as_posix())
    assert knowing == {"miners/github.py"}
