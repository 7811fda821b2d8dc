"""Where a repository states what its tests need: groups, extras' names, environments of tools, requirements files."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from sandbox.requirements import Needs, merge, poetry_requirements, read_requirements_file, sort_lines
from sandbox.tree_files import inside, parse_ini, read_ini, read_text, read_toml, strings, table

_TEST = re.compile(r"(?:^|-)(?:unit)?-?(?:tests?|testing|pytest)(?:$|-)|^hatch-test$|^check$")
_DEVELOPMENT = re.compile(r"^(?:dev|devel|develop|development|developer|ci|default|local|all|dev-.*|.*-dev)$")
_OTHER = re.compile(r"docs?|lint|format|style|typ(?:e|ing)|mypy|bench|perf|release|publish|notebook|build")
_MAX_INCLUDES = 16

# (name of the file, is it for tests); a folder that holds them counts as part of the name.
_FILES = re.compile(r"requirements?|reqs?|deps|dependencies", re.IGNORECASE)
_FOLDERS = ("", "requirements", "requirement", "reqs", "deps", "tests", "test", "ci", "dev", "tools")

Found = tuple[tuple[Needs, ...], tuple[Needs, ...], tuple[Needs, ...]]


def is_test_name(name: str) -> bool:
    """Say whether a group, extra or environment is for tests by its name."""
    canonical = canonicalize_name(name)
    return bool(_TEST.search(canonical)) and not _OTHER.search(_TEST.sub("", canonical))


def is_development_name(name: str) -> bool:
    """Say whether a group, extra or environment is for development in general by its name."""
    canonical = canonicalize_name(name)
    return bool(_DEVELOPMENT.search(canonical)) and not _OTHER.search(canonical)


def find_test_needs(root: Path, own_name: str | None) -> Found:
    """Return requirements of tests, of development, and other requirements files, each in order of preference.

    Extras of the project are not among them: they may be known to the build backend alone.
    """
    named = list(_named(root, own_name))
    files = list(_files(root, own_name))
    tests = [needs for name, needs in named if is_test_name(name)]
    tests += [needs for kind, needs in files if kind == "test"]
    development = [needs for name, needs in named if not is_test_name(name) and is_development_name(name)]
    development += [needs for kind, needs in files if kind == "dev"]
    last = [needs for kind, needs in files if kind == "other"]
    last += _stated_loosely(root, own_name)
    return _worth(tests), _worth(development), _worth(last)


def _stated_loosely(root: Path, own_name: str | None) -> list[Needs]:
    """Return the project's own requirements where only its build backend has the last word on them."""
    setup_py = setup_list(read_text(root, "setup.py"), "install_requires")
    setup_cfg = read_ini(root, "setup.cfg").get("options", {}).get("install_requires", "").splitlines()
    poetry = poetry_requirements(table(read_toml(root, "pyproject.toml"), "tool", "poetry", "dependencies"))
    lines = [line.strip() for line in (*setup_py, *setup_cfg) if line.strip()]
    return [sort_lines("install_requires", lines, own_name), sort_lines("tool.poetry.dependencies", poetry, own_name)]


def _worth(needs: Iterable[Needs]) -> tuple[Needs, ...]:
    return tuple(item for item in needs if item.lines or item.extras or item.urls or item.local)


def _named(root: Path, own_name: str | None) -> Iterator[tuple[str, Needs]]:
    """Yield the groups and environments of every tool with their names."""
    pyproject = read_toml(root, "pyproject.toml")
    tool = table(pyproject, "tool")
    groups = table(pyproject, "dependency-groups")
    for name in groups:
        yield name, sort_lines(f"dependency-groups: {name}", expand_group(groups, name), own_name)
    yield "dev", sort_lines("tool.uv.dev-dependencies", strings(table(tool, "uv").get("dev-dependencies")), own_name)
    for name, lines in table(tool, "pdm", "dev-dependencies").items():
        yield name, sort_lines(f"tool.pdm.dev-dependencies: {name}", map(_editable, strings(lines)), own_name)
    yield from _poetry(table(tool, "poetry"), own_name)
    yield from _hatch(table(tool, "hatch", "envs"), "tool.hatch.envs", own_name)
    yield from _hatch(table(read_toml(root, "hatch.toml"), "envs"), "hatch.toml: envs", own_name)
    yield from _tox(root, tool, groups, own_name)
    pipfile = table(read_toml(root, "Pipfile"), "dev-packages")
    yield "dev", sort_lines("Pipfile: dev-packages", poetry_requirements(pipfile), own_name)
    lines = setup_list(read_text(root, "setup.py"), "tests_require")
    lines += read_ini(root, "setup.cfg").get("options", {}).get("tests_require", "").splitlines()
    yield "test", sort_lines("tests_require", [line.strip() for line in lines if line.strip()], own_name)


def _editable(line: str) -> str:
    """Return an editable folder of PDM as a requirement; any other line as it is."""
    match = re.fullmatch(r"-e\s+file:///\$\{PROJECT_ROOT\}/?([^#]*)#egg=([\w.-]+).*", line)
    return f"{match[2]} @ file:{match[1] or '.'}" if match else line


def expand_group(groups: Mapping[str, Any], name: str) -> list[str]:
    """Return a dependency group's requirements with those of the groups it includes (PEP 735)."""
    by_name: dict[str, Any] = {canonicalize_name(key): value for key, value in groups.items()}

    def expand(group: str, above: tuple[str, ...]) -> Iterator[str]:
        for item in by_name.get(group) or () if isinstance(by_name.get(group), list) else ():
            if isinstance(item, str):
                yield item
            elif isinstance(item, Mapping) and isinstance(item.get("include-group"), str):
                inner = canonicalize_name(item["include-group"])
                if inner not in above and len(above) < _MAX_INCLUDES:
                    yield from expand(inner, (*above, inner))

    start = canonicalize_name(name)
    return list(dict.fromkeys(expand(start, (start,))))


def _poetry(poetry: Mapping[str, Any], own_name: str | None) -> Iterator[tuple[str, Needs]]:
    """Yield Poetry's groups."""
    old = poetry_requirements(table(poetry, "dev-dependencies"))
    yield "dev", sort_lines("tool.poetry.dev-dependencies", old, own_name)
    for name in table(poetry, "group"):
        lines = poetry_requirements(table(poetry, "group", name, "dependencies"))
        yield name, sort_lines(f"tool.poetry.group.{name}", lines, own_name)


def _hatch(envs: Mapping[str, Any], where: str, own_name: str | None) -> Iterator[tuple[str, Needs]]:
    """Yield Hatch's environments; their features are extras of the project."""
    for name in envs:
        env = table(envs, name)
        lines = (*strings(env.get("dependencies")), *strings(env.get("extra-dependencies")))
        needs = sort_lines(f"{where}.{name}", lines, own_name)
        features = Needs(needs.found, extras=strings(env.get("features")))
        yield name, merge(needs.found, (needs, features))


def _tox(
    root: Path, tool: Mapping[str, Any], groups: Mapping[str, Any], own_name: str | None
) -> Iterator[tuple[str, Needs]]:
    """Yield the requirements of tox's default environment, which is made to run the tests."""
    legacy = table(tool, "tox").get("legacy_tox_ini")
    sections = parse_ini(legacy) if isinstance(legacy, str) else read_ini(root, "tox.ini")
    for name in ("testenv", "testenv:test", "testenv:tests", "testenv:py"):
        section = sections.get(name, {})
        deps = [line.strip() for line in section.get("deps", "").splitlines()]
        extras = section.get("extras", "").replace(",", " ").split()
        asked = section.get("dependency_groups", "").replace(",", " ").split()
        yield "test", _tox_needs(root, f"tox.ini: {name}", deps, (extras, asked, groups), own_name)
    for native in (table(tool, "tox"), read_toml(root, "tox.toml")):
        base = table(native, "env_run_base")
        rest = (strings(base.get("extras")), strings(base.get("dependency_groups")), groups)
        yield "test", _tox_needs(root, "tox: env_run_base", strings(base.get("deps")), rest, own_name)


def _tox_needs(
    root: Path,
    found: str,
    deps: Iterable[str],
    rest: tuple[Iterable[str], Iterable[str], Mapping[str, Any]],
    own_name: str | None,
) -> Needs:
    """Sort tox's requirements: `-r` files, requirements; lines under a condition (`py38: mock`) are left out."""
    extras, asked, groups = rest
    parts = [Needs(found, extras=tuple(item for item in extras if "{" not in item))]
    parts += [sort_lines(found, expand_group(groups, name), own_name) for name in asked]
    for dep in deps:
        line = dep.replace("{toxinidir}/", "").replace("{tox_root}/", "").strip()
        if match := re.match(r"(-[rc])\s*(\S+)", line):
            if "{" not in line:
                inner = read_requirements_file(root, match[2], own_name)
                parts.append(inner if match[1] == "-r" else Needs(found, constraints=inner.lines))
        elif line and not line.startswith(("#", "-")) and "{" not in line and not re.match(r"[\w!,.-]+:\s", line):
            own = re.fullmatch(r"\.\[([^\]]*)\]|\.", line)
            texts = [] if own else [re.sub(r"\s+#.*$", "", line)]
            extra = tuple(part.strip() for part in (own[1] or "").split(",") if part.strip()) if own else ()
            parts.append(merge(found, (sort_lines(found, texts, own_name), Needs(found, extras=extra))))
    return merge(found, parts)


def _files(root: Path, own_name: str | None) -> Iterator[tuple[str, Needs]]:
    """Yield the requirements files of the root and of the usual folders with their kinds: test, dev, other."""
    for folder in _FOLDERS:
        place = inside(root, folder or ".")
        if place is None or not place.is_dir():
            continue
        for path in sorted(place.glob("*.txt")) + sorted(place.glob("*.in")):
            whole = f"{folder}/{path.name}" if folder else path.name
            kind = _file_kind(folder, path.stem)
            if kind is not None and not (path.suffix == ".in" and path.with_suffix(".txt").exists()):
                yield kind, read_requirements_file(root, whole, own_name)


def _file_kind(folder: str, stem: str) -> str | None:
    """Return what a requirements file is for by its name and folder; null when it is none."""
    if not _FILES.search(stem) and folder not in ("requirements", "requirement", "reqs", "deps"):
        return None
    name = canonicalize_name(_FILES.sub("", stem)).strip("-")
    where = f"{folder}-{name}" if folder in ("tests", "test", "dev") else name
    if is_test_name(where):
        return "test"
    if is_development_name(where):
        return "dev"
    return "other" if name in ("", "base", "main", "common", "prod", "production", "install", "core", "min") else None


def setup_list(setup_py: str | None, argument: str) -> list[str]:
    """Return a list of strings that `setup()` is called with, directly or by a name that is assigned one."""
    try:
        tree = ast.parse(setup_py or "")
    except (SyntaxError, ValueError, RecursionError):
        return []
    assigned: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned[node.targets[0].id] = node.value
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", None)) == "setup":
            for keyword in node.keywords:
                if keyword.arg == argument:
                    return _literal(keyword.value, assigned)
    return []


def _literal(node: ast.expr, assigned: Mapping[str, ast.expr]) -> list[str]:
    """Return the strings of a literal list."""
    if isinstance(node, ast.Name):
        node = assigned.get(node.id, node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.splitlines()
    items = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else []
    return [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
