"""How the work on repositories is shared among workers: who begins first, how many each gets, what runs beside."""

import gc
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from flows import steps
from flows.cloning import mine_clones, open_source, shares_of
from flows.pool import Packed, WorkerPool
from flows.run import Run, open_run
from flows.sources import plan_sources
from flows.steppers import PlainStepper
from miners.clone import Clone
from schemas.errors import TransientError
from tests.builders import RepoBuilder
from tests.flows.support import AFTER, BEFORE, source_text, write_config
from warehouse.ledger import Unit


def test_a_packed_value_comes_out_equal_and_the_collector_is_on_again() -> None:
    packed = pickle.loads(pickle.dumps(Packed({"a": (1, "b")})))
    assert packed.open() == packed.take() == {"a": (1, "b")}
    assert gc.isenabled()
    with pytest.raises(EOFError):  # its bytes are gone
        packed.open()


@pytest.mark.parametrize(
    ("sizes", "n_workers", "shares"),
    [
        ([7], 4, [4]),
        ([7], 1, [1]),
        ([10, 10, 10, 10], 2, [1, 1, 1, 2]),
        ([90, 5, 5], 4, [4, 2, 4]),
        ([16_238, 13_145, 3_329, 2_314], 2, [1, 1, 1, 2]),
        ([0, 0], 2, [1, 1]),
        ([], 2, []),
    ],
)
def test_a_repository_gets_the_workers_that_its_part_of_what_is_left_is_worth(
    sizes: Sequence[int], n_workers: int, shares: Sequence[int]
) -> None:
    assert shares_of(sizes, n_workers) == shares


class Recorder(PlainStepper):
    """Carries out steps plainly and notes the order of the items."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def each(
        self, stage: str, step: Callable[[Run, Any], Any], run: Run, items: Sequence[Any], name: Callable[[Any], str]
    ) -> list[Any]:
        self.names += [name(item) for item in items]
        return super().each(stage, step, run, items, name)


@pytest.fixture
def locations(tmp_path: Path) -> list[str]:
    """Build two repositories; the second one by name has more commits."""
    for name, words in (("alpha", ["age"]), ("beta", ["size", "cost"])):
        builder = RepoBuilder(tmp_path / "acme" / f"{name}.git")
        builder.commit({"old.py": source_text("old")}, "Start", BEFORE)
        for word in words:
            builder.commit({f"{word}.py": source_text(word)}, "Add", AFTER)
    return [str(tmp_path / "acme" / f"{name}.git") for name in ("alpha", "beta")]


def clones_of(run: Run) -> list[Clone]:
    opened = [open_source(run, source) for source in plan_sources(run.config, run.base).rows]
    return [clone for clone in opened if isinstance(clone, Clone)]


def test_the_longest_history_is_begun_first_and_results_keep_their_order(tmp_path: Path, locations: list[str]) -> None:
    config, files = write_config(tmp_path, locations), []
    for workers in (1, 2):
        with open_run(config, tmp_path / f"data{workers}", workers) as run:
            recorder = Recorder()
            mined = mine_clones(run, recorder, clones_of(run), plan_sources(run.config, run.base).rows)
            assert recorder.names == ["acme/beta", "acme/alpha"]
            assert [clone.record.repo for clone in mined.clones] == ["acme/alpha", "acme/beta"]
            assert [unit.partition for unit in mined.units] == ["acme/alpha", "acme/beta"]
            cutoffs = [run.ledger.former("cutoff", unit.partition) for unit in mined.units]
            files.append([unit.digest for unit in (*mined.units, *filter(None, cutoffs))])
    assert len(files[0]) == 4
    assert files[0] == files[1]


def test_what_is_mined_stays_when_the_old_tree_cannot_be_read_for_now(
    tmp_path: Path, locations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, called = [], []
    read_cutoff, compute = steps.read_cutoff, WorkerPool.run

    def watched(self: WorkerPool, function: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - passed through
        called.append(function.__name__)
        return compute(self, function, *args)

    def fail_once(run: Run, clone: Clone) -> Unit:
        tried.append(clone.record.repo)
        if len(tried) == 1:
            raise TransientError("the worker died")
        return read_cutoff(run, clone)

    monkeypatch.setattr(WorkerPool, "run", watched)
    monkeypatch.setattr("flows.steps.read_cutoff", fail_once)
    with open_run(write_config(tmp_path, locations[:1]), tmp_path / "data", 2) as run:
        mined = mine_clones(run, PlainStepper(), clones_of(run), plan_sources(run.config, run.base).rows)
        [unit] = mined.units
        assert tried == ["acme/alpha", "acme/alpha"]
        assert called.count("mine") == 1
        assert run.ledger.former("mine", "acme/alpha") == unit
        cutoff = run.ledger.former("cutoff", "acme/alpha")
        assert cutoff is not None
        assert cutoff.reports[0].rows_out == 1
