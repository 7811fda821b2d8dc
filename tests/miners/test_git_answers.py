"""What hosts of git answer, as git's record of the connection and its words tell it."""

import pytest

from miners.git_answers import closed, read_answer, wants_pause
from miners.rate_limit import Answer

TRACE = """\
13:49:26.1 http.c:725              == Info: Connected to localhost (127.0.0.1) port 42345 (#0)
13:49:26.2 http.c:684              => Send header: GET /o/r/info/refs?service=git-upload-pack HTTP/1.1
13:49:26.3 http.c:672              <= Recv header, 0000000034 bytes (0x00000022)
13:49:26.3 http.c:684              <= Recv header: HTTP/1.1 200 Connection established
13:49:26.3 http.c:684              <= Recv header: Via: proxy
13:49:26.3 http.c:684              <= Recv header:
13:49:26.4 http.c:684              <= recv header: HTTP/2 429
13:49:26.4 http.c:684              <= recv header: Retry-After:  7
13:49:26.4 http.c:684              <= recv header: date: Mon, 30 Nov 2026 13:49:26 GMT
"""
WORDS = "remote: Too many.\nremote: Later, please.\nfatal: unable to access 'x': error: 429\n"
NOW = 1_796_046_566.0


def test_the_last_answer_counts() -> None:
    assert read_answer(TRACE, WORDS) == Answer(
        429, {"retry-after": "7", "date": "Mon, 30 Nov 2026 13:49:26 GMT"}, "Too many.\nLater, please."
    )
    assert read_answer("", WORDS) is None


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("Mon, 30 Nov 2026 13:51:26 GMT", 120),
        ("Mon, 30 Nov 2026 13:00:00 GMT", None),
    ],
)
def test_when_to_come_back(stated: str, seconds: float | None) -> None:
    """By the host's clock, which its `Date` tells."""
    answer = Answer(429, {"retry-after": stated, "date": "Mon, 30 Nov 2026 13:49:26 GMT"}, "")
    assert answer.retry_after(NOW - 86_400) == seconds


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(429, {}, ""), True),
        (Answer(403, {"retry-after": "9"}, ""), True),
        (Answer(403, {}, "This request was rate-limited due to too many requests."), True),
        (Answer(403, {"x-ratelimit-remaining": "0"}, ""), True),
        (Answer(503, {"retry-after": "9"}, ""), True),
        (Answer(503, {}, ""), False),
        (Answer(403, {}, "Write access to repository not granted."), False),
        (Answer(404, {}, "Too many requests"), False),
        (Answer(200, {"retry-after": "9"}, ""), False),
        (None, False),
    ],
)
def test_who_wants_a_pause(answer: Answer | None, expected: bool) -> None:
    assert wants_pause(answer) is expected


@pytest.mark.parametrize(
    ("status", "words", "reason"),
    [
        (451, "", "repository_blocked"),
        (403, "Repository unavailable due to DMCA takedown.", "repository_blocked"),
        (403, "Repository access blocked", "repository_blocked"),
        (403, "Access to this repository has been disabled by staff.", "repository_disabled"),
        (403, "Repository 'o/r' is disabled.", "repository_disabled"),
        (403, "Permission denied", None),
        (500, "Repository access blocked", None),
        (200, "This repository is disabled", None),
    ],
)
def test_what_is_closed_to_everybody(status: int, words: str, reason: str | None) -> None:
    error = closed("https://host.example/o/r", Answer(status, {}, words))
    assert (None if error is None else error.reason) == reason
