"""Functions proven per minute of processor time: ours, and the procedure of the PyPI package `repositorytest`.

    python -m bench.real_code [--repo PATH ...] [--functions 5] [--limit N] [--seed 0] [--cache FOLDER]

The package (MERA Code's repotest 0.5) runs the whole suite in a new process once on the original and once for each mock
of a function, with the file changed on disk. It clones over the network into a container or a conda environment, so
that here its procedure is run and not its code: in the same sandbox as ours, and without its clone, container start,
copy of the tree and JSON report, that is at less than its cost. Ours proves every covered function of the repository
and counts everything: the runs of the original, the fork server, the confirmation. The procedure is run on a sample of
the same functions with the same mocks, and both say what they think of each mock.

Without `--repo` the input is a sample repository with the pytest that is installed here; with it, bare clones whose
environments are built first, which needs the package index.
"""

import argparse
import random
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from miners.checkout import export_tree
from miners.git_process import run_git
from miners.methods import find_methods
from miners.syntax import parse
from sandbox.backends import open_backend
from sandbox.baseline import limits_of
from sandbox.environment import BuiltEnvironment, SourceCommit
from sandbox.judging import verdict
from sandbox.mocks import Mock
from sandbox.protocol import SandboxSpec
from sandbox.prove import Proof, prove
from sandbox.reports import ExecReport
from sandbox.runs import Job, run_job
from sandbox.targets import Function, Target, read_function
from schemas.errors import DataError
from schemas.execution import MockResult, RealCodeConfig
from tests.builders import git
from tests.sandbox.environments import make_environment

SAMPLE = Path(__file__).parents[1] / "samples" / "foyer.fi"
CONFIG = RealCodeConfig()
HEAD = f"{'repository':20} {'functions':>9} {'proven':>7} {'ours/min':>9} {'theirs/min':>10} {'ratio':>7} {'equal':>9}"
_NO_INPUT = frozenset({"test", "tests", "testing", "conftest.py", "docs", "examples", "benchmarks"})


@dataclass(frozen=True, slots=True)
class Input:
    """A repository that is ready to be proven."""

    name: str
    """Its name in the table."""
    built: BuiltEnvironment
    """Its tree and environment."""

    @property
    def spec(self) -> SandboxSpec:
        """Return its sandbox."""
        return SandboxSpec(self.built.source, self.built.binds, self.built.env, limits_of(CONFIG, CONFIG.suite_seconds))


@dataclass(frozen=True, slots=True)
class Result:
    """What both did with a repository."""

    name: str
    functions: int
    """Functions that ours judged."""
    proven: int
    """Those that it proved."""
    ours: float
    """Processor seconds of ours for each function that it judged."""
    sampled: int
    """Functions on which the procedure was run."""
    theirs: float
    """Processor seconds of the procedure for each of them."""
    mocks: int
    """Mocks that both judged."""
    equal: int
    """Those with the same verdict."""

    @property
    def ratio(self) -> float:
        """Return how many times more functions ours proves in the same processor time."""
        return self.theirs / self.ours


def targets_of(source: Path) -> tuple[dict[str, bytes], list[Target]]:
    """Return the files of a tree that are no tests, and their functions."""
    files: dict[str, bytes] = {}
    targets = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if any(part in _NO_INPUT or part.startswith("test_") for part in name.split("/")):
            continue
        files[name] = path.read_bytes()
        for span in find_methods(files[name], parse(files[name])):
            targets.append(Target(f"{name}:{span.start_byte}", name, span.fun_name, span.start_byte))
    return files, targets


def judged_functions(proof: Proof) -> dict[str, tuple[tuple[str, ...], tuple[MockResult, ...]]]:
    """Return the tests and mocks of every function whose mocks ours has run."""
    proven = {found.function.target.row_id: (found.pass_to_pass, found.mocks) for found in proof.evidence}
    dropped = {one.target.row_id: (one.tests, one.mocks) for one in proof.dropped if one.mocks}
    return {**proven, **dropped}


def compare(item: Input, sample: int, seed: int, limit: int | None = None) -> Result:
    """Prove a repository and run the procedure on a sample of the functions that ours judged.

    With `limit` only that many of its functions are looked at, whether or not a test enters them.
    """
    backend = open_backend(CONFIG)
    files, targets = targets_of(item.built.source)
    if limit is not None and limit < len(targets):
        targets = sorted(random.Random(seed).sample(targets, limit), key=lambda target: target.row_id)
    proof = prove(backend, item.spec, item.built, files, targets, CONFIG)
    judged = judged_functions(proof)
    if not judged:
        raise DataError("not_covered", f"{item.name} has no function that a stable test enters")
    chosen = [target for target in targets if target.row_id in judged]
    chosen = sorted(random.Random(seed).sample(chosen, min(sample, len(chosen))), key=lambda target: target.row_id)
    cpu, mocks, equal = 0.0, 0, 0
    with backend.open(item.spec) as session:
        run_job(session, item.built, Job(first=True), limits_of(CONFIG, CONFIG.suite_seconds))
        for target in chosen:
            function = read_function(files[target.path], target)
            tests, results = judged[target.row_id]
            reports = [run_job(session, item.built, Job(to_end=True), limits_of(CONFIG, CONFIG.suite_seconds))]
            for result in results:
                reports.append(_with_mock(session, item, function, result))
                mocks += 1
                same = _verdict_of(reports[-1], result, tests) == result.verdict
                equal += same
                if not same:
                    print(f"  {target.row_id}: {result.kind.value} {result.verdict.value} {result.detail}")
            _with_mock(session, item, function, None)
            cpu += sum(report.cpu_seconds for report in reports)
    ours = proof.cpu_seconds / len(judged)
    return Result(item.name, len(judged), len(proof.evidence), ours, len(chosen), cpu / len(chosen), mocks, equal)


def _with_mock(session: object, item: Input, function: Function, result: MockResult | None) -> ExecReport:
    """Run the whole suite with a mock on disk; without one only bring the original back."""
    code = function.code
    body = code.body if result is None else result.body.encode()
    files = {f"/w/src/{function.target.path}": code.left + body + code.right}
    job = Job(to_end=True) if result is not None else Job(ids=())
    return run_job(session, item.built, job, limits_of(CONFIG, CONFIG.suite_seconds), files=files)  # type: ignore[arg-type]


def _verdict_of(report: ExecReport, result: MockResult, tests: Sequence[str]) -> object:
    """Return what a run of the whole suite says about a mock, by the rules of ours."""
    run = report.main
    run.finished = True
    return verdict(Mock(result.kind, result.body), tests, run).verdict


@contextmanager
def sample_input():  # type: ignore[no-untyped-def]  # noqa: ANN201 - a context manager of an Input
    """Yield the sample repository with the pytest that is installed here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "clone").mkdir()
        git(folder / "clone", "init", "-q", "--bare", str(folder / "clone"))
        git(folder / "clone", "fast-import", "--quiet", stdin=SAMPLE.read_bytes())
        export_tree(
            folder / "clone", git(folder / "clone", "rev-parse", "refs/heads/main").decode().strip(), folder / "s"
        )
        (folder / "environment").mkdir()
        built = make_environment(folder / "environment")
        env: Mapping[str, str] = {**built.env, "PYTHONPATH": f"{built.env['PYTHONPATH']}:/w/src/src"}
        yield Input("sample", replace(built, env=env, source=folder / "s"))


@contextmanager
def repository_input(clone: Path, cache: Path):  # type: ignore[no-untyped-def]  # noqa: ANN201 - as above
    """Yield a bare clone's head with an environment that is built for it."""
    from sandbox.build import build_environment

    commit_id, seconds = run_git(clone, "log", "-1", "--format=%H %ct", "HEAD").decode().split()
    at = SourceCommit(clone.stem, commit_id, datetime.fromtimestamp(int(seconds), UTC))
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source"
        export_tree(clone, commit_id, source)
        yield Input(clone.stem, build_environment(source, at, open_backend(CONFIG), CONFIG, cache))


def line(one: Result) -> str:
    """Return a repository's line of the table."""
    return (
        f"{one.name:20} {one.functions:9} {one.proven:7} {60 / one.ours:9.1f} {60 / one.theirs:10.2f} "
        f"{one.ratio:7.1f} {f'{one.equal}/{one.mocks}':>9}"
    )


def report(results: Sequence[Result]) -> str:
    """Return the table."""
    lines = [HEAD, *map(line, results)]
    ratios = [one.ratio for one in results]
    lines.append(f"functions per minute of processor time: median ratio {statistics.median(ratios):.1f}")
    lines.append(
        f"lowest {min(ratios):.1f}; verdicts equal: {sum(r.equal for r in results)}/{sum(r.mocks for r in results)}"
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 1 when a verdict differs."""
    parser = argparse.ArgumentParser(description="Functions proven per minute of processor time, side by side.")
    parser.add_argument("--repo", type=Path, action="append", default=[], help="bare clone; may be repeated")
    parser.add_argument("--functions", type=int, default=5, help="functions on which the procedure is run")
    parser.add_argument("--limit", type=int, help="functions of each repository that are looked at (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "postquem-bench-environments")
    options = parser.parse_args(arguments)
    results = []
    for clone in options.repo or [None]:
        try:
            with repository_input(clone, options.cache) if clone else sample_input() as item:
                results.append(compare(item, options.functions, options.seed, options.limit))
            print(line(results[-1]), flush=True)  # the next one may take an hour
        except DataError as error:
            print(f"{clone.stem if clone else 'sample'}: {error}")
    if results:
        print(report(results))
    return int(not results or any(one.equal != one.mocks for one in results))


if __name__ == "__main__":
    raise SystemExit(main())
