"""Syntax features and metrics side by side: ours, lizard's and radon's, in multiples of a bare tree-sitter parse.

    python -m bench.features [--files 400] [--rounds 5] [--seed 0]

Input: the methods of files of the running Python's standard library and installed packages. All contestants read the
same texts in one process, a batch of methods at a time and all contestants in turn on each, so that a busy machine
slows all alike; of each batch the fastest of the rounds counts. The bare parse is tree-sitter's of each method's text
and nothing else. lizard and radon are also run on the whole files, as their users run them. radon's line counts take
minutes: they are run once on the first file of each batch, and scaled by size to all files.
"""

import argparse
import random
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import tree_sitter

from features.compute import METHODS_AT_A_TIME, compute_features, syntax_features
from features.docstrings import docstring_of
from features.language import identify_language
from features.parsing import accepted_by_cpython, parse_method
from miners.methods import dedent, find_methods
from miners.syntax import PYTHON, check_comment_runs, parse
from schemas.config import FeaturesConfig
from schemas.errors import DataError
from schemas.records import Method
from tests.builders import make_method

BATCH_FILES = 10
RAW_FILES = 1  # of a batch
MAX_FILE_BYTES = 200_000  # larger ones are tables, on which lizard takes minutes
RADON_RAW = "radon raw on files (1 in 10, scaled)"
_PARSER = tree_sitter.Parser(PYTHON)
_FEATURES = FeaturesConfig()


@dataclass(frozen=True, slots=True)
class Batch:
    """Some files and their methods, in every form that a contestant reads."""

    files: list[str]
    """Texts of the files."""
    codes: list[str]
    """Texts of the methods, each parsed alone by everyone."""
    sources: list[bytes]
    """The same in UTF-8."""
    methods: list[Method]
    """The same as rows of the table `methods`."""
    docstrings: list[str]
    """Docstrings of the methods that have one."""


def read_batches(count: int, seed: int) -> Iterator[Batch]:
    """Yield batches of `count` installed files that hold methods, in a seeded order."""
    bases = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    paths = sorted({path for base in bases for path in base.rglob("*.py")})
    random.Random(seed).shuffle(paths)
    found: list[tuple[str, list[str]]] = []
    for path in paths:
        if count <= 0:
            break
        if path.stat().st_size <= MAX_FILE_BYTES and (codes := methods_of(source := path.read_bytes())):
            found.append((source.decode("utf-8"), codes))
            count -= 1
            if len(found) == BATCH_FILES or not count:
                yield _batch(found)
                found = []


def methods_of(source: bytes) -> list[str]:
    """Return the texts of a file's methods as the miner cuts them; none when the miner would refuse the file."""
    try:
        source.decode("utf-8")
        check_comment_runs(source)
    except (UnicodeDecodeError, DataError):
        return []
    codes = []
    for span in find_methods(source, parse(source)):
        try:
            code = dedent(source, span)
            parse_method(code)
        except DataError:
            continue
        codes.append(code)
    return codes


def _batch(found: Sequence[tuple[str, list[str]]]) -> Batch:
    codes = [code for _, own in found for code in own]
    docstrings = [text for code in codes if (text := docstring_of(parse_method(code))) is not None]
    methods = [make_method(code=code) for code in codes]
    return Batch([text for text, _ in found], codes, [code.encode() for code in codes], methods, docstrings)


def bare_parse(batch: Batch) -> None:
    """Parse each method with tree-sitter: the unit of all ratios."""
    for source in batch.sources:
        _PARSER.parse(source)


def syntax_and_metrics(batch: Batch) -> None:
    """Compute the syntax columns and software metrics of the data contract, parsing included."""
    for start in range(0, len(batch.codes), METHODS_AT_A_TIME):
        codes = batch.codes[start : start + METHODS_AT_A_TIME]
        syntax_features(codes, [parse_method(code) for code in codes])


def everything(batch: Batch) -> None:
    """Compute all columns of data points, as the pipeline does."""
    compute_features(batch.methods, _FEATURES)


def docstring_language(batch: Batch) -> None:
    """Identify the language of the docstrings (a part of everything)."""
    for docstring in batch.docstrings:
        identify_language(docstring)


def cpython_verdict(batch: Batch) -> None:
    """Ask CPython's parser whether it accepts each method (a part of everything)."""
    for code in batch.codes:
        accepted_by_cpython(code)


def lizard_methods(batch: Batch) -> None:
    """Run lizard on each method: complexity, nloc, token_count."""
    _lizard(batch.codes)


def lizard_files(batch: Batch) -> None:
    """Run lizard on the whole files."""
    _lizard(batch.files)


def radon_methods(batch: Batch) -> None:
    """Run radon's complexity on each method."""
    _radon_complexity(batch.codes)


def radon_files(batch: Batch) -> None:
    """Run radon's complexity on the whole files."""
    _radon_complexity(batch.files)


def radon_raw_files(batch: Batch) -> None:
    """Run radon's line counts on some of the files: on all they would cost more than everything else."""
    from radon.raw import analyze  # type: ignore[import-untyped]  # radon ships no types

    for text in batch.files[:RAW_FILES]:
        try:
            analyze(text)
        except SyntaxError:  # what the running CPython refuses, radon does not measure
            continue


def _lizard(texts: Sequence[str]) -> None:
    import lizard  # here: it puts the folder of the running script before all others, where our module hides a package

    for text in texts:
        lizard.analyze_file.analyze_source_code("x.py", text)


def _radon_complexity(texts: Sequence[str]) -> None:
    from radon.complexity import cc_visit  # type: ignore[import-untyped]  # radon ships no types

    for text in texts:
        try:
            cc_visit(text)
        except SyntaxError:  # what the running CPython refuses, radon does not measure
            continue


CONTESTANTS: dict[str, Callable[[Batch], None]] = {
    "bare parse": bare_parse,
    "ours: syntax features and metrics": syntax_and_metrics,
    "ours: all columns": everything,
    "  of these: language of docstrings": docstring_language,
    "  of these: CPython's verdict": cpython_verdict,
    "lizard on the methods": lizard_methods,
    "lizard on the files": lizard_files,
    "radon cc on the methods": radon_methods,
    "radon cc on the files": radon_files,
    RADON_RAW: radon_raw_files,
}


def seconds_of(batches: Sequence[Batch], names: Sequence[str], rounds: int) -> dict[str, float]:
    """Return CPU seconds (user and system) by contestant: the sum over batches of the fastest round."""
    totals = dict.fromkeys(names, 0.0)
    for batch in batches:
        best = dict.fromkeys(names, float("inf"))
        for number in range(rounds):
            for name in names:
                if name == RADON_RAW and number:
                    continue
                before = time.process_time()
                CONTESTANTS[name](batch)
                best[name] = min(best[name], time.process_time() - before)
        for name in names:
            totals[name] += best[name]
    if RADON_RAW in totals:
        totals[RADON_RAW] *= _raw_scale(batches)
    return totals


def _raw_scale(batches: Sequence[Batch]) -> float:
    """Return the size of all files in multiples of those whose lines radon counts."""
    read = sum(len(text) for batch in batches for text in batch.files[:RAW_FILES])
    return sum(len(text) for batch in batches for text in batch.files) / read


def report(seconds: dict[str, float], n_methods: int) -> str:
    """Return the table of results: the ratio to the bare parse is what counts."""
    unit = seconds["bare parse"]
    lines = [f"{'':36} {'CPU s':>8} {'us/method':>10} {'CPU / bare parse':>17}"]
    lines += [
        f"{name:36} {value:8.3f} {value / n_methods * 1e6:10.1f} {value / unit:17.2f}"
        for name, value in seconds.items()
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all contestants; radon is left out when it is not installed."""
    parser = argparse.ArgumentParser(description="Syntax features and metrics side by side.")
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    batches = list(read_batches(options.files, options.seed))
    n_methods = sum(len(batch.codes) for batch in batches)
    size = sum(len(source) for batch in batches for source in batch.sources)
    print(
        f"{n_methods} methods of {sum(len(batch.files) for batch in batches)} files, {size / n_methods:.0f} bytes each"
    )
    names = [name for name in CONTESTANTS if not name.startswith("radon") or find_spec("radon") is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the installed files' own escapes, from radon's use of ast
        print(report(seconds_of(batches, names, options.rounds), n_methods))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
