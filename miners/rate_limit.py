"""GitHub's limits: what an answer means, how long to wait, and which token may ask.

Primary limits (a number of requests per bucket and time) stand in the headers of every answer. Secondary limits (too
much at once) come as 403 or 429, with or without `Retry-After`; only the words tell them from a refusal. See
https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api.
"""

import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Protocol

from schemas.errors import PipelineError, TransientError

SEARCH, CORE = "search", "core"
# Requests of a bucket and the seconds they are for, with a token and without, until an answer's headers tell better.
_WITH_TOKEN = {SEARCH: (30, 60.0), CORE: (5_000, 3_600.0)}
_WITHOUT_TOKEN = {SEARCH: (10, 60.0), CORE: (60, 3_600.0)}
# "Wait for at least one minute", then longer and longer: GitHub's best practices for the REST API.
_SECONDARY_SECONDS = 60.0
_SECONDARY_CEILING = 900.0
_FAULT_CEILING = 60.0
# A reset is stated in whole seconds, and two clocks never agree.
_MARGIN = 1.0
# Waits that nobody notices need no line on the terminal.
_SILENT_SECONDS = 5.0
_PATIENCE = 8  # faults of one request in a row

_PRIMARY = re.compile(r"^api rate limit exceeded|\brate limit exceeded for\b", re.IGNORECASE)
_SECONDARY = re.compile(
    r"secondary rate limit|secondary quota|abuse detection|abuse rate limit|temporarily blocked"
    r"|please retry your request again later|please wait a few (?:minutes|seconds) before you try again"
    r"|too many requests|submitted too quickly",
    re.IGNORECASE,
)
_TOO_WIDE = re.compile(r"only the first [\d,]+ search results are available", re.IGNORECASE)


class Meaning(StrEnum):
    """What an answer means for the one who asked."""

    GIVEN = "given"
    UNCHANGED = "unchanged"
    PRIMARY = "primary"
    SECONDARY = "secondary"
    FAULT = "fault"
    BAD_TOKEN = "bad_token"  # noqa: S105 - the name of a meaning
    REFUSED = "refused"
    MISSING = "missing"
    BLOCKED = "blocked"
    TOO_WIDE = "too_wide"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the API."""

    status: int
    """HTTP status."""
    headers: Mapping[str, str]
    """Headers, names in small letters."""
    body: str
    """Body."""

    @property
    def message(self) -> str:
        """Return the words of an error; the beginning of the body when it is no JSON."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return self.body[:200]
        return str(value.get("message", "")) if isinstance(value, dict) else ""

    def number(self, header: str) -> float | None:
        """Return a header's number, null without one."""
        try:
            return float(self.headers[header])
        except (KeyError, ValueError):
            return None

    def retry_after(self, now: float) -> float | None:
        """Return the seconds of `Retry-After`, which is a number or a date (RFC 9110, 10.2.3); null without one."""
        seconds = self.number("retry-after")
        if seconds is None:
            try:
                seconds = parsedate_to_datetime(self.headers["retry-after"]).timestamp() - _server_time(self, now)
            except (KeyError, ValueError):
                return None
        return seconds if 0 <= seconds < math.inf else None


def classify(answer: Answer) -> Meaning:
    """Say what an answer means; a limit is told from a refusal by status, headers and words, in this order."""
    status = answer.status
    if status in (403, 429):
        return _classify_refusal(answer)
    simple = {200: Meaning.GIVEN, 304: Meaning.UNCHANGED, 401: Meaning.BAD_TOKEN, 404: Meaning.MISSING}
    if status in simple:
        return simple[status]
    if status in (410, 451):
        return Meaning.BLOCKED if status == 451 else Meaning.MISSING
    if status == 422:
        return Meaning.TOO_WIDE if _TOO_WIDE.search(answer.message) else Meaning.INVALID
    return Meaning.FAULT if status >= 500 or status == 408 else Meaning.INVALID


def _classify_refusal(answer: Answer) -> Meaning:
    """Tell primary and secondary limits, blocks and missing permissions apart."""
    message = answer.message
    if answer.number("x-ratelimit-remaining") == 0 and not _SECONDARY.search(message):
        return Meaning.PRIMARY
    if _PRIMARY.search(message):
        return Meaning.PRIMARY
    if answer.status == 429 or "retry-after" in answer.headers or _SECONDARY.search(message):
        return Meaning.SECONDARY
    return Meaning.BLOCKED if "access blocked" in message.lower() else Meaning.REFUSED


class Clock(Protocol):
    """Time as the limits see it; tests bring their own."""

    def now(self) -> float:
        """Return seconds since 1970 UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """See `Clock.now`."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        time.sleep(seconds)


@dataclass(slots=True)
class Budget:
    """What one token may still ask of one bucket."""

    limit: int
    """Requests until the reset."""
    seconds: float
    """Time for which the limit is."""
    remaining: int = field(init=False)
    """Requests that are left."""
    resets_at: float | None = None
    """When the limit is whole again, by our clock; null before the first request."""
    blocked_until: float = 0.0
    """A secondary limit holds until then."""

    def __post_init__(self) -> None:
        """Start whole."""
        self.remaining = self.limit

    def ready_at(self, now: float) -> float:
        """Return when the next request may go out: the second half of a budget is spread over the time left."""
        if self.resets_at is not None and now >= self.resets_at:
            self.remaining, self.resets_at = self.limit, None
        if self.resets_at is None or self.remaining > self.limit // 2:
            return max(now, self.blocked_until)
        if self.remaining < 1:
            return max(self.resets_at, self.blocked_until)
        return max(now + (self.resets_at - now) / (self.remaining + 1), self.blocked_until)

    def spend(self, now: float) -> None:
        """Count a request that goes out."""
        if self.resets_at is None:
            self.resets_at = now + self.seconds
        self.remaining -= 1

    def learn(self, answer: Answer, now: float) -> None:
        """Take over what an answer's headers say; the server's clock counts for its own times."""
        limit, remaining = answer.number("x-ratelimit-limit"), answer.number("x-ratelimit-remaining")
        reset = answer.number("x-ratelimit-reset")
        if limit is not None and remaining is not None and reset is not None and limit >= 1:
            self.limit, self.remaining = int(limit), int(remaining)
            self.resets_at = now + max(0.0, reset - _server_time(answer, now)) + _MARGIN


def _server_time(answer: Answer, now: float) -> float:
    """Return the time of an answer by the server's clock, by ours when it does not tell."""
    try:
        return parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (KeyError, ValueError):
        return now


def limit_seconds(answer: Answer, number: int, now: float) -> float:
    """Return how long to wait after a request met a limit for the given time in a row.

    `Retry-After` counts, else the reset of a limit that is used up, else a minute, longer each time.
    """
    stated, reset = answer.retry_after(now), answer.number("x-ratelimit-reset")
    if stated is not None:
        return stated
    if reset is not None and answer.number("x-ratelimit-remaining") == 0:
        return max(0.0, reset - _server_time(answer, now)) + _MARGIN
    return min(_SECONDARY_CEILING, _SECONDARY_SECONDS * float(2 ** min(number - 1, 10)))


class Patience:
    """Counts the faults of one request and says how long to wait after each."""

    def __init__(self) -> None:
        self._faults = 0
        self._limits = 0

    def after_fault(self, what: str) -> float:
        """Return the seconds to wait after a fault of server or network; TransientError when there were too many."""
        self._faults += 1
        if self._faults >= _PATIENCE:
            raise TransientError(f"GitHub does not answer ({what}); what is answered is kept, run again to go on")
        return min(_FAULT_CEILING, float(2 ** (self._faults - 1)))

    def after_limit(self, answer: Answer, now: float) -> float:
        """Return the seconds to wait after a secondary limit: `Retry-After`, else a minute and longer each time.

        PipelineError when it holds on: to try again at once, as after a TransientError, would make it worse.
        """
        self._limits += 1
        if self._limits >= _PATIENCE:
            raise PipelineError(
                f"GitHub's secondary limit holds on ({answer.message[:200]}); what is answered is kept, run again later"
            )
        stated = answer.retry_after(now)
        return limit_seconds(answer, self._limits, now) if stated is None else stated + _MARGIN


class Limits:
    """The budgets of all tokens, and the waiting: in small steps, told on the terminal, never longer than allowed."""

    def __init__(
        self, tokens: Sequence[str | None], clock: Clock, notify: Callable[[str], None], longest_wait: timedelta
    ) -> None:
        self._clock, self._notify, self._longest = clock, notify, longest_wait
        self._budgets = {
            (index, bucket): Budget(*(_WITHOUT_TOKEN if token is None else _WITH_TOKEN)[bucket])
            for index, token in enumerate(tokens)
            for bucket in (SEARCH, CORE)
        }
        self._usable = list(range(len(tokens)))

    def take(self, bucket: str) -> int:
        """Wait until a token may ask, count the request and return the token's index.

        Raises PipelineError when that would take longer than allowed.
        """
        now = self._clock.now()
        ready, index = min((self._budgets[index, bucket].ready_at(now), index) for index in self._usable)
        self.wait(ready - now, f"the {bucket} limit is used up")
        self._budgets[index, bucket].spend(self._clock.now())
        return index

    def learn(self, index: int, bucket: str, answer: Answer) -> None:
        """Take over what an answer's headers say of a token's budget."""
        stated = answer.headers.get("x-ratelimit-resource", bucket)
        if (index, stated) in self._budgets:
            self._budgets[index, stated].learn(answer, self._clock.now())

    def exhausted(self, index: int, bucket: str, answer: Answer) -> None:
        """Note that a token's primary limit is reached, whatever the headers say."""
        budget, now = self._budgets[index, bucket], self._clock.now()
        budget.remaining = 0
        stated = answer.retry_after(now)
        if stated is not None:
            budget.resets_at = now + stated + _MARGIN
        elif budget.resets_at is None or budget.resets_at <= now:
            budget.resets_at = now + budget.seconds

    def block(self, index: int, seconds: float) -> None:
        """Note that a secondary limit holds for a token, in all its buckets."""
        until = self._clock.now() + seconds
        for (owner, _), budget in self._budgets.items():
            if owner == index:
                budget.blocked_until = max(budget.blocked_until, until)

    def drop(self, index: int) -> bool:
        """Use a token no more; say whether another is left."""
        if index in self._usable:
            self._usable.remove(index)
        return bool(self._usable)

    def wait(self, seconds: float, why: str) -> None:
        """Wait, and tell when it goes on; PipelineError when it is longer than allowed: nobody may ask before."""
        if seconds <= 0:
            return
        resumes = datetime.fromtimestamp(self._clock.now() + seconds).astimezone()
        if seconds > self._longest.total_seconds():
            raise PipelineError(
                f"GitHub: {why}; it can go on at {resumes:%H:%M}, longer than search.max_wait allows; what is "
                "answered is kept, run again then"
            )
        if seconds >= _SILENT_SECONDS:
            self._notify(f"  GitHub: {why}; resumes at {resumes:%H:%M:%S}")
        self._clock.sleep(seconds)
