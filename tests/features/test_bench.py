"""The benchmark of the features: its input and its table."""

import pytest

from bench.features import BATCH_FILES, CONTESTANTS, RADON_RAW, Batch, methods_of, read_batches, report, seconds_of


def test_methods_are_cut_as_the_miner_cuts_them() -> None:
    source = b"class C:\n    @d\n    def f(self):\n        return 1\n\ndef g(): pass\n"
    assert methods_of(source) == ["@d\ndef f(self):\n    return 1", "def g(): pass"]


def test_a_file_that_is_not_utf8_has_no_methods() -> None:
    assert methods_of(b"def f():\n    return '\xff'\n") == []


def test_batches_are_the_same_for_the_same_seed() -> None:
    first, second = ([batch.codes for batch in read_batches(BATCH_FILES + 2, seed=3)] for _ in range(2))
    assert first == second
    assert len(first) == 2


@pytest.fixture(scope="module")
def batches() -> list[Batch]:
    return list(read_batches(2, seed=0))


@pytest.mark.parametrize("name", CONTESTANTS)
def test_every_contestant_runs(batches: list[Batch], name: str) -> None:
    if name.startswith("radon"):
        pytest.importorskip("radon", reason="radon comes with the bench extra only")
    assert list(seconds_of(batches, [name], rounds=1)) == [name]


def test_the_table_gives_multiples_of_the_bare_parse() -> None:
    table = report({"bare parse": 0.5, "ours": 1.0}, n_methods=1_000)
    assert [line.split() for line in table.splitlines()] == [
        ["CPU", "s", "us/method", "CPU", "/", "bare", "parse"],
        ["bare", "parse", "0.500", "500.0", "1.00"],
        ["ours", "1.000", "1000.0", "2.00"],
    ]


def test_line_counts_of_some_files_are_scaled_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("bench.features.time.process_time", lambda: float(next(clock)))
    monkeypatch.setitem(CONTESTANTS, RADON_RAW, lambda _: None)
    batch = Batch(["x" * 10, "x" * 30], [], [], [], [])
    assert seconds_of([batch, batch], [RADON_RAW], rounds=3) == {RADON_RAW: 8.0}
