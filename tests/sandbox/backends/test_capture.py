"""Reading what commands print."""

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.backends.capture import FLOOD, Capture, Tail


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(min_value=1, max_value=60))
def test_a_tail_is_the_end_of_everything(chunks: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for chunk in chunks:
        tail.add(chunk)
    everything = b"".join(chunks)
    assert (tail.value(), tail.truncated, tail.total) == (
        everything[-limit:], len(everything) > limit, len(everything),
    )  # fmt: skip
    assert tail.kept <= limit + 40


@pytest.fixture
def control() -> object:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_reading_ends_when_the_command_is_over(control: tuple[int, int]) -> None:
    capture = Capture(100)
    os.write(capture.writers[0], b"out")
    os.write(capture.writers[1], b"err")
    os.write(control[1], b"x")
    assert capture.wait(control[0], 5) == "done"
    capture.drain()
    assert [tail.value() for tail in capture.tails] == [b"out", b"err"]
    capture.close()
    assert (capture.readers, capture.writers) == ([], [])


def test_reading_ends_in_time(control: tuple[int, int]) -> None:
    capture = Capture(100)
    started = time.monotonic()
    assert capture.wait(control[0], 0.2) == "timeout"
    assert 0.2 <= time.monotonic() - started < 5
    capture.close()


def test_a_flood_ends_reading(control: tuple[int, int]) -> None:
    capture = Capture(10)
    os.write(capture.writers[0], bytes(10 * FLOOD + 1))
    assert capture.wait(control[0], 5) == "flood"
    assert capture.tails[0].value() == bytes(10)
    capture.close()


def test_a_closed_output_does_not_end_the_command(control: tuple[int, int]) -> None:
    capture = Capture(10)
    capture.close_writers()
    assert capture.wait(control[0], 0.2) == "timeout"
    capture.close()


@given(st.lists(st.binary(max_size=5), max_size=9), st.binary(min_size=1, max_size=9))
def test_a_tail_knows_its_end(chunks: list[bytes], end: bytes) -> None:
    tail = Tail(1_000)
    for chunk in chunks:
        tail.add(chunk)
    assert tail.ends(end) == b"".join(chunks).endswith(end)
    tail.forget()
    assert (tail.value(), tail.total, tail.truncated) == (b"", 0, False)


def test_reading_ends_with_an_answer(control: tuple[int, int]) -> None:
    capture = Capture(100)
    os.write(capture.writers[0], b"answer\nend\n")
    assert capture.wait(control[0], 5, b"end\n") == "answered"
    assert capture.tails[0].value() == b"answer\nend\n"
    assert capture.wait(control[0], 0.05, b"more\n") == "timeout"
    capture.close()
