"""Arguments that make runs of a repository's tests alike: its own options stay, ours come behind them."""

from collections.abc import Collection, Sequence

# Package, the argument that quiets its plugin, and the options whose presence forbids the argument: pytest refuses an
# option whose plugin is switched off, and benchmarks refuse to be wanted and not wanted at once.
_QUIET = (
    ("pytest-xdist", ("-n0",), ()),
    ("pytest-cov", ("--no-cov",), ()),
    ("pytest-randomly", ("-p", "no:randomly"), ("--randomly", "randomly")),
    ("pytest-random-order", ("--random-order-bucket=none",), ()),
    ("pytest-benchmark", ("--benchmark-disable",), ("--benchmark-only", "--benchmark-enable", "--benchmark-skip")),
    ("pytest-rerunfailures", ("--reruns=0",), ()),
    ("pytest-sugar", ("-p", "no:sugar"), ("--force-sugar", "--old-summary", "sugar")),
)
_CACHE = (
    "--lf",
    "--last-failed",
    "--ff",
    "--failed-first",
    "--nf",
    "--new-first",
    "--cache",
    "--lfnf",
    "--sw",
    "--stepwise",
)


def run_arguments(addopts: Sequence[str], installed: Collection[str], name: str | None) -> tuple[str, ...]:
    """Return the arguments for packages that are installed; `name` is the project, never quieted by itself.

    No parallel runs, no coverage, no random order, no reruns that would hide flaky tests, no cache folder in the tree.
    """
    arguments: list[str] = []
    for package, quiet, forbidding in _QUIET:
        if package in installed and package != name and not _has(addopts, forbidding):
            arguments += quiet
    if not _has(addopts, _CACHE):
        arguments += ("-p", "no:cacheprovider")
    return tuple(arguments)


def _has(addopts: Sequence[str], options: Sequence[str]) -> bool:
    return any(word.startswith(option) for word in addopts for option in options)
