"""Proves the data points of one repository: tree, environment, tests, mocks, rows."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from miners.clone import Clone
from miners.faults import reading_clone
from miners.partial import fetch_files, is_partial
from sandbox.backends import open_backend
from sandbox.build import build_environment
from sandbox.environment import BuiltEnvironment
from sandbox.exported import exported
from sandbox.protocol import Backend, SandboxSpec
from sandbox.prove import Proof, prove
from sandbox.targets import Target
from schemas.config import Config
from schemas.errors import ConfigError, DataError
from schemas.execution import RealCode, RealCodeRun
from schemas.records import DataPoint, Exclusion
from testbeds.order import total_order
from testbeds.real_code import STAGE, Candidate, Execution, choose_candidates, exclude_all, make_row


@dataclass(frozen=True, slots=True)
class Folders:
    """Where proving keeps things between runs, and where it works."""

    environments: Path
    """Built environments and the resolver's cache; can be deleted between runs."""
    trees: Path
    """Trees that are being executed; what a killed run left is removed by the next."""


@dataclass(frozen=True, slots=True)
class Proven:
    """What became of one repository's data points."""

    rows: list[RealCode]
    """Proven functions, in the release's order."""
    excluded: list[Exclusion]
    """One for every other data point, in the release's order."""
    run: RealCodeRun
    """What it cost."""
    final: bool = True
    """False when the machine, not the repository, is to blame."""


def prove_points(
    points: Sequence[DataPoint], clone: Clone, config: Config, folders: Folders, *, allowed: bool
) -> Proven:
    """Return what can be proven of a repository's data points at its head, and why the others are not.

    ConfigError when no sandbox can be had, unless `real_code.optional` is set; TransientError when the package index
    or the sandbox fails.
    """
    record = clone.record
    run = RealCodeRun(record.repo, record.head)
    rank = {point.row_id: total_order(point) for point in points}
    try:
        with reading_clone():
            kept = choose_candidates(points, clone.git_dir, record.head, config.real_code, config.mining.max_file_bytes)
            if allowed and kept.rows:
                fetch_files(clone.git_dir, record.head)  # the rest of the tree
    except DataError as error:
        unread = [Exclusion(row_id, STAGE, error.reason, error.detail) for row_id in sorted(rank, key=rank.__getitem__)]
        # What a partial clone lacks may be had another time.
        return Proven([], unread, replace(run, reason=error.reason), final=not is_partial(clone.git_dir))
    final = True
    try:
        if not allowed:
            raise DataError("execution_off", "by `execute = false` of its source")
        proven = _Prover(clone, config, folders, run).prove(kept.rows) if kept.rows else Proven([], [], run)
    except DataError as error:
        proven = _none(kept.rows, run, error)
    except ConfigError as error:
        if not config.real_code.optional:
            raise
        proven, final = _none(kept.rows, run, DataError("no_sandbox", str(error))), False
    excluded = sorted([*kept.excluded, *proven.excluded], key=lambda item: rank[item.row_id])
    return replace(proven, excluded=excluded, final=final)


def _none(candidates: Sequence[Candidate], run: RealCodeRun, error: DataError) -> Proven:
    run = replace(run, reason=error.reason, n_candidates=len(candidates))
    return Proven([], exclude_all(candidates, error.reason, error.detail), run)


class _Prover:
    """Executes one repository."""

    def __init__(self, clone: Clone, config: Config, folders: Folders, run: RealCodeRun) -> None:
        self.clone = clone
        self.config = config.real_code
        self.folders = folders
        self.run = run

    def prove(self, candidates: Sequence[Candidate]) -> Proven:
        """Return the rows of the candidates that their tests prove, and the reasons of the others."""
        backend = open_backend(self.config)
        record = self.clone.record
        with exported(self.clone.git_dir, record.repo, record.head, self.folders.trees) as (tree, at):
            began = time.monotonic()
            built = build_environment(tree, at, backend, self.config, self.folders.environments)
            environment_ready = time.monotonic()
            proof = self._execute(backend, built, candidates)
            proven = self._rows(candidates, built, proof)
            return replace(
                proven,
                run=replace(
                    proven.run,
                    build_seconds=environment_ready - began,
                    proof_seconds=time.monotonic() - environment_ready,
                    proof_cpu_seconds=proof.cpu_seconds,
                ),
            )

    def _execute(self, backend: Backend, built: BuiltEnvironment, candidates: Sequence[Candidate]) -> Proof:
        spec = SandboxSpec(source=built.source, binds=built.binds, env=built.env)
        files = {item.point.path: item.place.source.raw for item in candidates}
        targets = [
            Target(item.point.row_id, item.point.path, item.point.fun_name, item.place.start_byte)
            for item in candidates
        ]  # fmt: skip
        return prove(backend, spec, built, files, targets, self.config)

    def _rows(self, candidates: Sequence[Candidate], built: BuiltEnvironment, proof: Proof) -> Proven:
        by_id = {item.point.row_id: item for item in candidates}
        command = " ".join(["python", "-m", "pytest", *built.environment.pytest_args])
        execution = Execution(self.clone.record.head, built.environment, command, proof.runs)
        rows = [make_row(by_id[found.function.target.row_id], found, execution) for found in proof.evidence]
        excluded = [Exclusion(item.target.row_id, STAGE, item.reason, item.detail) for item in proof.dropped]
        judged = [*(found.mocks for found in proof.evidence), *(item.mocks for item in proof.dropped)]
        run = replace(
            self.run,
            python=built.environment.python,
            isolation=built.environment.isolation,
            n_tests=len(proof.tests),
            n_flaky=len(proof.flaky),
            n_candidates=len(candidates),
            n_mocks=sum(map(len, judged)),
            n_tasks=len(rows),
        )
        return Proven(rows, excluded, run)
