"""Real git behind the loopback server: `git http-backend`, its answers counted, and spoilt when a test wants that."""

import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import IO

# What hosts of git allow, GitHub among them: a part of a repository, and objects by their names.
_SETTINGS = {"safe.directory": "*", "uploadpack.allowFilter": "true", "uploadpack.allowAnySHA1InWant": "true"}
_PIECE = 1 << 16
SLOW_SECONDS = 0.3


def hand_on(handler: BaseHTTPRequestHandler, root: Path, fault: str = "", *, partial: bool = True) -> tuple[int, int]:
    """Answer a request with what `git http-backend` says; return the status and the bytes of the answer's body.

    A fault is a status with headers and words as in `429 retry-after=0: Too many`, or `truncated`, `reset` or `slow`:
    the body ends in its middle. Not `partial` is a host that gives whole repositories only.
    """
    body = _read_body(handler)
    head, _, words = fault.partition(": ")
    status, *headers = head.split(" ")
    if status.isdigit():
        handler.send_response_only(int(status))
        for name, _, text in (item.partition("=") for item in headers):
            handler.send_header(name, text)
        handler.send_header("content-type", "text/plain; charset=utf-8")
        handler.send_header("content-length", str(len(words)))
        handler.end_headers()
        handler.wfile.write(words.encode())
        return int(status), len(words)
    settings = _SETTINGS if partial else {"safe.directory": "*"}
    with _running(handler, root, body, settings) as stream:
        given = dict(line.split(": ", 1) for line in iter(lambda: stream.readline().decode().strip(), ""))
        code = int(given.pop("Status", "200").split()[0])
        handler.send_response_only(code)
        for name, text in {**given, "transfer-encoding": "chunked"}.items():
            handler.send_header(name, text)
        handler.end_headers()
        return (0 if fault else code), _send(handler, stream, fault)


def _read_body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding", "") != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
    pieces = []
    while size := int(handler.rfile.readline().strip(), 16):
        pieces.append(handler.rfile.read(size))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(pieces)


@contextmanager
def _running(
    handler: BaseHTTPRequestHandler, root: Path, body: bytes, settings: Mapping[str, str]
) -> Iterator[IO[bytes]]:  # fmt: skip
    path, _, query = handler.path.partition("?")
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": handler.command,
        "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
        "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for index, (key, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    process = subprocess.Popen(
        ["git", "http-backend"], env=environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    writer = threading.Thread(target=_write, args=(process, body), daemon=True)
    writer.start()
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()
            writer.join()


def _write(process: "subprocess.Popen[bytes]", body: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(body)
        process.stdin.close()
    except BrokenPipeError:
        return


def _send(handler: BaseHTTPRequestHandler, stream: IO[bytes], fault: str) -> int:
    """Send the body chunk by chunk; with a fault only the half of its first one."""
    sent = 0
    while piece := os.read(stream.fileno(), _PIECE) if sent else stream.read1(_PIECE):  # type: ignore[attr-defined] # a pipe's reader buffers
        half = piece[: len(piece) // 2] if fault else piece
        handler.wfile.write(b"%x\r\n%b" % (len(piece), half))
        sent += len(half)
        if fault:
            handler.wfile.flush()
            handler.close_connection = True
            time.sleep(SLOW_SECONDS if fault == "slow" else 0)
            if fault == "reset":
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                handler.connection.close()
            return sent
        handler.wfile.write(b"\r\n")
    handler.wfile.write(b"0\r\n\r\n")
    return sent
