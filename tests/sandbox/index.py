"""A package index on the loopback: wheels that tests make, and those of the running environment, with upload times.

It speaks the JSON of PEP 691 with the upload times of PEP 700, by which a resolver can be held to a date.
"""

import base64
import hashlib
import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution

JSON = "application/vnd.pypi.simple.v1+json"
# What pytest and setuptools are made of, here and on any machine that runs this suite.
INSTALLED = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "setuptools")
LONG_AGO = "2020-01-01T00:00:00Z"


def wheel(name: str, version: str, files: Mapping[str, str], requires: tuple[str, ...] = ()) -> tuple[str, bytes]:
    """Return a pure-Python wheel: its file name and contents."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {item}\n" for item in requires)
    whole = {
        **files,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    return f"{info.removesuffix('.dist-info')}-py3-none-any.whl", _zip(
        {path: text.encode() for path, text in whole.items()}, info
    )


def installed_wheel(name: str) -> tuple[str, bytes]:
    """Return an installed pure-Python package as a wheel again."""
    found = distribution(name)
    files = {}
    for file in found.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts and file.name not in ("RECORD", "INSTALLER"):
            files[str(file)] = file.read_binary()
    info = next(path for path in files if path.endswith(".dist-info/METADATA")).partition("/")[0]
    return f"{info.removesuffix('.dist-info')}-py3-none-any.whl", _zip(files, info)


def _zip(files: Mapping[str, bytes], info: str) -> bytes:
    """Return a wheel's archive with its RECORD."""
    buffer, record = io.BytesIO(), []
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]))
    return buffer.getvalue()


@dataclass
class Index:
    """What the server serves, and what it was asked for."""

    url: str = ""
    files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    """Contents and upload time by file name."""
    asked: list[str] = field(default_factory=list)
    """Paths of all requests."""

    def add(self, file: tuple[str, bytes], uploaded: str = LONG_AGO) -> None:
        self.files[file[0]] = (file[1], uploaded)

    def page(self, project: str) -> bytes | None:
        """Return a project's page; null when there is none."""
        files = [
            {
                "filename": name,
                "url": f"{self.url}/files/{name}",
                "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                "size": len(data),
                "upload-time": uploaded,
            }
            for name, (data, uploaded) in sorted(self.files.items())
            if re.sub(r"[-_.]+", "-", name.split("-")[0]).lower() == project
        ]
        page = {"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": files}
        return json.dumps(page).encode() if files else None


@contextmanager
def serve() -> Iterator[Index]:
    """Serve an index that holds the packages of the running environment, uploaded long ago."""
    index = Index()
    for name in INSTALLED:
        index.add(installed_wheel(name))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            index.asked.append(self.path)
            parts = self.path.strip("/").split("/")
            if parts[0] == "files" and parts[-1] in index.files:
                return self.answer(index.files[parts[-1]][0], "application/zip")
            page = index.page(parts[-1]) if parts[0] == "simple" else None
            return self.answer(page, JSON)

        do_HEAD = do_GET

        def answer(self, body: bytes | None, kind: str) -> None:
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Print nothing: resolvers close connections as they like."""

    with Server(("127.0.0.1", 0), Handler) as server:
        index.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
