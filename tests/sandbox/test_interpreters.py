"""Which interpreters there are and in which order they are tried."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox import interpreters
from sandbox.interpreters import Interpreter, admits, choose, find_interpreters, probe
from sandbox.protocol import Bind
from schemas.errors import ConfigError


def python(*version: int, home: str = "/opt/python") -> Interpreter:
    major, minor, patch = version
    return Interpreter((major, minor, patch), Path(f"{home}-{major}.{minor}.{patch}"))


ALL = [python(3, minor, 1) for minor in range(9, 15)]


@pytest.mark.parametrize(
    ("requires", "date", "order"),
    [
        # 3.12 came out on 2023-10-02: 365 days later it is settled.
        ("", "2024-09-30", [11, 12, 10, 9, 13, 14]),
        ("", "2024-10-01", [12, 11, 10, 9, 13, 14]),
        (">=3.10", "2024-09-30", [11, 12, 10, 13, 14]),
        (">=3.12", "2024-10-01", [12, 13, 14]),
        ("<3.12,>=3.9", "2026-06-01", [11, 10, 9]),
        (">=3.13", "2024-01-01", [13, 14]),
        (">=3.9", "2026-11-01", [14, 13, 12, 11, 10, 9]),
        ("~=3.10", "2025-01-01", [12, 13, 11, 10, 14]),
        ("not a specifier", "2026-06-01", [13, 14, 12, 11, 10, 9]),
        (">=3.15", "2026-06-01", []),
        ("", "2019-01-01", [9, 10, 11, 12, 13, 14]),
    ],
)
def test_the_newest_settled_one_comes_first_and_then_its_neighbours(requires: str, date: str, order: list[int]) -> None:
    chosen = choose(ALL, requires, datetime.fromisoformat(date).replace(tzinfo=UTC))
    assert [item.version for item in chosen] == [(3, minor, 1) for minor in order]


def test_of_several_patch_releases_the_newest_is_taken() -> None:
    found = [python(3, 11, 2), python(3, 11, 9), python(3, 11, 7), python(2, 7, 18), python(3, 20, 0)]
    assert choose(found, "", datetime(2025, 1, 1, tzinfo=UTC)) == [python(3, 11, 9)]


def test_specifiers_with_patch_releases_are_obeyed() -> None:
    assert admits(">=3.9.2", (3, 9, 18))
    assert not admits(">=3.9.2", (3, 9, 1))
    assert not admits("!=3.9.*", (3, 9, 1))


def test_the_interpreter_of_the_tests_is_found_and_has_a_constant_path_inside() -> None:
    found = [item for item in find_interpreters() if item.home == Path(sys.base_prefix).resolve()]
    assert [item.version for item in found] == [sys.version_info[:3]]
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if str(found[0].home) in ("/usr", "/usr/local"):
        assert (found[0].inside, found[0].binds) == (f"{found[0].home}/bin/{name}", ())
    else:
        assert found[0].inside == f"/w/python/bin/{name}"
        assert found[0].binds[0] == Bind(found[0].home, "/w/python")


def test_a_shared_library_is_bound_where_the_executable_looks_for_it() -> None:
    library = Path("/opt/py/lib/libpython3.12.so.1.0")
    assert Interpreter((3, 12, 1), Path("/opt/py"), library).binds == (
        Bind(Path("/opt/py"), "/w/python"),
        Bind(library, "/opt/py/lib/libpython3.12.so.1.0"),
    )
    assert Interpreter((3, 12, 1), Path("/usr"), library).binds == ()
    assert Interpreter((3, 12, 1), Path("/opt/py"), of_image=True).inside == "/opt/py/bin/python3.12"


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_candidates_that_do_not_run_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    executable(tmp_path / "bin/python3.12", "#!/bin/sh\necho 'no such version' >&2\nexit 127\n")
    executable(tmp_path / "bin/python3.13", "#!/bin/sh\necho nonsense\n")
    executable(tmp_path / "bin/python3.10", "#!/nonexistent/interpreter\n")
    executable(tmp_path / "bin/python3.9", '#!/bin/sh\necho \'["pypy", [3, 9, 1], "/usr", [0, "", ""]]\'\n')
    executable(tmp_path / "bin/python3.99", "#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/python3.14").write_text("not executable")
    link = tmp_path / "bin" / "python3.11"
    link.symlink_to(real)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("HOME", "XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR", "PYENV_ROOT"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr(interpreters, "_SYSTEM", (str(tmp_path / "none"),))
    interpreters._search.cache_clear()
    try:
        assert [(item.version, item.home) for item in find_interpreters()] == [
            (sys.version_info[:3], Path(sys.base_prefix).resolve())
        ]
    finally:
        interpreters._search.cache_clear()


def test_managed_and_pyenv_interpreters_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [
        executable(tmp_path / "uv/cpython-3.12.3/bin/python3.12", "x"),
        executable(tmp_path / "pyenv/versions/3.10.1/bin/python3.10", "x"),
        executable(tmp_path / "path/python3.13", "x"),
    ]
    executable(tmp_path / "path/python3", "x")
    executable(tmp_path / "path/python3.13-config", "x")
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", f"relative{os.pathsep}{tmp_path / 'path'}")
    monkeypatch.setattr(interpreters, "_SYSTEM", ())
    assert list(interpreters._candidates()) == expected


def test_configured_interpreters_come_instead_of_the_search() -> None:
    own = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    version = ".".join(str(number) for number in sys.version_info[:3])
    assert find_interpreters((str(own),)) == [probe(own)]
    assert sys.version_info[:3] in [item.version for item in find_interpreters((version,))]
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert {item.minor for item in find_interpreters((minor,))} == {sys.version_info[:2]}
    with pytest.raises(ConfigError, match=r"no Python 3\.1 that runs was found; found: "):
        find_interpreters(("3.1",))
    with pytest.raises(ConfigError, match="/nonexistent/python does not run as a CPython"):
        find_interpreters(("/nonexistent/python",))
