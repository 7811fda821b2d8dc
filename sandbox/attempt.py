"""One attempt to build an environment with one interpreter: packages, the project itself, a collection of its tests."""

import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from sandbox.collecting import Collected, collect, collect_limits
from sandbox.environment import SourceCommit, run_variables
from sandbox.guesses import packages_of, plugins_in_use
from sandbox.plan import Knowledge, Plan, Solution, make_plan, solve, stated, told, with_local
from sandbox.project import Project, read_project
from sandbox.project_build import PRETENDED_VERSION, BuiltProject, MissingRequirements, build_project
from sandbox.protocol import ENVIRONMENT, SOURCE, Bind, SandboxSpec
from sandbox.pytest_arguments import run_arguments
from sandbox.uv import Workbench
from schemas.errors import DataError
from schemas.execution import Environment

# Rounds in which packages are added because a module was not found (execution.md, section 2).
_GUESS_ROUNDS = 3
# Rounds in which modules that cannot be collected are left out.
_IGNORE_ROUNDS = 3
# A backend that asks for more each time is not going to be satisfied.
_BUILD_ROUNDS = 3
_BUILD_FAULTS = ("metadata_hook_failed", "project_build_failed", "build_dep_unavailable_as_wheel")
_SHOWN = 3
# From so many files on, a folder none of whose tests can be collected is left out as a whole.
_MANY = 3
# Has no paths of its own: what an editable install remembers is gone with the session that it was built in.
_PATHLESS_BACKEND = "unsafe-local"


@dataclass(slots=True)
class Attempt:
    """The state of an attempt; `run` does all of it."""

    bench: Workbench
    source: Path
    """The exported tree."""
    tree: Path
    """Where a copy of the tree with the files of its build would stand."""
    project: Project
    at: SourceCommit
    cut: str
    known: Knowledge = field(init=False)
    guessed: set[str] = field(default_factory=set)
    everything: bool = False
    built: BuiltProject | None = None
    build_fault: DataError | None = None
    python_path: tuple[str, ...] = ()
    solution: Solution | None = None
    filled: tuple[Plan, str] | None = None
    arguments: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    fixed_arguments: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self.known = stated(self.project)
        self.guessed.update(plugins_in_use(self.source))

    def run(self) -> Collected:
        """Build, and collect the tests; DataError with the reason when there is nothing to run.

        Byte code is written last: packages that only a later round needs would make the work of the earlier ones void.
        """
        try:
            self._build()
            collected = self.without_broken(self._collect_in_rounds())
            self.compile()
            return collected
        except DataError:
            if self.build_fault is not None:  # the path alone did not do: the build is what is missing
                raise self.build_fault from None
            raise

    # -- packages and the project

    def _plan(self) -> Plan:
        config = self.bench.config
        everything = self.everything or self.build_fault is not None
        plan = make_plan(self.project, self.known, config.test_packages, self.guessed, everything=everything)
        if self.build_fault is not None and self.build_fault.reason == "build_dep_unavailable_as_wheel":
            plan = Plan((), plan.run, plan.tests, plan.constraints, plan.left_out, plan.guessed, plan.local)
        projects = {folder: read_project(self.source / folder) for folder in plan.local if folder != "."}
        roots = [_root_of(folder, project) for folder, project in projects.items()]
        self.python_path = tuple(dict.fromkeys((*self.python_path, *roots)))
        return with_local(plan, projects)

    def _fill(self) -> bool:
        """Install what the plan asks for; say whether anything had to be done."""
        plan = self._plan()
        if self.filled is not None and self.filled[0] == plan:
            return False
        with self.bench.stage("lock") as detail:
            self.solution = solve(self.bench, plan, self.cut)
            detail.append(f"{len(self.solution.packages)} packages")
            detail += [f"left out: {item}" for item in self.solution.left_out]
        if self.filled is None or self.filled[1] != self.solution.lock:
            with self.bench.stage("install"):
                self.bench.install(self.solution.lock)
                if self.built is not None:
                    self.bench.install_wheel(self.built.wheel_name, self.built.wheel)
        self.filled = (plan, self.solution.lock)
        return True

    def _build(self) -> None:
        """Install packages and the project; where its build fails, its folders on the path have to do."""
        if self.project.installable:
            try:
                self._build_project()
                return
            except DataError as error:
                if error.reason not in _BUILD_FAULTS:
                    raise
                self.build_fault = error
        self.python_path = self.project.source_roots
        self._fill()

    def _build_project(self) -> None:
        for _ in range(_BUILD_ROUNDS):
            self._fill()
            with self.bench.stage("build") as detail:
                built = build_project(self.bench, self.source, self.project, self.at)
                if isinstance(built, MissingRequirements):
                    detail.append(f"asks for {', '.join(built.requires)}")
                    more = (*self.known.build_more, *built.requires)
                    self.known = Knowledge(self.known.dependencies, self.known.extras, more)
                    continue
                detail.append(f"{built.name} {built.version}")
                if built.left:
                    detail.append(f"{len(built.left)} files in the tree")
            if self.known.dependencies is None or self.known.extras is None:
                self.known = told(built, self.bench.interpreter, self.known)
                self._fill()
            self.add_project(built)
            if self.bench.backend.name == _PATHLESS_BACKEND:
                self.python_path = tuple(dict.fromkeys((*self.project.source_roots, *self.python_path)))
            return
        raise DataError("project_build_failed", f"the backend asks for ever more: {', '.join(self.known.build_more)}")

    def add_project(self, built: BuiltProject) -> None:
        """Install the project's wheel, and take the tree with what its build made."""
        with self.bench.stage("install project"):
            self.bench.install_wheel(built.wheel_name, built.wheel)
        self.built = built
        if built.left:
            _copy_with(self.source, self.tree, built)
            self.source = self.tree

    # -- collection

    def _collect_in_rounds(self) -> Collected:
        """Collect; while modules are missing, add what the repository states beyond tests, then what the list knows."""
        for number in range(_GUESS_ROUNDS + 1):
            collected = self.collect()
            if number == _GUESS_ROUNDS or not self._improve(collected):
                return collected
        raise AssertionError  # the loop returns

    def compile(self) -> None:
        """Write the byte code of every package."""
        with self.bench.stage("compile"):
            self.bench.compile()

    def collect(self) -> Collected:
        """Collect once."""
        if self.solution is not None:
            packages = self.solution.packages
            self.arguments = run_arguments(self.project.pytest.addopts, packages, self.project.name)
        with self.bench.stage("collect") as detail:
            roots = tuple(f"{SOURCE}/{root}" for root in self.project.source_roots)
            limits = collect_limits(self.bench.config, self.bench.deadline.left())
            name = self.built.name if self.built is not None else None
            collected = collect(self.bench.backend, self.spec(), self.all_arguments, (name, roots), limits)
            detail.append(f"{len(collected.ids)} tests, {len(collected.errors)} errors")
            detail += [f"{error.path or error.node}: {error.message}" for error in collected.errors[:_SHOWN]]
        return collected

    @property
    def all_arguments(self) -> tuple[str, ...]:
        """Return pytest's arguments, what is left out among them."""
        if self.fixed_arguments is not None:
            return self.fixed_arguments
        return (*self.arguments, *(f"--ignore={path}" for path in self.ignored))

    def spec(self) -> SandboxSpec:
        """Return the sandbox of a run."""
        binds = (*self.bench.interpreter.binds, Bind(self.bench.folder, ENVIRONMENT))
        return SandboxSpec(self.source, binds, run_variables(self.at, self.python_path))

    def _improve(self, collected: Collected) -> bool:
        """Change what can be changed after a collection; say whether another one is worth it."""
        if collected.copies and self.python_path != self.project.source_roots:
            self.python_path = self.project.source_roots
            return True
        if not collected.missing and collected.started:
            return False
        if not self.everything:
            self.everything = True
            if self._fill():
                return True
        own = [root for root in self.project.source_roots if self._holds(root, collected.missing)]
        if not set(own) <= set(self.python_path):
            self.python_path = tuple(dict.fromkeys((*self.python_path, *own)))
            return True
        self.guessed.update(packages_of(collected.missing))
        return self._fill()

    def _holds(self, root: str, modules: tuple[str, ...]) -> bool:
        """Say whether a folder of the tree holds one of the modules."""
        places = [self.source / root / module.partition(".")[0] for module in modules]
        return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)

    def without_broken(self, collected: Collected) -> Collected:
        """Return a collection without errors: what cannot be collected is left out as long as anything remains."""
        if collected.copies:
            raise DataError(
                "project_build_failed",
                f"its editable install copies: {', '.join(collected.copies[:_SHOWN])} is not imported from the tree",
            )
        for _ in range(_IGNORE_ROUNDS):
            if not collected.errors and collected.ids:
                return collected
            broken = {error.path for error in collected.errors if error.path}
            if not collected.started or not collected.ids or not broken or broken <= set(self.ignored):
                break
            self.ignored = _fewer({*self.ignored, *broken}, collected.ids)
            collected = self.collect()
        if not collected.errors and collected.ids:
            return collected
        raise _failure(collected)

    # -- the result

    def environment(self, isolation: str) -> Environment:
        """Return how the environment was built."""
        solution = self.solution or Solution("", (), ())
        guessed = [item.line for item in solution.wanted if item.found == "guessed"]
        version = self.built.version if self.built is not None else ""
        return Environment(
            python=self.bench.interpreter.text,
            lock=solution.lock,
            index_date=self.cut,
            requirements=tuple(dict.fromkeys(item.text for item in solution.wanted if item.found != "guessed")),
            guessed=tuple(sorted(guessed)),
            left_out=tuple(dict.fromkeys(solution.left_out)),
            install="path" if self.built is None else "editable",
            python_path=self.python_path,
            pretended_version=version if self.project.git_version and version == PRETENDED_VERSION else "",
            pytest_args=self.all_arguments,
            isolation=isolation,
        )


def _failure(collected: Collected) -> DataError:
    """Return why nothing can be collected: the commonest reason, with the first messages."""
    if not collected.errors:
        return DataError("no_tests", "pytest collects no test")
    reason = Counter(error.reason for error in collected.errors).most_common(1)[0][0]
    if not collected.started:
        reason = collected.errors[0].reason
    told = [f"{error.path or error.node or 'pytest'}: {error.message}" for error in collected.errors[:_SHOWN]]
    return DataError(reason, "; ".join(told))


def _fewer(paths: set[str], ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths to leave out, sorted: a folder for its files where none of its tests was collected."""
    folders = Counter(path.rpartition("/")[0] for path in paths)
    whole = {
        folder
        for folder, count in folders.items()
        if folder and count >= _MANY and not any(name.startswith(f"{folder}/") for name in ids)
    }
    kept = {path for path in paths if not any(path.startswith(f"{folder}/") for folder in whole)}
    return tuple(sorted(kept | whole))


def _root_of(folder: str, project: Project) -> str:
    """Return the folder to put on the path for another package of the tree."""
    return f"{folder}/src" if "src" in project.source_roots else folder


def _copy_with(source: Path, target: Path, built: BuiltProject) -> None:
    """Copy a tree and write the files that its build left; none is written through a link."""
    shutil.copytree(source, target, symlinks=True)
    for name, data in built.left.items():
        place = target
        for part in PurePosixPath(name).parts[:-1]:
            place = place / part
            if place.is_symlink():
                break
            place.mkdir(exist_ok=True)
        else:
            file = target / name
            if file.is_symlink() or file.is_dir():
                continue
            executable = file.exists() and file.stat().st_mode & 0o100
            file.unlink(missing_ok=True)
            file.write_bytes(data)
            file.chmod(0o755 if executable or name.endswith(".so") else 0o644)
