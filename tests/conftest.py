"""Settings of all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.github.server import make_certificate

# The tests start some hundred processes of ours; without kept byte code each would compile all modules anew, which
# takes as long as the small runs themselves.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No deadline for one example: on a loaded machine, or when the first example loads a model, it tells nothing about
# the code. All else stays as in the profile that hypothesis chose, which is another one under CI.
settings.register_profile("postquem", deadline=None)
settings.load_profile("postquem")

# The files that take longest, longest first (measured 2026-11-30, more than ten seconds on an idle core): started
# last, one of them would run alone at the end. A new one that is missing here costs only that.
LONGEST = (
    "flows/test_quickstart.py", "flows/test_deployments.py", "sandbox/test_build.py", "flows/test_real_code.py",
    "sandbox/test_fresh.py", "flows/test_dask.py", "github/test_cadence.py", "sandbox/test_prove.py",
    "flows/test_score_answers.py",
    "flows/test_build.py", "dedup/test_partitions.py", "dedup/test_bench.py", "miners/test_partial.py",
    "github/test_discovery.py", "publishing/test_check.py", "flows/test_bad_input.py", "miners/test_incremental.py",
    "miners/test_rescan.py", "sandbox/test_splice.py", "dedup/test_near.py", "flows/test_sources.py",
    "features/test_lizard_agreement.py", "miners/test_hostile_files.py", "miners/test_methods.py",
    "sandbox/test_collecting.py", "github/test_job.py", "sandbox/backends/test_containment.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest; the others keep their order."""
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def pytest_xdist_auto_num_workers() -> int | None:
    """Run three files more at a time than there are cores: tests wait for servers, clocks and killed processes.

    Five workers on two cores need 6 minutes (2026-11-30).
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # xdist reads it
    return len(os.sched_getaffinity(0)) + 3 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 3


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost and its key, for tests over HTTPS."""
    made = make_certificate(tmp_path_factory.mktemp("certificate"))
    if made is None:
        pytest.skip("openssl makes the certificate of the loopback server")
    return made
