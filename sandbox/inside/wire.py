"""Signed records: what tested code writes to a descriptor of ours is no record, because it lacks the key."""

from __future__ import annotations

import json
import os
import socket
from _operator import _compare_digest  # what module hmac calls compare_digest
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

try:
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # Python 3.12
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,no-redef,unused-ignore]
    except ImportError:
        from hashlib import sha256

Record = Mapping[str, Any]
SIGNATURE = 32  # hexadecimal digits: 128 bits of HMAC-SHA-256
MAX_MESSAGE = 150_000  # below the default of Linux' net.core.wmem_default (212,992), the limit of one message


class Message(NamedTuple):
    """A record that has been written by somebody with the key."""

    stream: str
    """Who wrote it."""
    number: int
    """Its place among all of the stream."""
    kind: str
    """What it tells."""
    text: bytes
    """The record as JSON."""
    signed: bytes
    """Everything that was signed, to be passed on."""

    def record(self) -> dict[str, Any]:
        """Return the record, its kind under `t`."""
        return {"t": self.kind, **json.loads(self.text)}


def seal(key: bytes, stream: str, number: int, kind: str, record: Record) -> bytes:
    """Return a record as one signed line: signature, stream, number in the stream, kind, JSON."""
    text = json.dumps(record, ensure_ascii=True, separators=(",", ":"))
    return sign(key, f"{stream} {number} {kind} {text}".encode("ascii"))


def sign(key: bytes, text: bytes) -> bytes:
    """Return a text with its signature before it."""
    return _signature(key, text) + b" " + text


def unseal(key: bytes, line: bytes) -> Message | None:
    """Return what a line says; None for what nobody with the key has written."""
    signature, _, signed = line.partition(b" ")
    if not _compare_digest(signature, _signature(key, signed)):
        return None
    stream, number, kind, text = signed.split(b" ", 3)
    return Message(stream.decode("ascii"), int(number), kind.decode("ascii"), text, signed)


def send_text(channel: socket.socket, text: bytes) -> None:
    """Send a text of any length as messages: its size, then its parts."""
    channel.sendall(str(len(text)).encode("ascii"))
    for start in range(0, len(text), MAX_MESSAGE):
        channel.sendall(text[start : start + MAX_MESSAGE])


def receive_text(channel: socket.socket) -> bytes | None:
    """Return such a text; None when the other end is closed."""
    head = channel.recv(MAX_MESSAGE)
    if not head:
        return None
    parts: list[bytes] = []
    while sum(map(len, parts)) < int(head):
        part = channel.recv(MAX_MESSAGE)
        if not part:
            return None
        parts.append(part)
    return b"".join(parts)


def _signature(key: bytes, text: bytes) -> bytes:
    """Return an HMAC (RFC 2104) of SHA-256 without module hmac, which loads OpenSSL into every process of ours."""
    inner, outer = (state.copy() for state in _states(key))
    inner.update(text)
    outer.update(inner.digest())
    return bytes(outer.hexdigest()[:SIGNATURE], "ascii")


@lru_cache(maxsize=8)
def _states(key: bytes) -> tuple[Any, Any]:
    """Return the digests of a key's two blocks, of 64 bytes each; our keys are shorter."""
    block = key.ljust(64, b"\0")
    return sha256(bytes(byte ^ 0x36 for byte in block)), sha256(bytes(byte ^ 0x5C for byte in block))


class Sender:
    """Writes the records of one process; a copy that a fork of tested code inherits stays silent."""

    def __init__(self, channel: socket.socket, key: bytes, stream: str) -> None:
        self.channel = channel
        self.key = key
        self.stream = stream
        self.number = 0
        self.owner = os.getpid()

    def send(self, kind: str, **record: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Write a record as one message."""
        if os.getpid() != self.owner:
            return
        self.channel.sendall(seal(self.key, self.stream, self.number, kind, record))
        self.number += 1

    def assume(self, other: Sender) -> None:
        """Speak as another stream from now on, in the process that it was made in."""
        self.stream, self.number, self.owner = other.stream, other.number, other.owner

    def stream_of(self, name: str) -> Sender:
        """Return a sender for another process that shares the channel; made in that process."""
        return Sender(self.channel, self.key, name)
