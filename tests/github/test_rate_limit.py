"""What answers mean, and how long to wait."""

import json
from datetime import datetime, timedelta
from email.utils import formatdate

import pytest

from miners.rate_limit import CORE, SEARCH, Answer, Limits, Meaning, Patience, classify, limit_seconds
from schemas.errors import PipelineError, TransientError
from tests.github.server import FakeClock

HOUR = timedelta(minutes=65)


def answer(status: int, message: str = "", **headers: str) -> Answer:
    body = json.dumps({"message": message}) if message else ""
    return Answer(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)


@pytest.mark.parametrize(
    ("given", "meaning"),
    [
        (answer(200), Meaning.GIVEN),
        (answer(304), Meaning.UNCHANGED),
        (answer(401, "Bad credentials"), Meaning.BAD_TOKEN),
        (answer(403, "API rate limit exceeded for user ID 1.", x_ratelimit_remaining="0"), Meaning.PRIMARY),
        (answer(403, "API rate limit exceeded for 203.0.113.7. (But here's the good news: ...)"), Meaning.PRIMARY),
        (answer(429, "API rate limit exceeded for installation ID 7."), Meaning.PRIMARY),
        (answer(403, "", x_ratelimit_remaining="0", x_ratelimit_reset="1"), Meaning.PRIMARY),
        (answer(429, "x", x_ratelimit_remaining="0"), Meaning.PRIMARY),
        (answer(403, "You have exceeded a secondary rate limit.", x_ratelimit_remaining="0"), Meaning.SECONDARY),
        (
            answer(403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."),
            Meaning.SECONDARY,
        ),
        (answer(429, "You have exceeded a secondary rate limit.", retry_after="60"), Meaning.SECONDARY),
        (answer(403, "You have exceeded a secondary quota."), Meaning.SECONDARY),
        (answer(403, "You have triggered an abuse detection mechanism."), Meaning.SECONDARY),
        (
            answer(403, "You have been temporarily blocked from content creation. Please retry later."),
            Meaning.SECONDARY,
        ),
        (answer(403, "was submitted too quickly"), Meaning.SECONDARY),
        (answer(429), Meaning.SECONDARY),
        (answer(429, "Too Many Requests"), Meaning.SECONDARY),
        (answer(403, "Forbidden", retry_after="30"), Meaning.SECONDARY),
        (answer(403, "Resource not accessible by personal access token", x_ratelimit_remaining="41"), Meaning.REFUSED),
        (answer(403, "Resource protected by organization SAML enforcement."), Meaning.REFUSED),
        (answer(403, "Although you appear to have the correct authorization credentials, ..."), Meaning.REFUSED),
        (answer(403, "Repository access blocked"), Meaning.BLOCKED),
        (answer(451, "Repository access blocked"), Meaning.BLOCKED),
        (answer(404, "Not Found"), Meaning.MISSING),
        (answer(410, "Gone"), Meaning.MISSING),
        (answer(422, "Only the first 1000 search results are available"), Meaning.TOO_WIDE),
        (answer(422, "Validation Failed"), Meaning.INVALID),
        (answer(301), Meaning.INVALID),
        (answer(408), Meaning.FAULT),
        (answer(500), Meaning.FAULT),
        (answer(502, "Server Error"), Meaning.FAULT),
        (Answer(503, {}, "<html>Unicorn!</html>"), Meaning.FAULT),
    ],
)  # fmt: skip
def test_limits_are_told_from_refusals(given: Answer, meaning: Meaning) -> None:
    assert classify(given) is meaning


def test_the_message_of_a_body_that_is_no_json_is_its_beginning() -> None:
    assert (Answer(502, {}, "<html>").message, Answer(500, {}, "[1]").message) == ("<html>", "")


class TestPatience:
    def test_faults_wait_longer_each_time_and_end(self) -> None:
        patience = Patience()
        assert [patience.after_fault("status 502") for _ in range(7)] == [1, 2, 4, 8, 16, 32, 60]
        with pytest.raises(TransientError, match=r"GitHub does not answer \(status 502\); what is answered is kept"):
            patience.after_fault("status 502")

    def test_secondary_limits_wait_as_told_else_a_minute_and_longer(self) -> None:
        patience = Patience()
        plain, told = answer(403, "secondary rate limit"), answer(429, "secondary rate limit", retry_after="7")
        assert [patience.after_limit(item, 0.0) for item in (plain, told, plain, plain, plain, plain, plain)] == [
            60, 8, 240, 480, 900, 900, 900,
        ]  # fmt: skip
        with pytest.raises(PipelineError, match=r"secondary limit holds on \(secondary rate limit\)") as caught:
            patience.after_limit(plain, 0.0)
        assert type(caught.value) is PipelineError  # it is not tried again at once


def test_a_limit_that_is_used_up_waits_for_its_reset() -> None:
    told = answer(403, "", x_ratelimit_remaining="0", x_ratelimit_reset="1040", date="Thu, 01 Jan 1970 00:16:40 GMT")
    assert [limit_seconds(told, 1, 0.0), limit_seconds(answer(429, retry_after="3"), 9, 0.0)] == [41, 3]
    assert [limit_seconds(answer(429), number, 0.0) for number in (1, 2, 5, 999)] == [60, 120, 900, 900]


class TestLimits:
    def limits(self, *tokens: str | None, longest: timedelta = HOUR) -> tuple[Limits, FakeClock, list[str]]:
        clock, notes = FakeClock(), list[str]()
        return Limits(tokens, clock, notes.append, longest), clock, notes

    def headers(self, clock: FakeClock, limit: int, remaining: int, seconds: float, skew: float = 0) -> Answer:
        reset = str(int(clock.now() + skew + seconds))
        date = formatdate(clock.now() + skew, usegmt=True)
        return answer(
            200, x_ratelimit_limit=str(limit), x_ratelimit_remaining=str(remaining), x_ratelimit_reset=reset, date=date
        )

    @pytest.mark.parametrize(("token", "limit"), [("t", 30), (None, 10)])
    def test_before_any_answer_the_documented_limit_counts(self, token: str | None, limit: int) -> None:
        limits, clock, _ = self.limits(token)
        times = []
        for _ in range(limit + 1):
            assert limits.take(SEARCH) == 0
            times.append(clock.now() - 1_720_000_000)
        assert times[: limit // 2] == [0] * (limit // 2)
        assert times[limit // 2 + 1 : limit] == sorted(set(times[limit // 2 + 1 : limit]))
        assert times[limit - 1] < 60 <= times[limit]

    def test_a_used_up_limit_waits_for_its_reset_and_says_until_when(self) -> None:
        limits, clock, notes = self.limits("t")
        limits.take(SEARCH)
        limits.learn(0, SEARCH, self.headers(clock, 30, 0, 40))
        resumes = datetime.fromtimestamp(clock.now() + 41).astimezone()
        assert limits.take(SEARCH) == 0
        assert clock.slept == [41]
        assert notes == [f"  GitHub: the search limit is used up; resumes at {resumes:%H:%M:%S}"]

    def test_the_buckets_are_apart(self) -> None:
        limits, clock, _ = self.limits("t")
        limits.learn(0, SEARCH, self.headers(clock, 30, 0, 40))
        assert (limits.take(CORE), clock.slept) == (0, [])

    def test_the_bucket_is_the_one_that_the_answer_names(self) -> None:
        limits, clock, _ = self.limits("t")
        told = self.headers(clock, 5_000, 0, 1_000)
        limits.learn(0, SEARCH, Answer(200, {**told.headers, "x-ratelimit-resource": "core"}, ""))
        assert (limits.take(SEARCH), clock.slept) == (0, [])

    def test_the_servers_clock_counts_for_its_own_times(self) -> None:
        limits, clock, _ = self.limits("t")
        limits.learn(0, SEARCH, self.headers(clock, 30, 0, 40, skew=900))
        limits.take(SEARCH)
        assert clock.slept == [41]

    def test_another_token_is_asked_instead_of_waiting(self) -> None:
        limits, clock, _ = self.limits("a", "b")
        limits.learn(0, SEARCH, self.headers(clock, 30, 0, 40))
        assert ([limits.take(SEARCH) for _ in range(3)], clock.slept) == ([1, 1, 1], [])

    def test_a_secondary_limit_holds_for_all_buckets_of_a_token(self) -> None:
        limits, clock, notes = self.limits("a")
        limits.block(0, 60)
        limits.take(CORE)
        assert clock.slept == [60]
        assert len(notes) == 1

    def test_a_longer_wait_than_allowed_ends_the_run(self) -> None:
        limits, clock, notes = self.limits("t", longest=timedelta(minutes=5))
        limits.learn(0, CORE, self.headers(clock, 5_000, 0, 3_000))
        resumes = datetime.fromtimestamp(clock.now() + 3_001).astimezone()
        expected = f"the core limit is used up; it can go on at {resumes:%H:%M}, longer than search.max_wait allows"
        with pytest.raises(PipelineError, match=expected) as caught:
            limits.take(CORE)
        assert type(caught.value) is PipelineError
        assert (clock.slept, notes) == ([], [])

    def test_an_exhausted_token_without_a_stated_reset_waits_for_the_buckets_time(self) -> None:
        limits, clock, _ = self.limits("t")
        limits.exhausted(0, SEARCH, answer(403, "API rate limit exceeded for user ID 1."))
        limits.take(SEARCH)
        assert clock.slept == [60]

    def test_short_waits_are_not_told(self) -> None:
        limits, clock, notes = self.limits("t")
        limits.wait(3, "no answer")
        limits.wait(0, "no answer")
        assert (clock.slept, notes) == ([3], [])
