"""The loopback Hub's HTTP interface: the calls that `huggingface_hub` and `datasets` send, with faults on request."""

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.hub.store import Blob, Commit, HubError, Repository, Store

_REPOSITORY = r"(?P<name>[^/]+/[^/]+)"
_PAGE = 7  # files of one page of a listing: small, so that small releases have several


@dataclass(frozen=True)
class Answer:
    value: object = None
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Fault:
    """What goes wrong with requests whose `METHOD path` matches."""

    pattern: str
    error: HubError | None = None
    """The answer; without one the connection is closed."""
    after: bool = False
    """Carry the request out first."""
    skip: int = 0
    """How many such requests pass before."""
    times: int = 1
    """How many fail."""
    action: Callable[[], None] = lambda: None
    """Called as the request arrives: changes what the Hub holds, or waits."""


@dataclass
class Hub:
    """A running loopback Hub."""

    store: Store
    url: str = ""
    requests: list[str] = field(default_factory=list)
    """`METHOD path` of all requests, in order."""
    faults: list[Fault] = field(default_factory=list)

    def writes(self) -> list[str]:
        """Return the requests that changed something or would have."""
        harmless = ("GET", "HEAD", "POST /api/validate-yaml")
        return [request for request in self.requests if not request.startswith(harmless)]

    def fault(self, request: str) -> Fault | None:
        for fault in self.faults:
            if re.search(fault.pattern, request):
                if fault.skip > 0:
                    fault.skip -= 1
                elif fault.times > 0:
                    fault.times -= 1
                    return fault
        return None


@contextmanager
def running_hub(xet: Path | None = None, port: int = 0) -> Iterator[Hub]:
    """Run a Hub on a loopback port; with `xet` it stores large files by Xet in that folder, else by LFS."""
    hub = Hub(Store(xet))
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Bound", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        request = f"{self.command} {unquote(parts.path)}"
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.hub.requests.append(request)
        fault = self.hub.fault(request)
        try:
            if fault is not None:
                fault.action()
                if fault.after:
                    self._answer(request, parts.query, body)
                if fault.error is None:
                    self.close_connection = True
                    return
                raise fault.error
            answer = self._answer(request, parts.query, body)
        except HubError as error:
            headers = {"X-Error-Message": error.message} | ({"X-Error-Code": error.code} if error.code else {})
            answer = Answer({"error": error.message}, status=error.status, headers=headers)
        self._send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

    def _send(self, answer: Answer) -> None:
        body = json.dumps(answer.value).encode() if answer.value is not None else answer.body
        self.send_response(answer.status)
        if answer.value is not None:
            self.send_header("Content-Type", "application/json")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _answer(self, request: str, query: str, body: bytes) -> Answer:
        for pattern, method in _ROUTES:
            if match := re.fullmatch(pattern, request):
                return method(_Call(self.hub, _token(self.headers), self.headers, query, body), **match.groupdict())
        raise HubError(404, f"no such call: {request}")


def _token(headers: Mapping[str, str]) -> str | None:
    return (headers.get("Authorization") or "").removeprefix("Bearer ") or None


@dataclass(frozen=True)
class _Call:
    hub: Hub
    token: str | None
    headers: Mapping[str, str]
    query: str
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - what a client sends
        return json.loads(self.body)

    def repository(self, name: str, *, write: bool = False) -> Repository:
        return self.hub.store.get(name, self.token, write=write)


def _create(call: _Call) -> Answer:
    asked = call.json()
    name = f"{asked['organization']}/{asked['name']}"
    call.hub.store.create(name, asked.get("visibility") == "private" or asked.get("private") is True, call.token)
    return Answer({"url": f"{call.hub.url}/datasets/{name}"})


def _validate_yaml(call: _Call) -> Answer:
    try:
        block = call.json()["content"].split("---\n", 2)[1]
        errors = [] if isinstance(yaml.safe_load(block), dict) else [{"message": "no metadata"}]
    except (IndexError, yaml.YAMLError) as error:
        errors = [{"message": str(error)}]
    return Answer({"errors": errors, "warnings": []}, status=400 if errors else 200)


def _info(call: _Call, name: str, revision: str = "main") -> Answer:
    repository = call.repository(name)
    commit = repository.find(revision)
    siblings = [{"rfilename": path} for path in sorted(commit.files)]
    return Answer(
        {"id": name, "sha": commit.oid, "private": repository.private, "tags": [], "downloads": 0, "likes": 0,
         "siblings": siblings, "gated": False, "disabled": False}
    )  # fmt: skip


def _refs(call: _Call, name: str) -> Answer:
    repository = call.repository(name)

    def refs(kind: str, names: Mapping[str, str]) -> list[dict[str, str]]:
        return [{"name": ref, "ref": f"refs/{kind}/{ref}", "targetCommit": oid} for ref, oid in names.items()]

    return Answer(
        {"branches": refs("heads", repository.branches), "tags": refs("tags", repository.tags), "converts": []}
    )


def _item(call: _Call, path: str, blob: Blob) -> dict[str, object]:
    item: dict[str, object] = {"type": "file", "path": path, "size": blob.size, "oid": blob.oid}
    if blob.sha256 is not None:
        item["lfs"] = {"oid": blob.sha256, "size": blob.size, "pointerSize": 134}
        if xet := call.hub.store.xet_hashes().get(blob.sha256):
            item["xetHash"] = xet
    return item


def _tree(call: _Call, name: str, revision: str, folder: str = "") -> Answer:
    """Return a page of a listing, files below `folder` alone."""
    commit = call.repository(name).find(revision)
    asked = parse_qs(call.query)
    start = int(asked.get("cursor", ["0"])[0])
    files = [(path, blob) for path, blob in sorted(commit.files.items()) if path.startswith(folder)]
    items: list[dict[str, object]] = [_item(call, path, blob) for path, blob in files]
    if asked.get("recursive", ["False"])[0].lower() not in ("true", "1"):
        prefix = f"{folder}/" if folder else ""
        inner = [str(item["path"]).removeprefix(prefix) for item in items]
        folders = sorted({prefix + path.split("/")[0] for path in inner if "/" in path})
        items = [item for item, path in zip(items, inner, strict=True) if "/" not in path]
        items += [{"type": "directory", "path": path, "size": 0, "oid": "0" * 40} for path in folders]
    if folder and not items:
        raise HubError(404, f"{folder} does not exist", "EntryNotFound")
    headers = {}
    if start + _PAGE < len(items):
        asked["cursor"] = [str(start + _PAGE)]
        query = "&".join(f"{key}={values[0]}" for key, values in asked.items())
        headers["Link"] = f'<{call.hub.url}/api/datasets/{name}/tree/{revision}?{query}>; rel="next"'
    return Answer(items[start : start + _PAGE], headers=headers)


def _paths_info(call: _Call, name: str, revision: str) -> Answer:
    commit = call.repository(name).find(revision)
    paths = parse_qs(call.body.decode()).get("paths", [])
    return Answer([_item(call, path, commit.files[path]) for path in paths if path in commit.files])


def _preupload(call: _Call, name: str, revision: str) -> Answer:
    files = call.repository(name, write=True).find(revision).files
    answers = []
    for item in call.json()["files"]:
        path = item["path"]
        oid = files[path].oid if path in files and files[path].sha256 is None else None
        mode = "lfs" if path.endswith(".parquet") else "regular"
        answers.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
    return Answer({"files": answers})


def _lfs_batch(call: _Call, name: str) -> Answer:
    repository = call.repository(name, write=True)
    if call.hub.store.xet is not None and "xet" in call.json()["transfers"]:  # older clients ask here which way to take
        return Answer({"transfer": "xet", "objects": call.json()["objects"]})
    objects = []
    for item in call.json()["objects"]:
        if item["oid"] not in repository.objects:
            href = f"{call.hub.url}/lfs/{name}/{item['oid']}"
            item["actions"] = {"upload": {"href": href}, "verify": {"href": f"{href}/verify"}}
        objects.append(item)
    return Answer({"transfer": "basic", "objects": objects})


def _lfs_put(call: _Call, name: str, sha256: str) -> Answer:
    if hashlib.sha256(call.body).hexdigest() != sha256:
        raise HubError(400, "the content does not match its hash")
    call.hub.store.repositories[name].objects[sha256] = call.body
    return Answer(body=b"")


def _lfs_verify(call: _Call, name: str, sha256: str) -> Answer:
    if sha256 not in call.repository(name, write=True).objects:
        raise HubError(404, "no such object")
    return Answer({})


def _xet_token(call: _Call, name: str, kind: str, revision: str) -> Answer:
    call.repository(name, write=kind == "write").find(revision)
    expires, place = int(time.time()) + 3_600, f"local://{call.hub.store.xet}"
    headers = {"X-Xet-Cas-Url": place, "X-Xet-Access-Token": "xet", "X-Xet-Token-Expiration": str(expires)}
    return Answer({"accessToken": "xet", "exp": expires, "casUrl": place}, headers=headers)


def _commit(call: _Call, name: str, revision: str) -> Answer:
    """Carry out the lines of a commit, all or none."""
    repository = call.repository(name, write=True)
    header, *lines = [json.loads(line) for line in call.body.splitlines()]
    parent = repository.find(revision)
    if header["value"].get("parentCommit") not in (None, parent.oid):
        raise HubError(412, "A commit has happened since. Please refresh and try again.")
    files = dict(parent.files)
    for line in lines:
        value = line["value"]
        if line["key"] == "file":
            content = base64.b64decode(value["content"])
            files[value["path"]] = Blob(len(content), content)
        elif line["key"] == "lfsFile":
            if not call.hub.store.holds(repository, value["oid"]):
                raise HubError(400, f"the object of {value['path']} was not uploaded")
            files[value["path"]] = Blob(value["size"], sha256=value["oid"])
        elif files.pop(value["path"], None) is None:
            raise HubError(404, f"A file with this name doesn't exist: {value['path']}", "EntryNotFound")
    made = repository.commit(revision, header["value"]["summary"], files)
    url = f"{call.hub.url}/datasets/{name}/commit/{made.oid}"
    return Answer({"success": True, "commitOid": made.oid, "commitUrl": url, "hookOutput": ""})


def _tag(call: _Call, name: str, revision: str) -> Answer:
    repository = call.repository(name, write=True)
    tag = call.json()["tag"]
    if tag in repository.tags:
        raise HubError(409, f"Tag reference exists already: {tag}")
    repository.tags[tag] = repository.find(revision).oid
    return Answer(body=b"")


def _untag(call: _Call, name: str, revision: str) -> Answer:
    if call.repository(name, write=True).tags.pop(revision, None) is None:
        raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
    return Answer(body=b"")


def _lfs_files(call: _Call, name: str) -> Answer:
    """List what is in large-file storage; `oid` is not `fileOid`, which deletion asks for."""
    repository = call.repository(name, write=True)
    blobs = {
        blob.sha256: (path, blob)
        for commit in repository.commits.values()
        for path, blob in commit.files.items()
        if blob.sha256 is not None and blob.sha256 not in repository.gone
    }
    return Answer(
        [{"fileOid": sha256, "filename": path, "oid": "x" + sha256[1:], "pushedAt": "2026-01-01T00:00:00.000Z",
          "size": blob.size} for sha256, (path, blob) in blobs.items()]
    )  # fmt: skip


def _delete_lfs(call: _Call, name: str) -> Answer:
    repository = call.repository(name, write=True)
    for sha256 in call.json()["deletions"]["sha"]:
        repository.objects.pop(sha256, None)
        repository.gone.add(sha256)
    return Answer({})


def _resolve(call: _Call, name: str, revision: str, path: str) -> Answer:
    repository = call.repository(name)
    commit: Commit = repository.find(revision)
    blob = commit.files.get(path)
    if blob is None or blob.sha256 in repository.gone:
        raise HubError(404, "Entry not found", "EntryNotFound")
    headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{blob.sha256 or blob.oid}"', "Accept-Ranges": "bytes",
               "X-Linked-Size": str(blob.size)}  # fmt: skip
    content = blob.content if blob.sha256 is None else repository.objects.get(blob.sha256)
    if content is None:  # in Xet, whose clients fetch it from there
        route = f"{call.hub.url}/api/datasets/{name}/xet-read-token/{commit.oid}"
        xet = {"X-Xet-Hash": call.hub.store.xet_hashes()[str(blob.sha256)], "X-Xet-Refresh-Route": route}
        return Answer(headers={**headers, **xet, "Content-Length": str(blob.size)})
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("Range") or "")
    if asked is None:
        return Answer(body=content, headers={**headers, "Content-Length": str(len(content))})
    first, last = int(asked[1]), min(int(asked[2] or blob.size), blob.size - 1)
    headers["Content-Range"] = f"bytes {first}-{last}/{blob.size}"
    return Answer(body=content[first : last + 1], status=206, headers=headers)


_API = rf"/api/datasets/{_REPOSITORY}"
_LFS = rf"/lfs/{_REPOSITORY}/(?P<sha256>[0-9a-f]+)"
_ROUTES: tuple[tuple[str, Callable[..., Answer]], ...] = (
    ("POST /api/repos/create", _create),
    ("POST /api/validate-yaml", _validate_yaml),
    (f"GET {_API}", _info),
    (rf"GET {_API}/revision/(?P<revision>.+)", _info),
    (f"GET {_API}/refs", _refs),
    (rf"GET {_API}/tree/(?P<revision>[^/]+)", _tree),
    (rf"GET {_API}/tree/(?P<revision>[^/]+)/(?P<folder>.+)", _tree),
    (rf"POST {_API}/paths-info/(?P<revision>.+)", _paths_info),
    (rf"POST {_API}/preupload/(?P<revision>.+)", _preupload),
    (rf"POST {_API}/commit/(?P<revision>.+)", _commit),
    (rf"POST {_API}/tag/(?P<revision>.+)", _tag),
    (rf"DELETE {_API}/tag/(?P<revision>.+)", _untag),
    (f"GET {_API}/lfs-files", _lfs_files),
    (f"POST {_API}/lfs-files/batch", _delete_lfs),
    (rf"GET {_API}/xet-(?P<kind>read|write)-token/(?P<revision>.+)", _xet_token),
    (rf"POST /datasets/{_REPOSITORY}\.git/info/lfs/objects/batch", _lfs_batch),
    (f"PUT {_LFS}", _lfs_put),
    (f"POST {_LFS}/verify", _lfs_verify),
    (rf"(?:GET|HEAD) /datasets/{_REPOSITORY}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", _resolve),
)
