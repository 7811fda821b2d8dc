import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from miners.clone import Place, identify, open_clone
from miners.git_answers import Pauses
from miners.git_process import run_git
from schemas.config import SourceConfig
from schemas.errors import ConfigError, TransientError
from tests.builders import RepoBuilder, git
from tests.github.server import FakeClock
from tests.miners.places import repos

__all__ = ["repos"]  # fixtures


@dataclass
class Server:
    """A loopback https server for the folders below `root`, with odd answers for some paths."""

    url: str
    root: Path
    statuses: dict[str, int]

    def place(self, path: str) -> Place:
        location = f"{self.url}/{path}"
        return identify(SourceConfig(git=(location,)), location, Path("/"))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate of the loopback server")
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    root, key, certificate = tmp_path / "www", tmp_path / "key.pem", tmp_path / "certificate.pem"
    root.mkdir()
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *request, *names, *files], check=True, capture_output=True)
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
    monkeypatch.setattr("miners.remote.PAUSES", (0.0,))
    statuses: dict[str, int] = {}

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            status = next((value for prefix, value in statuses.items() if self.path.startswith(prefix)), None)
            if status is None:
                super().do_GET()
            else:
                self.send_response(status)
                if status in (301, 302):
                    self.send_header("Location", f"http://localhost:{self.server.server_port}{self.path}")  # type: ignore[attr-defined] # a TCP server has a port
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    httpd = ThreadingHTTPServer(("localhost", 0), partial(Handler, directory=str(root)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield Server(f"https://localhost:{httpd.server_port}", root, statuses)
    httpd.shutdown()
    httpd.server_close()
    thread.join()


class TestHttps:
    def published(self, server: Server) -> RepoBuilder:
        repo = RepoBuilder(server.root / "owner" / "name.git")
        repo.commit({"a.py": b"1"})
        git(repo.git_dir, "update-server-info")
        return repo

    def test_clone_and_fetch(self, server: Server, repos: Path) -> None:
        repo = self.published(server)
        place = server.place("owner/name.git")
        record = open_clone(place, repos).record
        assert (record.repo, record.host, record.default_branch, record.n_commits) == (
            "owner/name",
            server.url.removeprefix("https://"),
            "main",
            1,
        )
        assert record.web_url == f"{server.url}/owner/name"
        head = repo.commit({"a.py": b"2"})
        git(repo.git_dir, "update-server-info")
        record = open_clone(place, repos).record
        assert (record.head, record.n_commits) == (head, 2)

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_a_refusal_asks_the_user(self, server: Server, repos: Path, status: int) -> None:
        server.statuses["/owner"] = status
        with pytest.raises(ConfigError, match="does not exist, is private or is refused"):
            open_clone(server.place("owner/name"), repos)

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_trouble_of_the_server_is_worth_a_retry(
        self, server: Server, repos: Path, status: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = FakeClock()
        monkeypatch.setattr("miners.git_answers.HOSTS", Pauses(clock.now, clock.sleep, lambda text: None))
        server.statuses["/owner"] = status
        with pytest.raises(TransientError, match=str(status)):
            open_clone(server.place("owner/name"), repos)
        assert clock.slept == ([60, 120, 240, 480, 900, 900, 900] if status == 429 else [])  # an hour at the most

    def test_a_fetch_that_fails_keeps_the_clone(self, server: Server, repos: Path) -> None:
        self.published(server)
        place = server.place("owner/name.git")
        head = open_clone(place, repos).record.head
        server.statuses["/owner"] = 503
        with pytest.raises(TransientError):
            open_clone(place, repos)
        assert run_git(place.git_dir(repos), "rev-parse", "HEAD").decode().strip() == head

    def test_the_lock_of_a_killed_git_blocks_nothing(self, server: Server, repos: Path) -> None:
        repo = self.published(server)
        place = server.place("owner/name.git")
        clone = open_clone(place, repos)
        (clone.git_dir / "refs" / "heads").mkdir(parents=True, exist_ok=True)
        (clone.git_dir / "refs" / "heads" / "main.lock").write_bytes(b"")
        head = repo.commit({"a.py": b"2"})
        git(repo.git_dir, "update-server-info")
        assert open_clone(place, repos).record.head == head

    def test_a_redirect_away_from_https_is_not_followed(self, server: Server, repos: Path) -> None:
        server.statuses["/owner"] = 301
        with pytest.raises((ConfigError, TransientError), match=r"[Pp]rotocol|redirect|not allowed"):
            open_clone(server.place("owner/name"), repos)

    def test_an_unknown_certificate_asks_the_user(
        self, server: Server, repos: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("GIT_SSL_CAINFO")
        with pytest.raises(ConfigError, match="certificate"):
            open_clone(server.place("owner/name"), repos)

    def test_a_server_that_does_not_answer_is_worth_a_retry(self, repos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("miners.remote.PAUSES", (0.0,))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
            url = f"https://127.0.0.1:{taken.getsockname()[1]}/owner/name"
            place = identify(SourceConfig(git=(url,)), url, Path("/"))
            with pytest.raises(TransientError, match="owner/name"):
                open_clone(place, repos)
        assert not place.git_dir(repos).exists()
