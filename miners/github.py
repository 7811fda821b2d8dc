"""The one place that knows PyGithub: a client that asks politely and keeps what was answered.

PyGithub's own retries are off: they do not know a 429 without `Retry-After`, and may sleep for an hour without a word.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from miners.rate_limit import CORE, SEARCH, Answer, Clock, Limits, Meaning, Patience, SystemClock, classify
from schemas.errors import ConfigError, DataError
from schemas.search import SearchConfig

if TYPE_CHECKING:
    from github import Github

USER_AGENT = f"Postquem/{version('postquem')}"
API_VERSION = "2022-11-28"
_TIMEOUT_SECONDS = 30


class Store(Protocol):
    """Keeps what was answered from one run to the next (`warehouse.journal.Journal`)."""

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was put under a key, null without anything."""
        ...

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep JSON values under a key."""
        ...


@dataclass(slots=True)
class Counts:
    """Requests that were sent and answered."""

    calls: int = 0
    """Search requests that were answered, not counting those that the store answered."""
    lookups: int = 0
    """Requests for single repositories that were answered."""
    attempts: int = 0
    """All requests, those that failed included."""


class GitHubClient:
    """Asks the API of one GitHub; not for several threads at once, since GitHub wants requests one after another."""

    def __init__(
        self,
        config: SearchConfig,
        tokens: Sequence[str],
        notify: Callable[[str], None],
        clock: Clock | None = None,
        timeout: int = _TIMEOUT_SECONDS,
    ) -> None:
        logging.getLogger("github").setLevel(logging.WARNING)  # it tells every redirect on standard error
        self._clock = clock = clock or SystemClock()
        self.api_url = config.api_url
        self.counts = Counts()
        self._tokens: tuple[str | None, ...] = tuple(tokens) or (None,)
        self._limits = Limits(self._tokens, clock, notify, config.longest_wait)
        self._notify = notify
        self._clients = [_make(config.api_url, token, timeout) for token in self._tokens]

    def search(self, query: str, sort: str | None, page: int, etag: str | None = None) -> Answer:
        """Ask for one page of 100 repositories; returns an answer that is GIVEN, UNCHANGED or TOO_WIDE.

        Raises ConfigError when the query or all tokens are refused, TransientError when GitHub does not answer,
        PipelineError when its limits want a longer wait than allowed.
        """
        parameters = {"q": query, "per_page": "100", "page": str(page)}
        if sort is not None:
            parameters |= {"sort": sort, "order": "asc"}
        answer = self._ask(SEARCH, f"/search/repositories?{urlencode(parameters)}", etag)
        self.counts.calls += 1
        meaning = classify(answer)
        if meaning in (Meaning.GIVEN, Meaning.UNCHANGED, Meaning.TOO_WIDE):
            return answer
        if answer.status == 422:
            raise ConfigError(f"GitHub refuses the search {query!r}: {answer.message}; correct [search]")
        raise ConfigError(
            f"GitHub refuses to search ({answer.status}: {answer.message}); see to the token's permissions"
        )

    def lookup(self, repo_id: int, store: Store) -> dict[str, Any]:
        """Return what GitHub says now of a repository, by its numeric id; renames and transfers are followed.

        What the store knows is asked for with its ETag, which costs nothing when nothing changed. Raises DataError
        `repository_deleted`, `repository_blocked` or `repository_refused`, TransientError when GitHub does not answer.
        """
        key = f"{self.api_url}/repositories/{repo_id}"
        known = store.get(key)
        answer = self._ask(CORE, f"/repositories/{repo_id}", known["etag"] if known else None)
        self.counts.lookups += 1
        meaning = classify(answer)
        if meaning is Meaning.UNCHANGED and known is not None:
            return dict(known["body"])
        if meaning is not Meaning.GIVEN:
            raise DataError(
                _withheld_reason(meaning), f"GitHub answered {answer.status} for repository {repo_id}: {answer.message}"
            )
        body: dict[str, Any] = json.loads(answer.body)
        if "etag" in answer.headers:
            store.put(key, {"etag": answer.headers["etag"], "body": body})
        return body

    def _ask(self, bucket: str, path: str, etag: str | None) -> Answer:
        """Send a request until it is answered: limits waited for, faults tried again, bad tokens left out."""
        from requests import RequestException  # as in `_make`

        patience = Patience()
        while True:
            index = self._limits.take(bucket)
            self.counts.attempts += 1
            try:
                answer = self._send(index, path, etag)
            except RequestException as error:
                self._limits.wait(patience.after_fault(type(error).__name__), "no answer")
                continue
            self._limits.learn(index, bucket, answer)
            meaning = classify(answer)
            if meaning is Meaning.PRIMARY:
                self._limits.exhausted(index, bucket, answer)
            elif meaning is Meaning.SECONDARY:
                self._limits.block(index, patience.after_limit(answer, self._clock.now()))
            elif meaning is Meaning.BAD_TOKEN:
                self._leave_out(index, answer)
            elif meaning is Meaning.FAULT or (meaning is Meaning.GIVEN and not _is_whole(answer)):
                self._limits.wait(patience.after_fault(f"status {answer.status}"), "no whole answer")
            else:
                return answer

    def _send(self, index: int, path: str, etag: str | None) -> Answer:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": API_VERSION}
        headers |= {"If-None-Match": etag} if etag else {}
        try:
            status, given, body = self._clients[index].requester.requestJson("GET", path, headers=headers)
        except RuntimeError as error:  # PyGithub's word for a redirect to another host or protocol
            raise ConfigError(f"{self.api_url} is not the address of the API: {error}") from None
        return Answer(status, given, body)

    def _leave_out(self, index: int, answer: Answer) -> None:
        """Go on without a token that GitHub does not know; ConfigError when it was the last."""
        text = f"GitHub refuses token {index + 1} of {len(self._tokens)} ({answer.message})"
        if self._tokens[index] is None or not self._limits.drop(index):
            raise ConfigError(f"{text}; give a valid one in GITHUB_TOKEN, or none")
        self._notify(f"  {text}; going on without it")


def _withheld_reason(meaning: Meaning) -> str:
    """Return the reason of a repository that GitHub does not give out."""
    if meaning is Meaning.MISSING:
        return "repository_deleted"
    return "repository_blocked" if meaning is Meaning.BLOCKED else "repository_refused"


def _make(api_url: str, token: str | None, timeout: int) -> "Github":
    """Return PyGithub's client, without its retries and pauses: `Limits` has ours."""
    from github import Auth, Github  # half a second, which runs without a search need not spend

    return Github(
        base_url=api_url,
        auth=None if token is None else Auth.Token(token),
        user_agent=USER_AGENT,
        timeout=timeout,
        per_page=100,
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
    )


def _is_whole(answer: Answer) -> bool:
    """Say whether a body is JSON: one that was cut off is none."""
    try:
        return isinstance(json.loads(answer.body), dict)
    except ValueError:
        return False
