"""The README's first command on the embedded default, as a newcomer runs it: under Prefect, then without."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from flows.stopping import servers_of
from schemas.arrow import from_table, schema_of
from schemas.config import ALL_TESTBEDS, TESTBEDS
from schemas.execution import RealCode, Verdict
from testbeds.build import ROW_TYPES
from tests.flows.support import (
    ROOT,
    Outcome,
    build,
    fingerprints,
    make_repositories,
    new_process,
    postquem,
    write_config,
)

CONFIG = ROOT / "configs" / "quickstart.toml"
SQL_RUNNER = """
import duckdb
catalogue = duckdb.connect("data/postquem.duckdb", read_only=True)
rows = catalogue.sql('''{query}''').fetchall()
print(*rows, sep="\\n\\n")
"""


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """Run `postquem build` on the quickstart with an empty home; return the workspace and what it said."""
    folder = tmp_path_factory.mktemp("quickstart")
    (folder / "home").mkdir()
    outcome = new_process(
        "build", "--json", "--config", CONFIG, "--workspace", folder / "data", env={"HOME": str(folder / "home")}
    )  # fmt: skip
    assert outcome.code == 0, outcome.stderr
    return folder, outcome


def release_of(folder: Path) -> Path:
    return folder / "data" / "releases" / "quickstart"


def test_every_testbed_comes_out_non_empty(quickstart: tuple[Path, Outcome]) -> None:
    rows = quickstart[1].summary["testbeds"]
    assert list(rows) == list(ALL_TESTBEDS)
    assert all(rows[name] > 0 for name in TESTBEDS), rows


def test_the_users_home_and_prefect_profile_are_left_alone(quickstart: tuple[Path, Outcome]) -> None:
    folder, _ = quickstart
    assert not (folder / "home" / ".prefect").exists()
    assert (folder / "data" / ".prefect" / "prefect.db").is_file()


# What real_code makes of every new function of `foyer` that is no test (samples/README.md, "Execution").
FOYER_TASKS = {
    "ticket_number", "say_number", "Roll.from_label", "Roll.rolls_needed", "row_name", "SeatPlan.best_block",
    "SeatPlan.take", "price_of", "WaitingList.serve", "WaitingList.note", "longest_wait", "check_digit", "read_number",
    "split_seat", "Roll.tear", "SeatPlan.free_seats", "SeatPlan.hold", "WaitingList.ask", "Roll.left", "Roll.__init__",
    "SeatPlan.__init__", "WaitingList.join", "SeatPlan.state", "badge",
}  # fmt: skip
FOYER_DROPPED = [
    ("SeatPlan.draw", "mock_survived"), ("SeatPlan.state", "near_duplicate"), ("SeatPlan.state", "trivial_body"),
    ("bill", "mock_survived"), ("cloakroom_number", "only_flaky_tests"), ("export_sales", "not_covered"),
    ("family_rebate", "mock_survived"), ("first_called", "only_flaky_tests"), ("is_preview", "mock_survived"),
    ("money", "not_at_head"), ("print_receipt", "not_covered"), ("radio_words", "runs_at_import"),
]  # fmt: skip


@pytest.mark.usefixtures("sandboxed")
def test_functions_of_foyer_are_proven_or_dropped_as_its_tests_deserve(quickstart: tuple[Path, Outcome]) -> None:
    release = release_of(quickstart[0])
    rows = duckdb.sql(
        f"select fun_name, flaky_tests from read_parquet('{release}/real_code/*.parquet') where repo = 'samples/foyer'"
    ).fetchall()
    assert sorted(name for name, _ in rows) == sorted(FOYER_TASKS)
    assert {name: flaky for name, flaky in rows if flaky} == {
        "badge": ["tests/test_waiting.py::test_badges_of_all_guests"]
    }
    dropped = duckdb.sql(
        f"select fun_name, reason from read_parquet('{release}/exclusions/*.parquet') where repo = 'samples/foyer' and "
        "(stage = 'real_code' or stage like 'dedup%') and reason != 'is_test' order by all"
    ).fetchall()
    assert dropped == FOYER_DROPPED


@pytest.mark.usefixtures("sandboxed")
def test_every_row_of_real_code_is_its_file_and_names_tests_that_fail(quickstart: tuple[Path, Outcome]) -> None:
    folder, outcome = quickstart
    table = pq.read_table(release_of(folder) / "real_code")
    rows = list(from_table(table, RealCode))
    assert len(rows) == outcome.summary["testbeds"]["real_code"] > len(FOYER_TASKS)
    for row in rows:
        clone = folder / "data" / "repos" / "local" / f"{row.repo}.git"
        blob = subprocess.run(
            ["git", "--git-dir", str(clone), "show", f"{row.base_commit}:{row.path}"], check=True, capture_output=True
        ).stdout
        assert (row.left_context + row.canonical_solution + row.right_context).encode() == blob
        assert row.FAIL_TO_PASS
        assert set(row.FAIL_TO_PASS) <= set(row.PASS_TO_PASS)
        assert not set(row.flaky_tests) & set(row.PASS_TO_PASS)
        assert {mock.verdict for mock in row.mocks} == {Verdict.CAUGHT}
        assert row.runs == 4


def test_datasets_loads_every_testbed_with_its_schema(quickstart: tuple[Path, Outcome], tmp_path: Path) -> None:
    program = (
        "import sys, json; from datasets import load_dataset;"
        "loaded = {name: load_dataset(sys.argv[1], name, split='test') for name in sys.argv[2:]};"
        "print(json.dumps({name: [rows.num_rows, rows.column_names] for name, rows in loaded.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(release_of(quickstart[0])), *TESTBEDS],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "HF_DATASETS_OFFLINE": "1"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == {
        name: [quickstart[1].summary["testbeds"][name], schema_of(ROW_TYPES[name]).names] for name in TESTBEDS
    }


DOCUMENTS = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tutorial.md"))
README_BLOCKS = re.findall(r"```(python|sql)\n(.*?)```", DOCUMENTS, re.DOTALL)


@pytest.mark.parametrize("kind", ["python", "sql"])
def test_the_snippets_of_readme_and_tutorial_run_on_the_quickstart(
    quickstart: tuple[Path, Outcome], tmp_path: Path, kind: str
) -> None:
    snippets = [text for language, text in README_BLOCKS if language == kind]
    assert snippets
    for text in snippets:
        code = text if kind == "python" else SQL_RUNNER.format(query=text)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=quickstart[0],
            env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "HF_DATASETS_OFFLINE": "1"},
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_duckdb_reads_every_testbed(quickstart: tuple[Path, Outcome]) -> None:
    release = release_of(quickstart[0])
    counted = {
        name: duckdb.sql(f"select count(*) from read_parquet('{release}/{name}/*.parquet')").fetchall()[0][0]
        for name in ALL_TESTBEDS
    }
    assert counted == quickstart[1].summary["testbeds"]


def test_the_catalogue_tells_of_exclusions_what_the_release_tells(quickstart: tuple[Path, Outcome]) -> None:
    """Each finds their places by itself, in SQL and in flows/releasing.py."""
    folder, _ = quickstart
    files = f"read_parquet('{release_of(folder)}/exclusions/*.parquet')"
    with duckdb.connect(folder / "data" / "postquem.duckdb", read_only=True) as catalogue:
        shown, told = (
            sorted(catalogue.sql(f"select columns(*)::varchar from {rows}").fetchall(), key=str)
            for rows in ("exclusions", files)
        )
    assert shown == told
    assert {tuple(place is None for place in row[-4:]) for row in told} >= {
        (False, False, False, False), (False, False, False, True), (False, False, True, True),
    }  # fmt: skip


def test_prefix_and_target_of_every_row_make_the_source(quickstart: tuple[Path, Outcome]) -> None:
    release = release_of(quickstart[0])
    rows = duckdb.sql(
        f"select code, prefix, target, cut_byte from read_parquet('{release}/with_docstring/*.parquet')"
    ).fetchall()
    assert len(rows) > 10
    for code, prefix, target, cut_byte in rows:
        assert prefix + target == code
        assert len(prefix.encode()) == cut_byte


def test_no_two_rows_are_duplicates_and_all_are_after_the_cutoff(quickstart: tuple[Path, Outcome]) -> None:
    release = release_of(quickstart[0])
    [(rows, ids, codes, first)] = duckdb.sql(
        "select count(*), count(distinct row_id), count(distinct code), min(least(author_date, committer_date))"
        f" from read_parquet('{release}/raw_data/*.parquet')"
    ).fetchall()
    assert rows == ids == codes
    assert first.isoformat() >= "2026-01-01"


def test_manifest_hashes_are_those_of_the_files(quickstart: tuple[Path, Outcome]) -> None:
    release = release_of(quickstart[0])
    manifest = json.loads((release / "manifest.json").read_text())
    listed = {entry["path"]: entry["sha256"] for entry in manifest["files"]}
    assert set(listed) == {path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file()} - {
        "manifest.json"
    }
    for path, digest in listed.items():
        assert hashlib.sha256((release / path).read_bytes()).hexdigest() == digest


def test_the_documented_page_has_rows_of_every_testbed_to_mark(quickstart: tuple[Path, Outcome]) -> None:
    folder, outcome = quickstart
    done = postquem("report", "data/releases/quickstart", cwd=folder)
    assert done.code == 0, done.stderr
    text = (folder / "data" / "releases" / "quickstart.html").read_text(encoding="utf-8")
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    shown = [item["testbed"] for item in json.loads(data)["items"]]
    assert len(shown) == 960
    with_rows = [name for name, rows in outcome.summary["testbeds"].items() if rows]
    assert list(dict.fromkeys(shown)) == with_rows
    assert all(name in text for name in ("samples/foyer", "mock_survived", "BSD-3-Clause"))


def test_no_path_of_this_machine_is_in_the_release(quickstart: tuple[Path, Outcome]) -> None:
    folder, _ = quickstart
    for path in release_of(folder).rglob("*"):
        if path.suffix in (".md", ".json"):
            text = path.read_text(encoding="utf-8")
            assert str(folder) not in text
            assert str(ROOT) not in text


def test_a_plain_run_with_one_worker_and_another_hash_seed_gives_the_bytes_of_the_prefect_run(
    quickstart: tuple[Path, Outcome], tmp_path: Path
) -> None:
    outcome = build(CONFIG, tmp_path / "data", "--workers", "1", env={"PYTHONHASHSEED": "977"})
    assert outcome.code == 0, outcome.stderr
    assert fingerprints(release_of(tmp_path)) == fingerprints(release_of(quickstart[0]))


NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc")


@NEEDS_PROC
def test_ctrl_c_under_prefect_ends_the_run_and_its_server_at_once(
    quickstart: tuple[Path, Outcome], tmp_path: Path
) -> None:
    config = write_config(tmp_path, [str(builder.path) for builder in make_repositories(tmp_path).values()])
    workspace = tmp_path / "data"
    # The server's database as the quickstart left it: to make one takes Prefect 15 CPU seconds.
    shutil.copytree(quickstart[0] / "data" / ".prefect", workspace / ".prefect")
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "build", "--config", str(config), "--workspace", str(workspace)],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not list(workspace.glob("repos/local/acme/*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the server and the workers get it too
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.endswith("Interrupted. What is finished is kept; run the same command again to go on.\n")
    assert "Traceback" not in stderr
    assert servers_of(workspace / ".prefect") == []


@NEEDS_PROC
def test_prefect_run_killed_with_9_is_taken_up_and_its_server_ended(tmp_path: Path) -> None:
    config = write_config(tmp_path, [str(builder.path) for builder in make_repositories(tmp_path).values()])
    workspace = tmp_path / "data"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "build", "--config", str(config), "--workspace", str(workspace)],
            cwd=ROOT, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while not servers_of(workspace / ".prefect") and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    orphans = servers_of(workspace / ".prefect")
    assert orphans
    outcome = new_process("build", "--json", "--config", config, "--workspace", workspace)
    assert outcome.code == 0, outcome.stderr
    assert not set(orphans) & set(servers_of(workspace / ".prefect"))
    plain = build(config, tmp_path / "plain")
    assert plain.code == 0
    assert fingerprints(workspace / "releases") == fingerprints(tmp_path / "plain" / "releases")
