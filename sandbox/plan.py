"""Chooses what an environment is made of, and finds the largest part of it that an index can serve."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from packaging.markers import Environment, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sandbox.interpreters import Interpreter
from sandbox.project import Project, expand_extras
from sandbox.project_build import BuiltProject
from sandbox.requirements import Needs, parse, sort_lines
from sandbox.test_needs import is_development_name, is_test_name
from sandbox.uv import UnresolvedError, Workbench
from schemas.errors import DataError

# Resolutions of one environment at most; each takes a fraction of a second once the index's answers are cached.
_MAX_TRIES = 24
# Programs that developers run and tests do not import. They are left out of requirements for development in general
# (never out of those for tests), where they make most of the packages: half a minute for mkdocs and its plugins.
# Exact versions of so many packages are no longer written by hand.
_EXPORT = 15
_PROGRAMS_TEXT = """
autoflake autopep8 bandit basedpyright black blacken-docs build bump-my-version bump2version bumpversion
bumpver check-manifest codespell commitizen cruft darglint deptry docformatter duty flake8 furo git-changelog
git-cliff github-changelog-md interrogate isort markdown-callouts markdown-exec mdformat mike mkdocs
mkdocs-material mkdocstrings mkdocstrings-python mypy myst-parser nox pdoc pip-audit pip-tools poethepoet
pre-commit prek pydocstyle pylint pymdown-extensions pyproject-fmt pyrefly pyright python-semantic-release
pyupgrade ruff safety sphinx sphinx-autobuild sphinx-autodoc-typehints sphinx-copybutton sphinx-rtd-theme
taskipy towncrier tox tox-uv twine ty validate-pyproject vulture yamllint zensical zizmor
"""
_PROGRAMS = frozenset(_PROGRAMS_TEXT.split())
_PROGRAM_PREFIXES = ("mkdocs-", "mkdocstrings-", "flake8-", "sphinx-", "sphinxcontrib-", "types-", "griffe-", "pep8-")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One requirement and where it was found."""

    line: str
    """PEP 508 text."""
    found: str
    """The place: `dependency-groups: test`."""

    @property
    def text(self) -> str:
        """Return both, as released."""
        return f"{self.line} ({self.found})"


@dataclass(frozen=True, slots=True)
class Plan:
    """What an environment should hold."""

    build: tuple[Wanted, ...] = ()
    """For the build backend."""
    run: tuple[Wanted, ...] = ()
    """For the project itself, and pytest."""
    tests: tuple[tuple[Wanted, ...], ...] = ()
    """For its tests, one tuple for each place; what cannot be had of them is left out."""
    constraints: tuple[str, ...] = ()
    """Bounds on versions."""
    left_out: tuple[str, ...] = ()
    """What no index serves: direct URLs, and lines that are no requirement."""
    guessed: tuple[str, ...] = ()
    """Lines of `tests` that no file names, sorted."""
    local: tuple[str, ...] = ()
    """Folders of other packages of the tree that are asked for."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A plan as far as it can be had."""

    lock: str
    """Exact versions with hashes."""
    wanted: tuple[Wanted, ...]
    """What was asked for."""
    left_out: tuple[str, ...]
    """Requirements that could not be had, with their places."""

    @property
    def packages(self) -> frozenset[str]:
        """Return the canonical names of all packages of the lock."""
        lines = (line for line in self.lock.splitlines() if line and not line[0].isspace() and line[0] != "#")
        return frozenset(canonicalize_name(line.partition("==")[0].partition("[")[0].strip()) for line in lines)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known about the project's own requirements: stated in its files, or told by its build backend."""

    dependencies: Needs | None
    """To run; null when not known yet."""
    extras: Mapping[str, tuple[str, ...]] | None
    """By extra; null when not known yet."""
    build_more: tuple[str, ...] = field(default=())
    """What the backend asked for in addition."""


def stated(project: Project) -> Knowledge:
    """Return what the project's files state."""
    return Knowledge(project.dependencies, project.extras)


def told(built: BuiltProject, interpreter: Interpreter, known: Knowledge) -> Knowledge:
    """Return what the metadata of a built project says, for the interpreter."""
    requirements = [item for line in built.dependencies if (item := parse(line)) is not None]
    environment = marker_environment(interpreter)
    plain = [_bare(item) for item in requirements if _holds(item, environment, "")]
    extras = {
        extra: tuple(
            _bare(item)
            for item in requirements
            if _holds(item, environment, extra) and not _holds(item, environment, "")
        )
        for extra in built.extras
    }
    return replace(known, dependencies=sort_lines("project", plain, built.name), extras=extras)


def marker_environment(interpreter: Interpreter) -> Environment:
    """Return the values of markers for an interpreter of this machine."""
    environment = default_environment()
    environment["python_version"] = ".".join(str(number) for number in interpreter.minor)
    environment["python_full_version"] = environment["implementation_version"] = interpreter.text
    return environment


def _holds(item: Requirement, environment: Environment, extra: str) -> bool:
    if item.marker is None:
        return True
    return item.marker.evaluate({**{key: str(value) for key, value in environment.items()}, "extra": extra})


def _bare(item: Requirement) -> str:
    """Return a requirement without its marker."""
    copy = Requirement(str(item))
    copy.marker = None
    return str(copy)


def make_plan(
    project: Project, known: Knowledge, test_packages: Iterable[str], guessed: Iterable[str], *, everything: bool
) -> Plan:
    """Return the plan of an environment.

    Requirements of tests come from every place that states some; those of development in general come in where no
    place does, or with `everything`, which also takes other requirements files and developers' programs. Raises
    DataError `direct_url_dependency` when the project itself needs a direct URL.
    """

    def expanded(stated: Iterable[Needs], wanted: Callable[[str], bool]) -> list[Needs]:
        stated = (*stated, *_extras_as_needs(known, wanted))
        return _without_exports([_with_extras(needs, known, project.name) for needs in stated])

    places = expanded(project.tests, is_test_name)
    if everything or not places:
        development = expanded(project.development, is_development_name)
        places += development if everything else map(_without_programs, development)
    if everything or not project.installable:
        places = _without_exports([*places, *project.last_resort])
    run = known.dependencies or Needs("project")
    if run.urls:
        raise DataError("direct_url_dependency", ", ".join(run.urls))
    more = [
        Needs("pytest configuration", project.pytest.plugins),
        Needs("configuration: test_packages", tuple(test_packages)),
    ]
    named = {_name(line) for needs in (run, *places, *more) for line in needs.lines}
    more.append(Needs("guessed", tuple(sorted(line for line in set(guessed) if _name(line) not in named))))
    return Plan(
        tuple(Wanted(line, "build-system") for line in (*project.build_requires.lines, *known.build_more)),
        (*(Wanted(line, "project") for line in run.lines), Wanted("pytest", "always")),
        tuple(tuple(Wanted(line, needs.found) for line in needs.lines) for needs in (*more, *places) if needs.lines),
        tuple(dict.fromkeys(line for needs in places for line in needs.constraints)),
        tuple(
            dict.fromkeys(f"{item} ({needs.found})" for needs in (run, *places) for item in needs.urls + needs.unread)
        ),
        more[2].lines,
        tuple(dict.fromkeys(folder for needs in (run, *places) for folder in needs.local)),
    )


def _extras_as_needs(known: Knowledge, wanted: Callable[[str], bool]) -> list[Needs]:
    """Return the project's extras whose names are of a kind."""
    return [Needs(f"extra: {extra}", extras=(extra,)) for extra in known.extras or () if wanted(extra)]


def _with_extras(needs: Needs, known: Knowledge, name: str | None) -> Needs:
    """Put the requirements of the project's own extras in the place of the extras."""
    if not needs.extras or known.extras is None:
        return needs
    expanded = expand_extras(known.extras, needs.extras, name, needs.found)
    return replace(
        needs,
        lines=tuple(dict.fromkeys((*needs.lines, *expanded.lines))),
        urls=tuple(dict.fromkeys((*needs.urls, *expanded.urls))),
        local=tuple(dict.fromkeys((*needs.local, *expanded.local))),
    )


def _without_exports(places: list[Needs]) -> list[Needs]:
    """Leave out files of exact versions alone, which tools write from what other places state; keep an only place."""
    others = [needs for needs in places if len(needs.lines) < _EXPORT or not all("==" in line for line in needs.lines)]
    return others or places


def _without_programs(needs: Needs) -> Needs:
    """Leave out programs that tests do not import."""
    return replace(needs, lines=tuple(line for line in needs.lines if not _is_program(line)))


def _name(line: str) -> str:
    """Return the canonical name of a requirement."""
    item = parse(line)
    return canonicalize_name(item.name) if item is not None else line


def _is_program(line: str) -> bool:
    name = _name(line)
    return name in _PROGRAMS or name.startswith(_PROGRAM_PREFIXES)


def solve(bench: Workbench, plan: Plan, cut: str) -> Solution:
    """Return the lock of as much of a plan as the index serves as wheels.

    What the backend and the project need must be there. Of what tests need, the resolver's complaint names suspects;
    the one that was stated last is left out, until the rest resolves. Raises DataError
    `build_dep_unavailable_as_wheel`, `dep_needs_source_build`, `dep_unresolvable_at_date` or `disk_full`.
    """
    base = [*plan.build, *plan.run]
    chosen = [wanted for place in plan.tests for wanted in place]
    left_out: list[Wanted] = []
    for _ in range(_MAX_TRIES):
        try:
            lock = _lock(bench, [*base, *chosen], plan, cut)
        except UnresolvedError as error:
            suspects = [wanted for wanted in chosen if _name(wanted.line) in error.words]
            if not suspects:
                break
            out = [wanted for wanted in chosen if wanted.line == suspects[-1].line]
            left_out += out
            chosen = [wanted for wanted in chosen if wanted not in out]
            continue
        return Solution(lock, (*base, *chosen), (*plan.left_out, *(wanted.text for wanted in left_out)))
    lock = _lock_base(bench, plan, cut)
    left = [*plan.left_out, *(wanted.text for wanted in (*left_out, *chosen))]
    return Solution(lock, tuple(base), tuple(left))


def _lock(bench: Workbench, wanted: Iterable[Wanted], plan: Plan, cut: str) -> str:
    return bench.lock(dict.fromkeys(item.line for item in wanted), plan.constraints, cut)


def _lock_base(bench: Workbench, plan: Plan, cut: str) -> str:
    """Return the lock of what must be there; say whether it is the build backend's or the project's that is not."""
    try:
        return _lock(bench, [*plan.build, *plan.run], plan, cut)
    except UnresolvedError as error:
        try:
            _lock(bench, plan.build, plan, cut)
        except UnresolvedError:
            raise DataError("build_dep_unavailable_as_wheel", error.detail) from error
        raise


def with_local(plan: Plan, projects: Mapping[str, Project]) -> Plan:
    """Return a plan with the requirements of the other packages of the tree that it asks for, by folder."""
    more = tuple(
        tuple(Wanted(line, folder) for line in project.dependencies.lines)
        for folder, project in projects.items()
        if project.dependencies is not None and project.dependencies.lines
    )
    return replace(plan, tests=(*plan.tests, *more))
