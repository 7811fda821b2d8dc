"""What an environment is made of, and how much of it can be had."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from sandbox.interpreters import Interpreter
from sandbox.plan import Knowledge, Plan, Solution, Wanted, make_plan, solve, stated, told, with_local
from sandbox.project import Project, read_project
from sandbox.project_build import BuiltProject
from sandbox.pytest_settings import PytestSettings
from sandbox.requirements import Needs
from sandbox.uv import UnresolvedError, Workbench
from schemas.errors import DataError, TransientError
from tests.sandbox.trees import write_tree

PYTHON = Interpreter((3, 10, 4), Path("/usr"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    text = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n[project]\nname = "own"\n'
    return read_project(write_tree(tmp_path, {"pyproject.toml": text + 'dependencies = ["attrs"]\n', "test_a.py": ""}))


def plan_of(project: Project, *, everything: bool = False, guessed: Iterable[str] = ()) -> Plan:
    return make_plan(project, stated(project), ("pytest-extra",), guessed, everything=everything)


BUILD = (Wanted("hatchling", "build-system"),)
RUN = (Wanted("attrs", "project"), Wanted("pytest", "always"))
EXTRA = (Wanted("pytest-extra", "configuration: test_packages"),)


def test_a_project_without_test_requirements_gets_pytest_and_the_configured_packages(project: Project) -> None:
    assert plan_of(project) == Plan(BUILD, RUN, (EXTRA,))


def test_places_for_tests_come_before_those_for_development(project: Project) -> None:
    tests = (Needs("group test", ("one", "ruff"), constraints=("attrs<23",)), Needs("file", ("two",)))
    development = (Needs("group dev", ("three", "mkdocs", "mkdocs-material", "types-x", "pre_commit")),)
    other = (Needs("requirements.txt", ("four",)),)
    own = replace(project, tests=tests, development=development, last_resort=other)
    first = (Wanted("one", "group test"), Wanted("ruff", "group test"))
    second = (Wanted("two", "file"),)
    assert plan_of(own) == Plan(BUILD, RUN, (EXTRA, first, second), ("attrs<23",))
    assert plan_of(replace(own, tests=())) == Plan(BUILD, RUN, (EXTRA, (Wanted("three", "group dev"),)))
    whole = tuple(Wanted(line, "group dev") for line in development[0].lines)
    last = (Wanted("four", "requirements.txt"),)
    assert plan_of(own, everything=True) == Plan(BUILD, RUN, (EXTRA, first, second, whole, last), ("attrs<23",))


def test_extras_for_tests_are_places_too(project: Project) -> None:
    extras = {"test": ("own[fast]", "mock"), "fast": ("orjson",), "dev": ("black",), "docs": ("sphinx",)}
    asked = Needs("tox.ini: testenv", ("tox-one",), extras=("fast",))
    own = replace(project, extras=extras, tests=(asked,))
    assert plan_of(own).tests == (
        EXTRA,
        (Wanted("tox-one", "tox.ini: testenv"), Wanted("orjson", "tox.ini: testenv")),
        (Wanted("mock", "extra: test"), Wanted("orjson", "extra: test")),
    )
    only_dev = replace(project, extras={"dev": ("black", "responses")})
    assert plan_of(only_dev).tests == (EXTRA, (Wanted("responses", "extra: dev"),))


def test_plugins_are_wanted_where_the_configuration_needs_them_and_guessed_only_where_nothing_names_them(
    project: Project,
) -> None:
    own = replace(
        project,
        tests=(Needs("group test", ("pytest_mock>=3",)),),
        pytest=PytestSettings(plugins=("pytest-cov",)),
    )
    plan = plan_of(own, guessed=("pytest-mock", "pytest-cov", "pyyaml", "attrs"))
    assert plan.tests == (
        (Wanted("pytest-cov", "pytest configuration"),),
        EXTRA,
        (Wanted("pyyaml", "guessed"),),
        (Wanted("pytest_mock>=3", "group test"),),
    )
    assert plan.guessed == ("pyyaml",)


def test_direct_urls_are_left_out_of_tests_and_end_a_project(project: Project) -> None:
    own = replace(project, tests=(Needs("file", ("one",), urls=("git+https://example.org/x.git",), unread=("???",)),))
    assert plan_of(own).left_out == ("git+https://example.org/x.git (file)", "??? (file)")
    own = replace(project, dependencies=Needs("project", ("one",), urls=("x @ git+https://example.org/x.git",)))
    with pytest.raises(DataError, match=r"^direct_url_dependency: x @ git\+https://example.org/x.git$"):
        plan_of(own)


def test_a_tree_without_metadata_takes_its_requirements_file(tmp_path: Path) -> None:
    project = read_project(write_tree(tmp_path, {"requirements.txt": "attrs\n", "test_a.py": ""}))
    assert plan_of(project).tests == (EXTRA, (Wanted("attrs", "requirements.txt"),))


def test_other_packages_of_the_tree_bring_their_requirements(project: Project, tmp_path: Path) -> None:
    text = '[project]\nname = "near"\nversion = "1"\ndependencies = ["near-needs"]\n'
    near = read_project(write_tree(tmp_path / "near", {"pyproject.toml": text}))
    own = replace(project, tests=(Needs("file", ("one",), local=("near", "near")),))
    plan = plan_of(own)
    assert plan.local == ("near",)
    assert with_local(plan, {"near": near}).tests == (*plan.tests, (Wanted("near-needs", "near"),))


def test_metadata_tells_dependencies_and_extras_for_the_interpreter() -> None:
    built = BuiltProject(
        "own-1-py3-none-any.whl", b"", "own", "1",
        (
            "plain>=1", "old; python_version < '3.11'", "new; python_version >= '3.11'", "own[fast]; extra == 'all'",
            "orjson; extra == 'fast'", "both; extra == 'fast' or extra == 'test'",
            "late; python_version >= '3.11' and extra == 'test'", "spread (>=2)", "bad requirement here",
        ),
        ("all", "fast", "test"), {},
    )  # fmt: skip
    assert told(built, PYTHON, Knowledge(None, None, ("more",))) == Knowledge(
        Needs("project", ("plain>=1", "old", "spread>=2")),
        {"all": ("own[fast]",), "fast": ("orjson", "both"), "test": ("both",)},
        ("more",),
    )


def test_files_of_exact_versions_alone_give_way_to_what_they_were_made_from(project: Project) -> None:
    exported = Needs("requirements-dev.txt", tuple(f"package-{number}==1.{number}" for number in range(15)))
    own = replace(project, development=(exported,))
    assert [item.found for place in plan_of(own).tests[1:] for item in place] == ["requirements-dev.txt"] * 15
    own = replace(project, development=(Needs("group dev", ("one",)), exported))
    assert plan_of(own).tests == (EXTRA, (Wanted("one", "group dev"),))


@dataclass
class Index:
    """Stands for a workbench: locks what it knows, refuses the rest as an index would."""

    refused: Mapping[str, str] = field(default_factory=dict)
    together: frozenset[str] = frozenset()
    """Two requirements that fit alone but not together."""
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def lock(self, lines: Iterable[str], constraints: Iterable[str], cut: str) -> str:
        wanted = tuple(lines)
        self.asked.append(wanted)
        for line in wanted:
            if line in self.refused:
                raise UnresolvedError(self.refused[line], f"no {line}", f"you require {line}, which depends on x")
        if self.together and self.together <= set(wanted):
            raise UnresolvedError("dep_unresolvable_at_date", "conflict", " and ".join(sorted(self.together)))
        return "".join(f"{line}==1 \\\n    --hash=sha256:0\n" for line in wanted)


def solution_of(index: Index, plan: Plan) -> Solution:
    return solve(cast(Workbench, index), plan, "2024-01-01T00:00:00Z")


def lines_of(*lines: str) -> tuple[Wanted, ...]:
    return tuple(Wanted(line, "tests") for line in lines)


def test_a_plan_that_fits_is_locked_at_once() -> None:
    index = Index()
    solution = solution_of(index, Plan(BUILD, RUN, (lines_of("one", "attrs"),), (), ("url (file)",)))
    assert index.asked == [("hatchling", "attrs", "pytest", "one")]
    assert solution.wanted == (*BUILD, *RUN, *lines_of("one", "attrs"))
    assert solution.left_out == ("url (file)",)
    assert solution.packages == {"hatchling", "attrs", "pytest", "one"}


def test_only_what_cannot_be_had_is_left_out() -> None:
    index = Index({"three": "dep_needs_source_build", "six": "dep_unresolvable_at_date"})
    lines = lines_of("one", "two", "three", "four", "five", "six", "seven")
    solution = solution_of(index, Plan(BUILD, RUN, (lines, lines_of("eight"))))
    assert solution.left_out == ("three (tests)", "six (tests)")
    assert [item.line for item in solution.wanted[3:]] == ["one", "two", "four", "five", "seven", "eight"]
    assert solution.packages == {"hatchling", "attrs", "pytest", "one", "two", "four", "five", "seven", "eight"}


def test_of_two_places_that_do_not_fit_together_the_first_stays() -> None:
    index = Index(together=frozenset({"mock==1", "mock==2"}))
    first, second = (Wanted("mock==1", "group"),), (Wanted("mock==2", "file"), Wanted("more", "file"))
    solution = solution_of(index, Plan((), RUN, (first, second)))
    assert solution.left_out == ("mock==2 (file)",)
    assert [item.text for item in solution.wanted] == [
        "attrs (project)", "pytest (always)", "mock==1 (group)", "more (file)",
    ]  # fmt: skip


def test_a_search_without_end_is_given_up() -> None:
    lines = [f"p{number}" for number in range(100)]
    index = Index(dict.fromkeys(lines, "dep_unresolvable_at_date"))
    solution = solution_of(index, Plan((), RUN, (lines_of(*lines),)))
    assert len(index.asked) == 25
    assert sorted(solution.left_out) == sorted(f"{line} (tests)" for line in lines)
    assert solution.wanted == RUN


def test_a_complaint_that_names_no_requirement_of_tests_leaves_all_of_them_out() -> None:
    class Vague(Index):
        def lock(self, lines: Iterable[str], constraints: Iterable[str], cut: str) -> str:
            lines = tuple(lines)
            if "one" in lines:
                raise UnresolvedError("dep_unresolvable_at_date", "", "something is wrong")
            return super().lock(lines, constraints, cut)

    solution = solution_of(Vague(), Plan((), RUN, (lines_of("one", "two"),)))
    assert (solution.wanted, solution.left_out) == (RUN, ("one (tests)", "two (tests)"))


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        ({"hatchling": "dep_needs_source_build"}, "build_dep_unavailable_as_wheel"),
        ({"attrs": "dep_needs_source_build"}, "dep_needs_source_build"),
        ({"attrs": "dep_unresolvable_at_date"}, "dep_unresolvable_at_date"),
        ({"attrs": "disk_full"}, "disk_full"),
    ],
)
def test_what_must_be_there_and_is_not_gives_the_reason(refused: dict[str, str], reason: str) -> None:
    with pytest.raises(DataError) as raised:
        solution_of(Index(refused), Plan(BUILD, RUN, (lines_of("one"),)))
    assert raised.value.reason == reason


def test_an_index_that_is_gone_says_nothing_about_a_plan() -> None:
    class Gone(Index):
        def lock(self, lines: Iterable[str], constraints: Iterable[str], cut: str) -> str:
            raise TransientError("unreachable")

    with pytest.raises(TransientError, match="unreachable"):
        solution_of(Gone(), Plan(BUILD, RUN, (lines_of("one"),)))
