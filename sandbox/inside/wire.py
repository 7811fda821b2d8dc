"""Signed records: what tested code writes to a descriptor of ours is no record, because it lacks the key."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]
SIGNATURE = 32  # hexadecimal digits: 128 bits of HMAC-SHA-256
MAX_MESSAGE = 150_000  # below the default of Linux' net.core.wmem_default (212,992), the limit of one message


def seal(key: bytes, stream: str, number: int, record: Record) -> bytes:
    """Return a record as one signed line: signature, stream, number in the stream, JSON."""
    text = f"{stream} {number} {json.dumps(record, ensure_ascii=True, separators=(',', ':'))}".encode("ascii")
    return _sign(key, text) + b" " + text


def unseal(key: bytes, line: bytes) -> tuple[str, int, dict[str, Any]] | None:
    """Return stream, number and record of a line; None for what nobody with the key has written."""
    signature, _, text = line.partition(b" ")
    if not hmac.compare_digest(signature, _sign(key, text)):
        return None
    stream, number, record = text.split(b" ", 2)
    return stream.decode("ascii"), int(number), json.loads(record)


def _sign(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).hexdigest()[:SIGNATURE].encode("ascii")


class Sender:
    """Writes the records of one process; a copy that a fork of tested code inherits stays silent."""

    def __init__(self, channel: socket.socket, key: bytes, stream: str) -> None:
        self.channel = channel
        self.key = key
        self.stream = stream
        self.number = 0
        self.owner = os.getpid()

    def send(self, record: Record) -> None:
        """Write a record as one message."""
        if os.getpid() != self.owner:
            return
        self.channel.sendall(seal(self.key, self.stream, self.number, record))
        self.number += 1

    def stream_of(self, name: str) -> Sender:
        """Return a sender for another process that shares the channel; made in that process."""
        return Sender(self.channel, self.key, name)
