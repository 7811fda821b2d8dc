"""What hosts of git answer over HTTP: limits that ask for a pause are told from refusals that stay.

git prints the status of a failed request, and of its body what is plain text; the headers stand only in the record
of the connection that curl makes for it. GitHub's limits look alike on git and on its API (403 or 429, with
`Retry-After` or words), so that both are judged by `miners.rate_limit.classify`.
"""

import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from miners.rate_limit import Answer, Meaning, classify, limit_seconds
from schemas.errors import DataError, UnreachableError

# `<= Recv header: name: text` in the files of GIT_TRACE_CURL; lower case in newer versions of git.
_RECEIVED = re.compile(r"<= [Rr]ecv header: ?(?P<text>.*)")
_STATUS = re.compile(r"HTTP/[0-9.]+ (?P<status>[0-9]{3})\b")
_WORDS = re.compile(r"^remote: ?(?P<text>.*)$", re.MULTILINE)
# Words for what the host has closed to everybody, at law or by its staff; status 451 says the first without words.
_BLOCKED = re.compile(r"DMCA|takedown|access blocked|legal reasons", re.IGNORECASE)
_DISABLED = re.compile(r"(?:repository|access)\b.*\bdisabled", re.IGNORECASE)
_SILENT_SECONDS = 5.0
# Pauses in a row whose stated length is believed; later ones double from a second on, up to a quarter of an hour.
_TRUSTED = 4
_CEILING = 900.0


def trace_settings(trace: Path) -> dict[str, str]:
    """Return the environment in which git writes the headers of all answers into a file, without contents."""
    return {"GIT_TRACE_CURL": str(trace), "GIT_TRACE_CURL_NO_DATA": "1", "GIT_TRACE_REDACT": "1"}


def read_answer(trace: str, stderr: str) -> Answer | None:
    """Return the last answer of a trace, its body being what git printed of it; null without one."""
    status, headers = 0, dict[str, str]()
    for found in _RECEIVED.finditer(trace):
        text = found["text"].strip()
        if begins := _STATUS.match(text):
            status, headers = int(begins["status"]), {}
        elif ":" in text:
            name, _, value = text.partition(":")
            headers[name.strip().lower()] = value.strip()
    body = "\n".join(found["text"] for found in _WORDS.finditer(stderr))
    return Answer(status, headers, body) if status else None


def closed(url: str, answer: Answer | None) -> DataError | None:
    """Return why a host has closed a repository to everybody (`repository_blocked`, `repository_disabled`), else null.

    Only what a refusal says counts: a host's words beside an answer that was given mean something else.
    """
    if answer is None or answer.status not in (403, 404, 410, 451):
        return None
    words = " ".join(answer.body.split())[:200]
    detail = f"{url}: its host answered {answer.status}" + (f": {words}" if words else "")
    if answer.status == 451 or _BLOCKED.search(answer.body):
        return DataError("repository_blocked", detail)
    return DataError("repository_disabled", detail) if _DISABLED.search(answer.body) else None


def wants_pause(answer: Answer | None) -> bool:
    """Say whether an answer asks to come back later; a host that is down for a stated time counts."""
    if answer is None:
        return False
    stated = answer.status == 503 and answer.retry_after(time.time()) is not None
    return stated or classify(answer) in (Meaning.PRIMARY, Meaning.SECONDARY)


def _tell(text: str) -> None:
    """Print a line: whoever waits may be a worker process, which knows the run's terminal only as its own."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@dataclass
class Pauses:
    """Until when each host wants to be left alone, for all threads of this process."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    tell: Callable[[str], None] = _tell
    _until: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, host: str) -> None:
        """Wait until a host may be asked; who has asked for the pause has told of it."""
        while (left := self._until.get(host, 0.0) - self.now()) > 0:
            self.sleep(left)

    def begin(self, host: str, seconds: float) -> None:
        """Note that a host wants to be left alone for a time, and tell when it goes on."""
        until = self.now() + seconds
        with self._lock:
            known = self._until.get(host, 0.0)
            self._until[host] = max(known, until)
        if seconds >= _SILENT_SECONDS and until > known + _SILENT_SECONDS:
            resumes = datetime.fromtimestamp(until).astimezone()
            self.tell(f"  {host}: the limit for git is used up; resumes at {resumes:%H:%M:%S}")


HOSTS = Pauses()


@dataclass
class Bearing:
    """How long one request bears its host's limits: as long as a fetch may take."""

    url: str
    host: str
    longest: float
    """Seconds of all pauses together."""
    pauses: Pauses = field(default_factory=lambda: HOSTS)
    _number: int = 0
    _borne: float = 0.0

    def pause(self, answer: Answer) -> None:
        """Have everybody leave the host alone as long as it asks; UnreachableError when that is too long."""
        self._number += 1
        stated = limit_seconds(answer, self._number, self.pauses.now())
        # A host that states no time worth the name and goes on refusing would be asked without end.
        seconds = max(stated, min(_CEILING, 2.0 ** (self._number - _TRUSTED)))
        self._borne += seconds
        if self._borne > self.longest:
            resumes = datetime.fromtimestamp(self.pauses.now() + seconds).astimezone()
            words = f" ({answer.message})" if answer.message else ""
            raise UnreachableError(
                f"{self.url}: its host's limit holds on, status {answer.status}{words}; it may be asked again at "
                f"{resumes:%H:%M}, and clones.timeout_minutes allows {self.longest / 60:g} minutes of waiting"
            )
        self.pauses.begin(self.host, seconds)
