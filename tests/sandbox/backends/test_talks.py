"""Commands that answer requests, in the sandboxes that have them."""

import time
from dataclasses import replace

import pytest

from sandbox.backends.talks import Talk
from sandbox.protocol import Session, Talker
from schemas.execution import KilledBy
from tests.sandbox.backends.conftest import LIMITS, PYTHON, sh

# Answers every request with itself; `end` ends it, `sleep` keeps it from answering, `work` takes processor time.
ANSWERS = """
import struct, sys, time
while True:
    size, = struct.unpack("!Q", sys.stdin.buffer.read(8))
    text = sys.stdin.buffer.read(size)
    if text == b"end":
        break
    if text == b"sleep":
        time.sleep(60)
    started = time.process_time()
    while text == b"work" and time.process_time() - started < 0.3:
        pass
    sys.stderr.write("told")
    sys.stderr.flush()
    sys.stdout.write(f"{text.decode()[-20:]} {size}\\nend\\n")
    sys.stdout.flush()
"""
ARGV = ("/usr/bin/env", "LD_LIBRARY_PATH=/w/python/lib", PYTHON, "-I", "-c", ANSWERS)
END = b"end\n"
held = pytest.mark.parametrize("box", ["bubblewrap", "unsafe-local"], indirect=True)


@held
def test_one_command_answers_many_requests(session: Session) -> None:
    assert isinstance(session, Talker)
    long = b"x" * 3_000_000  # more than a pipe holds
    with session.talk(ARGV, files={"/w/in/a": b"1"}, limits=LIMITS) as talk:
        answers = [talk.ask(text, END, LIMITS) for text in (b"one", long, b"two")]
    assert [(a.stdout, a.stderr, a.killed_by, a.returncode) for a in answers if a] == [
        (b"one 3\nend\n", b"told", KilledBy.NONE, 0),
        (b"x" * 20 + b" 3000000\nend\n", b"told", KilledBy.NONE, 0),
        (b"two 3\nend\n", b"told", KilledBy.NONE, 0),
    ]
    assert sh(session, "cat /w/in/a; echo next") == (0, "1next\n", "")


@held
@pytest.mark.parametrize("text", [b"end", b"sleep"])
def test_without_an_answer_there_is_none(session: Session, text: bytes) -> None:
    assert isinstance(session, Talker)
    short = replace(LIMITS, wall_seconds=0.5)
    started = time.monotonic()
    with session.talk(ARGV, files={}, limits=LIMITS) as talk:
        assert talk.ask(b"one", END, LIMITS) is not None
        assert talk.ask(text, END, short) is None
        assert talk.ask(b"two", END, short) is None
    assert time.monotonic() - started < 10
    assert sh(session, "echo next") == (0, "next\n", "")


@pytest.mark.parametrize("box", ["bubblewrap"], indirect=True)
@pytest.mark.usefixtures("groups")
def test_a_request_has_its_own_share_of_the_processor_and_is_told_its_own_use(session: Session) -> None:
    assert isinstance(session, Talker)
    with session.talk(ARGV, files={}, limits=LIMITS) as talk:
        assert isinstance(talk, Talk)
        whole, throttled, idle = (
            talk.ask(text, END, replace(LIMITS, cpus=cpus)) for text, cpus in ((b"work", 1), (b"work", 0.2), (b"x", 1))
        )
    assert whole
    assert throttled
    assert idle
    assert throttled.wall_seconds > 1.0  # 0.3 seconds of work at a fifth
    assert 0.25 < throttled.cpu_seconds < 0.6
    assert idle.cpu_seconds < 0.1
