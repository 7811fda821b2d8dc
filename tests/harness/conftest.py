"""The harnesses are an extra: `make test-harness` runs these tests, elsewhere they are not collected."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # read when `datasets` is imported
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

import pytest

from tests.publishing.sound import write_sound_release
from warehouse.tables import read_table

collect_ignore = [
    name
    for name, package in (("test_lm_eval.py", "lm_eval"), ("test_inspect.py", "inspect_ai"))
    if not find_spec(package)
]

# Stands for `postquem score`, which needs a sandbox: an answer passes when it is the canonical solution of its task.
STUB = """
import json, sys
solutions = json.load(open(sys.argv[1]))
options = dict(zip(sys.argv[4::2], sys.argv[5::2]))
answers = [json.loads(line) for line in open(options["--answers"], encoding="utf-8")]
with open(options["--out"], "w", encoding="utf-8") as out:
    for answer in answers:
        known = solutions.get(answer["instance_id"])
        verdict = "unscored" if known is None else "passed" if answer["answer"] == known else "failed"
        row = {"instance_id": answer["instance_id"], "sample": 0, "verdict": verdict, "reason": "control_failed"}
        print(json.dumps(row), file=out)
"""


def rows_of(release: Path, config: str) -> list[dict[str, object]]:
    [path] = (release / config).glob("test-*.parquet")
    rows: list[dict[str, object]] = read_table(path).to_pylist()
    return rows


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_release(tmp_path_factory.mktemp("releases"))


@pytest.fixture
def scorer(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command that scores real_code; returns the file of known solutions."""
    solutions = {str(row["instance_id"]): row["canonical_solution"] for row in rows_of(release, "real_code")}
    known = tmp_path / "solutions.json"
    known.write_text(json.dumps(solutions))
    (tmp_path / "stub.py").write_text(STUB)
    monkeypatch.setenv("POSTQUEM", f"{sys.executable} {tmp_path / 'stub.py'} {known}")
    return known


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what `datasets` caches in the test's folder."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
