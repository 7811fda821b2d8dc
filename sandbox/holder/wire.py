"""How the holder and its owner talk: length, JSON, and bytes behind it where a request says so."""

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct("!I")


def receive(connection: socket.socket, size: int) -> bytes:
    """Return exactly so many bytes; EOFError when the other end is gone."""
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def reply(connection: socket.socket, answer: dict[str, Any]) -> None:
    """Send an answer."""
    data = json.dumps(answer).encode()
    connection.sendall(HEADER.pack(len(data)) + data)
