"""The sample repository foyer, proven with an environment of the running interpreter, as rows of real_code."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from miners.checkout import export_tree
from miners.methods import find_methods
from miners.syntax import parse
from sandbox.environment import BuiltEnvironment
from sandbox.protocol import Backend, SandboxSpec
from sandbox.prove import Evidence, Proof, prove
from sandbox.targets import Target
from schemas.execution import RealCode, RealCodeConfig
from schemas.records import make_row_id
from testbeds.task import extend
from tests.builders import git, make_point
from tests.samples.support import SAMPLES, import_stream

REPO = "samples/foyer"


@dataclass(frozen=True)
class Foyer:
    """What the tests need of it."""

    git_dir: Path
    tree: Path
    built: BuiltEnvironment
    proof: Proof
    rows: tuple[RealCode, ...]

    def row(self, fun_name: str) -> RealCode:
        return next(row for row in self.rows if row.fun_name == fun_name)


def prove_foyer(folder: Path, environment: BuiltEnvironment, backend: Backend) -> Foyer:
    """Import the sample below a workspace's folder, export its newest tree and prove every method of it."""
    git_dir, tree = folder / "repos" / "local" / f"{REPO}.git", folder / "tree"
    git_dir.parent.mkdir(parents=True)
    import_stream((SAMPLES / "foyer.fi").read_bytes(), git_dir)
    head = git(git_dir, "rev-parse", "main").decode().strip()
    export_tree(git_dir, head, tree)
    path = f"{environment.env['PYTHONPATH']}:/w/src/src"
    built = replace(environment, source=tree, env={**environment.env, "PYTHONPATH": path})
    files = {file.relative_to(tree).as_posix(): file.read_bytes() for file in sorted(tree.glob("src/**/*.py"))}
    targets = [
        Target(make_row_id(REPO, head, path, span.fun_name, span.start_byte), path, span.fun_name, span.start_byte)
        for path, source in files.items()
        for span in find_methods(source, parse(source))
    ]
    spec = SandboxSpec(source=tree, binds=built.binds, env=built.env)
    proof = prove(backend, spec, built, files, targets, RealCodeConfig())
    return Foyer(git_dir, tree, built, proof, tuple(_row(found, head, built, proof.runs) for found in proof.evidence))


def _row(found: Evidence, head: str, built: BuiltEnvironment, runs: int) -> RealCode:
    target, code = found.function.target, found.function.code
    point = make_point(row_id=target.row_id, repo=REPO, path=target.path, fun_name=target.fun_name)
    return extend(
        point,
        RealCode,
        instance_id=f"samples__foyer-{head[:12]}-{target.row_id}",
        base_commit=head,
        intent_type="method" if "." in target.fun_name else "function",
        left_context=code.left.decode(),
        canonical_solution=code.body.decode(),
        right_context=code.right.decode(),
        PASS_TO_PASS=found.pass_to_pass,
        FAIL_TO_PASS=found.fail_to_pass,
        mocks=found.mocks,
        environment=built.environment,
        test_command="python -m pytest",
        runs=runs,
        flaky_tests=found.flaky_tests,
    )


def outcomes(proof: Proof) -> dict[str, Sequence[str]]:
    """Return `task` or the reason of every method, by name; overloads have several of one name."""
    found: dict[str, list[str]] = {}
    for evidence in proof.evidence:
        found.setdefault(evidence.function.target.fun_name, []).append("task")
    for dropped in proof.dropped:
        found.setdefault(dropped.target.fun_name, []).append(dropped.reason)
    return {name: sorted(reasons) for name, reasons in found.items()}
