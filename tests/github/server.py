"""A loopback GitHub: the REST API as its documentation says, with limits and faults, and real git behind it."""

import hashlib
import json
import random
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.github.git_server import hand_on
from tests.github.queries import InvalidQuery, matching
from tests.github.universe import Repository

PREFIX = "/api/v3"
DOCS = "https://docs.github.com/rest"
TOO_WIDE = "Only the first 1000 search results are available"
PRIMARY = "API rate limit exceeded for user ID 1."
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
WINDOWS = {"search": 60, "core": 3_600}
FAULTS = ("limit 403", "limit 429", "429", "500", "502", "truncated", "reset", "slow")
# As GitHub answers git: a limit with a stated time and one that only its words tell, then what passes by itself.
GIT_LIMITS = (
    "429 retry-after=0: Too many requests.",
    "403 retry-after=0",
    "403: You have exceeded a secondary rate limit.",
)
GIT_FAULTS = (*GIT_LIMITS, "403", "500", "502", "503", "truncated", "reset", "slow")


class FakeClock:
    """A clock that only sleeping moves."""

    def __init__(self, start: float = 1_720_000_000.0) -> None:
        self.time, self.slept = start, list[float]()

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def error(status: int, message: str, **headers: str) -> Reply:
    body = {"message": message, "documentation_url": DOCS, "status": str(status)}
    return Reply(status, json.dumps(body).encode(), {name.replace("_", "-"): text for name, text in headers.items()})


@dataclass(frozen=True)
class Asked:
    """A request and what became of it."""

    path: str
    query: Mapping[str, str]
    token: str | None
    status: int
    """HTTP status, 0 when the answer did not arrive whole."""
    agent: str = ""


@dataclass
class Hub:
    """The state of the loopback GitHub; tests change it as they like."""

    rows: list[Repository]
    clock: FakeClock | None = None
    root: Path | None = None
    limits: dict[str, int] | None = None
    limit_status: int = 403
    fault_rate: float = 0.0
    seed: int = 0
    tokens: tuple[str, ...] | None = None
    """Tokens that are known; null for any."""
    scripted: list[Reply] = field(default_factory=list)
    """Answers to the next requests, whatever they ask."""
    incomplete: Callable[[int, Mapping[str, str]], bool] = lambda number, query: False
    """Whether the search of this number runs out of time."""
    before_search: Callable[[int], None] = lambda number: None
    """Called before each search, so that what it finds can move."""
    git_fault_rate: float = 0.0
    """Share of the requests to git that a fault befalls."""
    git_broken: dict[str, str] = field(default_factory=dict)
    """The fault of every request to git whose path begins so."""
    git_scripted: list[str] = field(default_factory=list)
    """Faults of the next requests to git, empty for none."""
    git_bytes: int = 0
    """Bytes that git has sent so far."""
    partial: bool = True
    """Whether git gives parts of repositories."""
    before_git: Callable[[str], None] = lambda path: None
    """Called before each request to git with its path."""
    asked: list[Asked] = field(default_factory=list)
    base: str = ""
    port: int = 0
    """Port of this machine, the same each time the hub is served."""

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.rng = random.Random(self.seed)
        self.used: dict[tuple[str | None, str], tuple[float, int]] = {}
        self.n_searches = 0
        self.kept: tuple[list[Repository], dict[str, list[Repository]]] | None = None

    def now(self) -> float:
        return time.time() if self.clock is None else self.clock.now()

    @property
    def searches(self) -> list[Asked]:
        """Return the searches that were answered."""
        return [asked for asked in self.asked if asked.path.startswith("/search") and asked.status in (200, 304)]

    # -- answers

    def answer(self, path: str, query: Mapping[str, str], token: str | None, etag: str | None) -> tuple[Reply, str]:
        """Return the reply and the fault that befalls it on its way, empty for none."""
        resource = "search" if path.startswith("/search") else "core"
        if self.scripted:
            return self.scripted.pop(0), ""
        fault = self.rng.choice(FAULTS) if self.rng.random() < self.fault_rate else ""
        if fault.startswith("limit"):
            return error(int(fault[-3:]), SECONDARY, **({"retry_after": "7"} if self.rng.random() < 0.5 else {})), ""
        if fault.isdigit():
            return Reply(int(fault), b"<html>Unicorn!</html>", {"content-type": "text/html"}), ""
        if token is not None and self.tokens is not None and token not in self.tokens:
            return error(401, "Bad credentials"), ""
        spent = self._spend(token, resource)
        if spent["x-ratelimit-used"] == "over":
            spent["x-ratelimit-used"] = spent["x-ratelimit-limit"]
            return error(self.limit_status, PRIMARY, **spent), ""
        reply = self._search(query) if resource == "search" else self._repository(path)
        tag = f'W/"{hashlib.sha256(reply.body).hexdigest()}"'
        if reply.status == 200 and etag == tag:
            reply = Reply(304)
        headers = {**reply.headers, **spent} | ({"etag": tag} if reply.status in (200, 304) else {})
        return Reply(reply.status, reply.body, headers), fault

    def _spend(self, token: str | None, resource: str) -> dict[str, str]:
        """Count a request against the primary limit and return its headers."""
        if self.limits is None:
            return {"x-ratelimit-used": ""}
        limit, now = self.limits[resource], self.now()
        end, used = self.used.get((token, resource), (0.0, 0))
        if now >= end:
            end, used = now + WINDOWS[resource], 0
        over = used >= limit
        self.used[token, resource] = (end, used + (not over))
        return {
            "x-ratelimit-limit": str(limit),
            "x-ratelimit-remaining": str(max(limit - used - 1, 0)),
            "x-ratelimit-used": "over" if over else str(used + 1),
            "x-ratelimit-reset": str(int(end)),
            "x-ratelimit-resource": resource,
        }

    def _search(self, query: Mapping[str, str]) -> Reply:
        self.n_searches += 1
        self.before_search(self.n_searches)
        page, size = int(query.get("page", "1")), min(int(query.get("per_page", "30")), 100)
        if (page - 1) * size >= 1_000:
            return error(422, TOO_WIDE)
        try:
            rows = self._matching(query["q"])
        except (InvalidQuery, ValueError) as problem:
            return error(422, f"Validation Failed: {problem}")
        key = {"stars": lambda row: row.stars, "updated": lambda row: row.updated}.get(query.get("sort", ""))
        rows.sort(key=lambda row: hashlib.md5(str(row.repo_id).encode()).digest())
        if key is not None:
            rows.sort(key=key, reverse=query.get("order", "desc") == "desc")
        incomplete = self.incomplete(self.n_searches, query)
        shown = [] if incomplete else rows[(page - 1) * size : min(page * size, 1_000)]
        body = {
            "total_count": len(rows) // (2 if incomplete else 1),
            "incomplete_results": incomplete,
            "items": [row.json(self.base) for row in shown],
        }
        last = -(-min(len(rows), 1_000) // size)
        links = [("next", page + 1), ("last", last)] if page < last else [("prev", page - 1), ("first", 1)]
        text = ", ".join(
            f'<{self.base}{PREFIX}/search/repositories?{urlencode({**query, "page": number})}>; rel="{rel}"'
            for rel, number in links
        )
        return Reply(200, json.dumps(body).encode(), {"link": text})

    def _matching(self, query: str) -> list[Repository]:
        """Return what a query has; `rows` is never changed in place, so that this can be kept."""
        if self.kept is None or self.kept[0] is not self.rows:
            self.kept = (self.rows, {})
        found = self.kept[1]
        if query not in found:
            found[query] = matching(self.rows, query)
        return list(found[query])

    def _repository(self, path: str) -> Reply:
        parts = path.strip("/").split("/")
        if parts[0] == "repositories":
            row = next((row for row in self.rows if str(row.repo_id) == parts[1]), None)
        else:
            name = "/".join(parts[1:])
            row = next((row for row in self.rows if row.name == name), None)
            renamed = next((row for row in self.rows if name in row.former_names), None)
            if row is None and renamed is not None:
                location = f"{self.base}{PREFIX}/repositories/{renamed.repo_id}"
                return Reply(301, json.dumps({"message": "Moved Permanently", "url": location}).encode(), {
                    "location": location
                })  # fmt: skip
        if row is None or row.gone == 404:
            return error(404, "Not Found")
        if row.gone or row.withheld:
            status = row.gone or row.withheld
            return error(status, "Not Found" if status == 404 else "Repository access blocked")
        return Reply(200, json.dumps(row.json(self.base)).encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 20  # headers and body in one piece: two would wait for each other's acknowledgement
    hub: Hub

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        if not parts.path.startswith(PREFIX):
            self._git(parts.path, parts.query)
            return
        path, query = parts.path.removeprefix(PREFIX), dict(parse_qsl(parts.query))
        token = self.headers.get("Authorization", "").removeprefix("token ").removeprefix("Bearer ") or None
        with self.hub.lock:
            reply, fault = self.hub.answer(path, query, token, self.headers.get("If-None-Match"))
            status = 0 if fault else reply.status
            self.hub.asked.append(Asked(path, query, token, status, self.headers.get("User-Agent", "")))
        self._send(reply, fault)

    def _send(self, reply: Reply, fault: str) -> None:
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        self.send_response_only(reply.status)
        date = {"date": formatdate(self.hub.now(), usegmt=True), "content-type": "application/json; charset=utf-8"}
        for name, text in {**date, **reply.headers, "content-length": str(len(reply.body))}.items():
            self.send_header(name, text)
        self.end_headers()
        if fault in ("truncated", "slow"):
            self.wfile.write(reply.body[: len(reply.body) // 2])
            self.wfile.flush()
            if fault == "slow":
                self.connection.recv(1)  # until the client has enough of it and goes
            self.close_connection = True
        else:
            self.wfile.write(reply.body)

    def _git(self, path: str, query: str) -> None:
        """Hand a request on to `git http-backend`."""
        hub = self.hub
        assert hub.root is not None
        with hub.lock:
            hub.before_git(path)
            fault = hub.rng.choice(GIT_FAULTS) if hub.rng.random() < hub.git_fault_rate else ""
            fault = next((fault for start, fault in hub.git_broken.items() if path.startswith(start)), fault)
            fault = hub.git_scripted.pop(0) if hub.git_scripted else fault
        status, sent = hand_on(self, hub.root, fault, partial=hub.partial)
        with hub.lock:
            hub.asked.append(Asked(path, dict(parse_qsl(query)), None, status))
            hub.git_bytes += sent

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: clients go away on purpose."""


@contextmanager
def serving(hub: Hub, certificate: tuple[Path, Path] | None = None) -> Iterator[str]:
    """Serve the hub on a free port of this machine; yields the address of the API."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    httpd = _Server(("localhost", hub.port), handler)
    hub.port = httpd.server_port
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    scheme = "http" if certificate is None else "https"
    hub.base = f"{scheme}://localhost:{httpd.server_port}"
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub.base + PREFIX
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def make_certificate(folder: Path) -> tuple[Path, Path] | None:
    """Return a certificate for localhost and its key, null without openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return None
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [openssl, *request, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    return certificate, key


def least_calls(counts: Sequence[int]) -> int:
    """Return the fewest requests that can bring so many repositories: full pages of 100."""
    return sum(-(-count // 100) for count in counts)
