"""`postquem doctor` on this machine, whatever it can do."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows import doctor
from flows.cli import cli
from flows.doctor import Diagnosis
from sandbox.protocol import Capabilities
from schemas.errors import ConfigError
from schemas.execution import BackendName, RealCodeConfig

PROMISES = {"network", "memory", "pids", "cpu", "wall", "read_only", "environment", "disk"}


def found(backend: str, usable: bool, missing: Mapping[str, str] | None = None) -> Capabilities:
    return Capabilities(
        backend=backend, usable=usable, version="1.2", enforced=("wall",) if usable else (), missing=missing or {},
        cgroup="v2" if usable else "none", start_seconds=0.025,
    )  # fmt: skip


def test_every_promise_is_kept_or_its_absence_explained() -> None:
    diagnosis = doctor.diagnose(RealCodeConfig())
    assert [backend.backend for backend in diagnosis.backends] == ["bubblewrap", "docker", "unsafe-local"]
    for backend in diagnosis.backends:
        if backend.usable:
            assert set(backend.enforced) | set(backend.missing) >= PROMISES
            assert not set(backend.enforced) & set(backend.missing)
            assert backend.start_seconds > 0
        else:
            assert backend.missing["usable"]
        assert all(backend.missing.values())
    assert diagnosis.programs["git"]
    assert diagnosis.programs["uv"]
    assert diagnosis.interpreters
    assert all(Path(home).is_dir() for home in diagnosis.interpreters.values())


def test_an_interpreter_that_is_asked_for_and_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "BackendName", ())
    diagnosis = doctor.diagnose(RealCodeConfig(pythons=("2.7",)))
    assert (diagnosis.backends, diagnosis.interpreters) == ((), {})
    assert "no Python 2.7 that runs was found" in diagnosis.advice


def test_unsafe_local_says_what_it_is() -> None:
    unsafe = doctor.diagnose(RealCodeConfig()).backends[2]
    assert (unsafe.usable, unsafe.isolation) == (True, "unsafe-local")
    assert {"network", "read_only", "disk", "host"} <= set(unsafe.missing)
    assert {"wall", "environment"} <= set(unsafe.enforced)


@pytest.mark.parametrize(("usable", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_tells_whether_a_safe_backend_is_there(
    monkeypatch: pytest.MonkeyPatch, usable: bool, code: int
) -> None:
    backends = (
        found("bubblewrap", usable),
        found("docker", False, {"usable": "no engine"}),
        found("unsafe-local", True),
    )
    monkeypatch.setattr(
        doctor,
        "diagnose",
        lambda config: Diagnosis(backends, {"git": "2.0", "uv": ""}, {"3.9.1": "/a", "3.12.0": "/b"}),
    )
    result = CliRunner().invoke(cli, ["doctor", "--json"])
    assert (result.exit_code, json.loads(result.stdout)["safe"]) == (code, usable)
    result = CliRunner().invoke(cli, ["doctor"])
    assert result.exit_code == code
    assert "docker: no engine\n" in result.stdout
    assert "uv: not found\ninterpreters for environments: 3.9.1, 3.12.0\n" in result.stdout


def test_json_has_the_documented_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"cpu": "no share"}
    diagnosis = Diagnosis((found("bubblewrap", True, missing),), {"git": "2.39.5"}, {"3.12.1": "/opt/python"})
    monkeypatch.setattr(doctor, "diagnose", lambda config: diagnosis)
    assert json.loads(CliRunner().invoke(cli, ["doctor", "--json"]).stdout) == {
        "safe": True,
        "backends": [
            {
                "backend": "bubblewrap", "usable": True, "version": "1.2", "enforced": ["wall"], "missing": missing,
                "cgroup": "v2", "start_seconds": 0.025, "isolation": "bubblewrap+cgroup-v2",
            }
        ],
        "programs": {"git": "2.39.5"},
        "interpreters": {"3.12.1": "/opt/python"},
        "advice": "",
    }  # fmt: skip


def test_a_backend_that_cannot_be_had_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: BackendName, image: str) -> None:
        raise ConfigError(f"install {name.value}")

    monkeypatch.setattr(doctor, "make_backend", refuse)
    diagnosis = doctor.diagnose(RealCodeConfig())
    assert [backend.missing for backend in diagnosis.backends] == [
        {"usable": "install bubblewrap"}, {"usable": "install docker"}, {"usable": "install unsafe-local"},
    ]  # fmt: skip
    assert not diagnosis.safe


def test_the_program_ends_with_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
from flows import doctor
from flows.cli import main
import sys
doctor.diagnose = lambda config: doctor.Diagnosis((), {}, {})
sys.argv = ["postquem", "doctor", "--json"]
main()
"""
    result = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=False)
    assert (result.returncode, json.loads(result.stdout)) == (
        1,
        {"safe": False, "backends": [], "programs": {}, "interpreters": {}, "advice": ""},
    )


def test_a_program_that_is_not_there_has_no_version() -> None:
    assert doctor.version_of("no-such-program") == ""
    assert doctor.version_of("git")[0].isdecimal()
