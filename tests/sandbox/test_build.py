"""Environments built for real: inside bubblewrap, from an index on the loopback."""

import hashlib
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.backends import open_backend
from sandbox.build import build_environment, rebuild_environment
from sandbox.environment import BuiltEnvironment, SourceCommit
from sandbox.protocol import Backend, Limits, SandboxSpec
from sandbox.uv import Workbench
from schemas.errors import DataError, TransientError
from schemas.execution import BackendName, RealCodeConfig
from tests.sandbox.index import Index, serve, wheel
from tests.sandbox.trees import write_tree

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

OWN = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
HEADER = Path(sys.base_prefix) / "include" / Path(OWN).name / "Python.h"
CONFIG = RealCodeConfig(pythons=(OWN,), build_seconds=300)
DATE = datetime(2024, 3, 1, 23, 30, tzinfo=UTC)
SETUPTOOLS = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
PASSING = "from pkg import value\n\ndef test_value():\n    assert value() == 1\n"
PACKAGE = "def value():\n    return 1\n"


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with serve() as served:
        served.add(wheel("dated", "1.0", {"dated.py": "VERSION = '1.0'\n"}), "2023-05-01T00:00:00Z")
        served.add(wheel("dated", "2.0", {"dated.py": "VERSION = '2.0'\n"}), "2024-03-01T23:59:59Z")
        served.add(wheel("dated", "3.0", {"dated.py": "VERSION = '3.0'\n"}), "2024-03-02T00:00:00Z")
        served.add(wheel("tests-need", "1.0", {"tests_need.py": ""}))
        served.add(wheel("PyYAML", "6.0", {"yaml.py": ""}))
        served.add(("only_source-1.0.tar.gz", b"not opened"))
        yield served


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environments")


@pytest.fixture(scope="module")
def backend() -> Backend:
    return open_backend(CONFIG)


@dataclass
class Builder:
    """Builds trees, with the folders and the index of these tests."""

    root: Path
    store: Path
    backend: Backend

    def commit(self, files: Mapping[str, str | bytes]) -> tuple[Path, SourceCommit]:
        """Write a tree; its commit is named by its contents."""
        name = hashlib.sha1(repr(sorted(files.items())).encode(), usedforsecurity=False).hexdigest()
        tree = self.root / name
        return (tree if tree.exists() else write_tree(tree, files)), SourceCommit("example/tree", name, DATE)

    def __call__(self, files: Mapping[str, str | bytes], config: RealCodeConfig = CONFIG) -> BuiltEnvironment:
        tree, at = self.commit(files)
        return build_environment(tree, at, self.backend, config, self.store)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out writing byte code: a third of a build, and the same every time."""
    monkeypatch.setattr(Workbench, "compile", lambda _: None)


@pytest.fixture
def build(tmp_path: Path, store: Path, backend: Backend, index: Index, monkeypatch: pytest.MonkeyPatch) -> Builder:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
    for name in ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    return Builder(tmp_path, store, backend)


def run(builder: Builder, built: BuiltEnvironment, code: str, files: Mapping[str, bytes] | None = None) -> str:
    """Run Python code in a built environment; return what it prints, or its errors."""
    spec = SandboxSpec(built.source, built.binds, built.env, Limits(wall_seconds=60))
    with builder.backend.open(spec) as session:
        result = session.exec((built.python, "-c", code), files=files)
    return (result.stdout + result.stderr).decode()


def pinned(built: BuiltEnvironment) -> list[str]:
    """Return the packages of a lock; pytest's own and setuptools left out, whose versions are this machine's."""
    ours = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "setuptools")
    lines = [line.removesuffix(" \\") for line in built.environment.lock.splitlines() if not line.startswith(" ")]
    return [line for line in lines if line.partition("==")[0] not in ours]


SRC = {
    "pyproject.toml": SETUPTOOLS
    + """\
[project]
name = "pkg"
version = "1.2"
dependencies = ["dated"]
[project.scripts]
pkg-command = "pkg:value"
[project.optional-dependencies]
test = ["tests-need"]
""",
    "src/pkg/__init__.py": PACKAGE,
    "tests/test_value.py": "import tests_need\n" + PASSING,
}


def test_a_src_layout_is_built_as_of_its_date_and_runs_its_tree(build: Builder, index: Index) -> None:
    built = build(SRC)
    environment = built.environment
    assert built.collected == ("tests/test_value.py::test_value",)
    assert pinned(built) == ["dated==2.0", "tests-need==1.0"]
    assert f"sha256:{hashlib.sha256(index.files['dated-2.0-py3-none-any.whl'][0]).hexdigest()}" in environment.lock
    assert index.url not in environment.lock
    assert environment.lock.count("--hash=sha256:") >= environment.lock.count("==")
    assert replace(environment, lock="", isolation="") == replace(
        environment,
        python=".".join(str(number) for number in sys.version_info[:3]),
        lock="",
        index_date="2024-03-02T00:00:00Z",
        requirements=(
            "setuptools (build-system)", "dated (project)", "pytest (always)", "tests-need (extra: test)",
        ),
        guessed=(), left_out=(), install="editable", python_path=(), pretended_version="",
        pytest_args=("-p", "no:cacheprovider"), isolation="",
    )  # fmt: skip
    assert environment.isolation.startswith("bubblewrap+")
    assert [stage.name.partition(": ")[2] for stage in built.stages] == [
        "lock", "install", "build", "install project", "collect", "compile",
    ]  # fmt: skip
    show = "import pkg, sys, shutil; print(pkg.__file__, pkg.value(), sys.prefix, shutil.which('pkg-command'))"
    assert run(build, built, show) == "/w/src/src/pkg/__init__.py 1 /w/env /w/env/bin/pkg-command\n"
    changed = {"/w/src/src/pkg/__init__.py": b"def value():\n    return 2\n"}
    assert run(build, built, "import pkg; print(pkg.value())", changed) == "2\n"
    assert (built.source / "src/pkg/__init__.py").read_text() == PACKAGE


def test_the_second_build_is_free_and_asks_nobody(build: Builder, index: Index) -> None:
    first = build(SRC)
    asked = len(index.asked)
    second = build(SRC)
    assert (second, second.stages, len(index.asked)) == (first, (), asked)


@pytest.mark.usefixtures("quick")
def test_without_a_cut_the_newest_is_taken(build: Builder) -> None:
    built = build(SRC, replace(CONFIG, index_cut=False))
    assert (pinned(built), built.environment.index_date) == (["dated==3.0", "tests-need==1.0"], "")


@pytest.mark.usefixtures("quick")
def test_an_environment_is_built_again_from_its_lock_alone(build: Builder, tmp_path: Path, index: Index) -> None:
    built = build(SRC)
    tree, at = build.commit(SRC)
    index.add(wheel("dated", "2.5", {"dated.py": ""}), "2024-01-01T00:00:00Z")
    try:
        again = rebuild_environment(built.environment, tree, at, build.backend, CONFIG, tmp_path / "empty")
    finally:
        del index.files["dated-2.5-py3-none-any.whl"]
    assert (again.environment, again.collected) == (built.environment, built.collected)
    assert run(build, again, "import dated; print(dated.VERSION)") == "2.0\n"
    other = replace(built.environment, python="3.1.0")
    with pytest.raises(DataError, match=r"^no_interpreter: Python 3\.1\.0 is not there"):
        rebuild_environment(other, tree, at, build.backend, CONFIG, tmp_path / "empty")


@pytest.mark.usefixtures("quick")
def test_a_lock_whose_hashes_do_not_fit_is_refused(build: Builder, tmp_path: Path) -> None:
    built = build(SRC)
    tree, at = build.commit(SRC)
    forged = replace(built.environment, lock=built.environment.lock.replace("sha256:", "sha256:0")[:0] + _forge(built))
    with pytest.raises(TransientError, match="Hash mismatch"):
        rebuild_environment(forged, tree, at, build.backend, CONFIG, tmp_path / "empty")


def _forge(built: BuiltEnvironment) -> str:
    """Return a lock with another hash for each package."""
    lines = built.environment.lock.splitlines(keepends=True)
    return "".join(line[: line.index("sha256:") + 7] + "0" * 64 + line[line.index("sha256:") + 71 :]
                   if "sha256:" in line else line for line in lines)  # fmt: skip


@pytest.mark.usefixtures("quick")
def test_a_flat_layout_without_build_system(build: Builder) -> None:
    built = build(
        {"pyproject.toml": '[project]\nname = "pkg"\nversion = "1"\n', "pkg/__init__.py": PACKAGE, "test_a.py": PASSING}
    )
    assert (built.collected, built.environment.install) == (("test_a.py::test_value",), "editable")
    assert run(build, built, "import pkg; print(pkg.__file__)") == "/w/src/pkg/__init__.py\n"


@pytest.mark.usefixtures("quick")
def test_a_namespace_package_runs_its_tree(build: Builder) -> None:
    text = SETUPTOOLS + '[project]\nname = "spaced"\nversion = "1"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    built = build(
        {
            "pyproject.toml": text,
            "src/space/inner/__init__.py": PACKAGE,
            "tests/test_a.py": PASSING.replace("from pkg", "from space.inner"),
        }
    )
    assert built.collected == ("tests/test_a.py::test_value",)
    assert (
        run(build, built, "import space.inner; print(space.inner.__file__)") == "/w/src/src/space/inner/__init__.py\n"
    )


@pytest.mark.usefixtures("quick")
def test_a_setup_py_tells_its_requirements_in_the_sandbox(build: Builder, tmp_path: Path) -> None:
    setup = f"""\
        import os, socket
        from setuptools import setup
        open({str(tmp_path / "written")!r}, "w").close() if os.path.exists({str(tmp_path)!r}) else None
        try:
            socket.create_connection(("127.0.0.1", 9), timeout=5)
        except OSError as error:
            print("no network:", error)
        setup(name="pkg", version="3", packages=["pkg"], install_requires=["dated" + "<2"],
              extras_require={{"tests": ["tests-need"], "docs": ["nowhere-to-be-found"]}})
        """
    built = build(
        {"setup.py": setup, "pkg/__init__.py": PACKAGE, "pkg/tests/__init__.py": "", "pkg/tests/test_a.py": PASSING}
    )
    assert built.collected == ("pkg/tests/test_a.py::test_value",)
    assert pinned(built) == ["dated==1.0", "tests-need==1.0"]
    assert built.environment.requirements == (
        "setuptools>=40.8.0 (build-system)", "dated<2 (project)", "pytest (always)", "tests-need (extra: tests)",
    )  # fmt: skip
    assert not (tmp_path / "written").exists()


@pytest.mark.usefixtures("quick")
def test_no_packaging_files_at_all(build: Builder) -> None:
    built = build(
        {"pkg.py": PACKAGE, "tests/test_a.py": "import dated\n" + PASSING, "requirements.txt": "dated==1.0\n"}
    )
    assert built.collected == ("tests/test_a.py::test_value",)
    environment = built.environment
    assert (environment.install, environment.python_path, pinned(built)) == ("path", (".",), ["dated==1.0"])
    assert run(build, built, "import pkg, os; os.chdir('/tmp'); print(pkg.__file__)") == "/w/src/pkg.py\n"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.skipif(not HEADER.exists(), reason="no headers of Python")
@pytest.mark.usefixtures("quick")
def test_a_compiled_extension_is_built_and_kept_with_the_tree(build: Builder) -> None:
    source = """\
        #include <Python.h>
        static PyObject *value(PyObject *self, PyObject *args) { return PyLong_FromLong(1); }
        static PyMethodDef methods[] = {{"value", value, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
        static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", "", -1, methods};
        PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
        """
    text = SETUPTOOLS + '[project]\nname = "pkg"\nversion = "1"\n[tool.setuptools]\npackages = ["pkg"]\n'
    text += '[[tool.setuptools.ext-modules]]\nname = "pkg._fast"\nsources = ["pkg/fast.c"]\n'
    files = {
        "pyproject.toml": text,
        "pkg/__init__.py": "from pkg._fast import value\n",
        "pkg/fast.c": source,
        "test_a.py": PASSING,
    }
    built = build(files)
    assert built.collected == ("test_a.py::test_value",)
    names = sorted(path.relative_to(built.source).as_posix() for path in built.source.rglob("*") if path.is_file())
    assert [name for name in names if not name.endswith(".so")] == sorted(files)
    assert [Path(name).name.partition(".")[0] for name in names if name.endswith(".so")] == ["_fast"]
    assert run(build, built, "import pkg, pkg._fast; print(pkg.__file__, pkg.value())") == "/w/src/pkg/__init__.py 1\n"
    assert build(files) == built


@pytest.mark.usefixtures("quick")
def test_a_version_from_git_is_pretended(build: Builder, index: Index) -> None:
    hook = """\
        import os
        def infer(dist):
            dist.metadata.version = os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"]
        """
    entry = "[setuptools.finalize_distribution_options]\nscm = scm_hook:infer\n"
    index.add(wheel("setuptools-scm", "9.0", {
        "scm_hook.py": "\n".join(line[8:] for line in hook.splitlines()),
        "setuptools_scm-9.0.dist-info/entry_points.txt": entry,
    }))  # fmt: skip
    text = SETUPTOOLS.replace('["setuptools"]', '["setuptools", "setuptools-scm"]')
    text += '[project]\nname = "pkg"\ndynamic = ["version"]\n[tool.setuptools]\npy-modules = ["pkg"]\n'
    built = build({"pyproject.toml": text, "pkg.py": PACKAGE, "test_a.py": PASSING})
    assert built.environment.pretended_version == "1.0.0"
    assert run(build, built, "from importlib.metadata import version; print(version('pkg'))") == "1.0.0\n"


@pytest.mark.skipif(shutil.which("git", path="/usr/bin") is None, reason="no git inside")
@pytest.mark.usefixtures("quick")
def test_a_build_that_needs_a_repository_gets_one(build: Builder) -> None:
    setup = """\
        import subprocess
        from setuptools import setup
        tag = subprocess.run(["git", "describe", "--tags"], check=True, capture_output=True, text=True).stdout
        setup(name="pkg", version=tag.strip().lstrip("v"), py_modules=["pkg"])
        """
    built = build({"setup.py": setup, "pkg.py": PACKAGE, "test_a.py": PASSING})
    assert built.environment.install == "editable"
    assert sorted(path.name for path in built.source.iterdir()) == ["pkg.py", "setup.py", "test_a.py"]
    assert run(build, built, "from importlib.metadata import version; print(version('pkg'))") == "1.0.0\n"


@pytest.mark.usefixtures("quick")
def test_a_backend_that_wants_more_gets_it(build: Builder) -> None:
    backend = """\
        from setuptools.build_meta import *
        from setuptools.build_meta import build_editable as _build
        def get_requires_for_build_editable(settings=None):
            return ["tests-need"]
        def build_editable(*args, **keywords):
            import tests_need
            return _build(*args, **keywords)
        """
    text = SETUPTOOLS.replace("setuptools.build_meta", "local_backend").replace(
        "[build-system]\n", '[build-system]\nbackend-path = ["_build"]\n'
    )
    text += '[project]\nname = "pkg"\nversion = "1"\n[tool.setuptools]\npy-modules = ["pkg"]\n'
    built = build({"pyproject.toml": text, "pkg.py": PACKAGE, "test_a.py": PASSING, "_build/local_backend.py": backend})
    assert (built.environment.install, pinned(built)) == ("editable", ["tests-need==1.0"])
    assert "tests-need (build-system)" in built.environment.requirements


@pytest.mark.usefixtures("quick")
def test_missing_packages_are_added_from_the_repositorys_files_and_then_from_the_list(build: Builder) -> None:
    files = {
        "pyproject.toml": SETUPTOOLS
        + '[project]\nname = "pkg"\nversion = "1"\n[dependency-groups]\ntest = ["pytest"]\n',
        "requirements-dev.txt": "tests-need\nonly-source\n",
        "pkg.py": PACKAGE,
        "test_a.py": "import tests_need, yaml\n" + PASSING,
    }
    built = build(files)
    environment = built.environment
    assert (environment.guessed, environment.left_out) == (("pyyaml",), ("only-source (requirements-dev.txt)",))
    assert "tests-need (requirements-dev.txt)" in environment.requirements
    assert pinned(built) == ["pyyaml==6.0", "tests-need==1.0"]


@pytest.mark.usefixtures("quick")
def test_what_cannot_be_collected_is_left_out_of_every_run(build: Builder) -> None:
    files = {
        "pkg.py": PACKAGE,
        "tests/test_good.py": PASSING,
        "tests/test_broken.py": "raise RuntimeError('at import')\n",
        "tests/test_missing.py": "import not_to_be_found_anywhere\n",
        "more/test_1.py": "import nothing_1\n", "more/test_2.py": "import nothing_2\n", "more/test_3.py": "1 / 0\n",
    }  # fmt: skip
    built = build(files)
    assert built.collected == ("tests/test_good.py::test_value",)
    assert built.environment.pytest_args == (
        "-p", "no:cacheprovider", "--ignore=more", "--ignore=tests/test_broken.py", "--ignore=tests/test_missing.py",
    )  # fmt: skip


NO_INDEX = {"pyproject.toml": '[project]\nname = "pkg"\nversion = "1"\n', "pkg.py": PACKAGE}
MUST_WRITE = 'import os\nfrom setuptools import setup\nos.mkdir("/w/env/x")\nsetup(name="x", version="1")\n'
DOWNLOADS = """\
import socket
from setuptools import setup
socket.create_connection(("192.0.2.1", 443), timeout=5)
setup(name="x", version="1")
"""


def project(lines: str) -> str:
    return SETUPTOOLS + f'[project]\nname = "pkg"\nversion = "1"\n{lines}\n'


NOTHING = "import nothing_here\n"
NEEDS_SOURCE = '[build-system]\nrequires = ["only-source"]\n[project]\nname = "pkg"\n'
NO_OPTION = "[pytest]\naddopts = --no-such-option\n"
EXITS = "raise SystemExit('needs a compiler')\n"
RESOLVES = "import socket\nsocket.getaddrinfo('example.org', 80)\n"
MISSING = "No module named 'nothing_here'"


@pytest.mark.parametrize(
    ("files", "reason", "detail"),
    [
        ({"pkg.py": PACKAGE}, "no_tests", "no file is named like a test module"),
        ({"test_a.py": "x = 1\n"}, "no_tests", "pytest collects no test"),
        ({"pyproject.toml": project('requires-python = ">=3.99"')}, "no_interpreter", "requires-python '>=3.99'"),
        ({"pyproject.toml": project('dependencies = ["only-source"]')}, "dep_needs_source_build", "only-source"),
        ({"pyproject.toml": project('dependencies = ["dated>=3"]')}, "dep_unresolvable_at_date", "dated"),
        ({"pyproject.toml": project('dependencies = ["nowhere"]')}, "dep_unresolvable_at_date", "nowhere"),
        ({"pyproject.toml": project('dependencies = ["x @ git+https://e.org/x"]')}, "direct_url_dependency", "x @ git"),
        ({"pyproject.toml": NEEDS_SOURCE, "test_a.py": NOTHING}, "build_dep_unavailable_as_wheel", "only-source"),
        ({"setup.py": EXITS, "test_a.py": NOTHING}, "metadata_hook_failed", "needs a compiler"),
        ({"setup.py": DOWNLOADS, "test_a.py": NOTHING}, "metadata_hook_failed", "Network is unreachable"),
        ({"setup.py": MUST_WRITE, "test_a.py": NOTHING}, "metadata_hook_failed", "Read-only file system"),
        ({"test_a.py": NOTHING}, "dependency_missing", f"test_a.py: {MISSING}"),
        ({"test_a.py": "1 / 0\n"}, "collection_error", "test_a.py: division by zero"),
        ({"conftest.py": NOTHING, "test_a.py": ""}, "dependency_missing", f"pytest: {MISSING}"),
        ({"pytest.ini": NO_OPTION, "test_a.py": PASSING, "pkg.py": PACKAGE}, "collection_error", "--no-such-option"),
        ({"test_a.py": "import os\nos.environ['TOKEN']\n"}, "needs_env_secret", "TOKEN"),
        ({"test_a.py": RESOLVES}, "needs_network", "test_a.py"),
        ({"test_a.py": "import os\nos._exit(3)\n"}, "collection_error", "exit code 3"),
        ({"test_a.py": "import time\ntime.sleep(60)\n"}, "timeout", ""),
        ({"test_a.py": "x = bytearray(1 << 30)\n"}, "oom", ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.usefixtures("quick")
def test_what_cannot_be_built_has_its_reason(
    build: Builder, files: dict[str, str], reason: str, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CONFIG
    if reason == "timeout":
        monkeypatch.setattr("sandbox.collecting.COLLECT_SECONDS", 2.0)
    if reason == "oom":
        if build.backend.probe().cgroup == "none":
            pytest.skip("no control groups: memory is limited for each process, which then raises MemoryError")
        config = replace(CONFIG, memory_mib=256)
    whole = files if "test_a.py" in files or reason == "no_tests" else {**files, "test_a.py": PASSING}
    with pytest.raises(DataError) as raised:
        build(whole, config)
    assert raised.value.reason == reason
    assert detail in raised.value.detail
    assert str(build.store) not in raised.value.detail


@pytest.mark.usefixtures("quick")
def test_a_failure_is_remembered(build: Builder, index: Index) -> None:
    files = {"pyproject.toml": project('dependencies = ["dated>=3"]'), "test_a.py": PASSING}
    for _ in range(2):
        with pytest.raises(DataError, match="dep_unresolvable_at_date"):
            build(files)
        asked = len(index.asked)
    assert len(index.asked) == asked


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.usefixtures("quick")
def test_an_index_that_is_gone_is_no_verdict(
    build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: Index
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{closed_port()}/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")  # it waits between them
    files = {
        "pyproject.toml": project('dependencies = ["dated"]'),
        "pkg.py": PACKAGE,
        "test_a.py": PASSING,
        "unique": "1",
    }
    gone = Builder(tmp_path, tmp_path / "empty", build.backend)
    with pytest.raises(TransientError, match="the package index cannot be reached; check the network and run again"):
        gone(files)
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
    assert gone(files).collected == ("test_a.py::test_value",)


@pytest.mark.usefixtures("quick")
def test_nothing_of_the_host_comes_inside(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTQUEM_SECRET", "visible")
    built = build(SRC)
    inside = run(build, built, "import os, sys; print(sorted(os.environ), sys.base_prefix, sys.path[1:])")
    names = ["COLUMNS", "HOME", "LANG", "LC_ALL", "LINES", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS",
             "OPENBLAS_NUM_THREADS", "PATH", "PWD", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONNOUSERSITE",
             "SOURCE_DATE_EPOCH", "TERM", "TZ", "VIRTUAL_ENV"]  # fmt: skip
    assert inside.startswith(f"{names} ")
    for hidden in (str(build.store), str(build.root), os.environ.get("HOME") or "/root"):
        assert hidden not in inside.replace("/root/.", "/root/.")
    assert not [bind for bind in built.binds if bind.writable]


@pytest.mark.usefixtures("quick")
def test_an_environment_for_unsafe_local_runs_the_tree_of_each_session(
    index: Index, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
    config = replace(CONFIG, backend=BackendName.UNSAFE_LOCAL)
    builder = Builder(tmp_path, store, open_backend(config))
    built = builder(SRC, config)
    assert built.environment.isolation == "unsafe-local"
    changed = {"/w/src/src/pkg/__init__.py": b"def value():\n    return 2\n"}
    assert run(builder, built, "import pkg; print(pkg.value())", changed) == "2\n"
    assert run(builder, built, "import pkg; print(pkg.value())") == "1\n"
