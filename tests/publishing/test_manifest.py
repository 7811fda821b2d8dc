import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from publishing.manifest import (
    is_absolute,
    make_manifest,
    private_paths,
    public_location,
    published_config,
    read_manifest,
)
from schemas.arrow import SCHEMA_VERSION
from schemas.config import Config, SourceConfig, WindowConfig, digest_of
from schemas.records import RepositoryRecord
from tests.publishing.releases import CONFIG, make_inputs, with_release
from warehouse.reports import FunnelRow
from warehouse.tables import FileEntry

FILES = [FileEntry("raw_data/b.parquet", 1, "2" * 64, 20), FileEntry("README.md", None, "1" * 64, 10)]


def test_the_manifest_holds_what_the_release_was_made_from() -> None:
    manifest = json.loads(make_manifest(make_inputs(), {"raw_data": 6}, FILES).to_json())
    writer, config, digest = manifest.pop("parquet_writer"), manifest.pop("config"), manifest.pop("config_digest")
    assert writer.startswith("pyarrow ")
    assert config == published_config(CONFIG)
    assert digest == digest_of(config)
    assert manifest == {
        "name": "shapes",
        "version": "1.2.0",
        "schema_version": SCHEMA_VERSION,
        "code_version": "0.1.0",
        "python_version": "3.11.9",
        "grammar_version": "tree-sitter-python 0.25.0",
        "tokenizer_sha256": "7" * 64,
        "seeds": {"testbeds.seed": 20_240_101},
        "discovery": None,
        "repositories": [
            {
                "repo": "example/shapes",
                "host": "local",
                "repo_id": None,
                "web_url": None,
                "default_branch": "main",
                "head": "d" * 40,
                "n_commits": 12,
                "aliases": [],
            },
            {
                "repo": "o/n",
                "host": "example.org",
                "repo_id": 7,
                "web_url": "https://example.org/o/n",
                "default_branch": "devel",
                "head": "e" * 40,
                "n_commits": 30,
                "aliases": ["o/earlier"],
            },
        ],
        "cutoffs": {},
        "duplicates": {
            "n_clusters": 0,
            "n_members": 0,
            "n_cross_repository": 0,
            "n_one_commit": 0,
            "n_one_author": 0,
            "largest": [],
            "testbeds": [],
            "references": [],
        },
        "opted_out": None,
        "rows": {"raw_data": 6},
        "files": [
            {"path": "README.md", "rows": None, "sha256": "1" * 64, "bytes": 10},
            {"path": "raw_data/b.parquet", "rows": 1, "sha256": "2" * 64, "bytes": 20},
        ],
        "funnel": [
            {"stage": "mine", "rows_in": 9, "rows_out": 7, "excluded_by_reason": {"bad_blob": 1, "moved": 1}},
            {"stage": "dedup", "rows_in": 7, "rows_out": 6, "excluded_by_reason": {"near_duplicate": 1}},
        ],
        "unused": [],
        "future_from": None,
        "changes": None,
    }


def test_times_and_digests_of_reports_stay_out() -> None:
    inputs = make_inputs()
    later = tuple(
        replace(report, started_at=datetime(2031, 1, 1, tzinfo=UTC), config_digest="other") for report in inputs.funnel
    )
    assert make_manifest(inputs, {}, FILES) == make_manifest(replace(inputs, funnel=later), {}, FILES)


def test_the_funnel_is_summed_over_partitions() -> None:
    assert make_manifest(make_inputs(), {}, []).funnel[0] == FunnelRow("mine", 9, 7, {"bad_blob": 1, "moved": 1})


def test_the_published_configuration_names_no_place_and_no_secret() -> None:
    config = published_config(CONFIG)
    assert [source["git"] for source in config["sources"]] == [
        ["../shapes"],
        ["https://example.org/o/n.git"],
        ["tools"],
    ]
    assert config["window"] == {"since": "2024-01-01T00:00:00+00:00", "until": "2025-01-01T00:00:00+00:00"}
    assert config["release"] == {"version": "1.2.0", "name": "shapes"}
    assert config["features"]["novelty"] == ["added"]
    assert json.loads(json.dumps(config)) == config


def test_the_digest_is_the_same_wherever_the_repositories_lie_and_whatever_is_overwritten() -> None:
    def digest(location: str, overwrite: bool) -> str:
        sources = (SourceConfig(git=(location,)),)
        config = replace(with_release(overwrite=overwrite), sources=sources)
        return make_manifest(make_inputs(config=config), {}, []).config_digest

    assert digest("/home/ada/tools.git", False) == digest("/srv/mirror/tools", True)
    assert digest("/home/ada/tools.git", False) != digest("/home/ada/other.git", False)


def test_a_web_address_loses_its_credentials() -> None:
    source = SourceConfig(git=("a",), web_url="https://ada:token@example.org/o/n?private_token=1#top")
    config = Config((source,), WindowConfig(datetime(2024, 1, 1, tzinfo=UTC)))
    assert published_config(config)["sources"][0]["web_url"] == "https://example.org/o/n"
    record = RepositoryRecord("o/n", "local", None, "https://ada:token@example.org/o/n?token=1", "main", "d" * 40, 1)
    manifest = make_manifest(make_inputs(repositories=(record,)), {}, [])
    assert manifest.repositories[0]["web_url"] == "https://example.org/o/n"


@pytest.mark.parametrize(
    ("location", "repo", "public"),
    [
        ("repos/click", None, "repos/click"),
        ("../click.git", None, "../click.git"),
        (".", None, "."),
        ("/home/ada/click.git", None, "click"),
        ("/home/ada/click/.git", None, "click"),
        ("/home/ada/click/", None, "click"),
        ("/home/ada/click", "pallets/click", "pallets/click"),
        ("~/code/click", None, "click"),
        ("file:///home/ada/click.git", None, "click"),
        ("file:///home/ada/click.git", "pallets/click", "pallets/click"),
        ("C:\\Users\\ada\\click", None, "click"),
        ("\\\\server\\share\\click", None, "click"),
        ("/", None, "local"),
        ("/.git", None, "local"),
        ("https://example.org/o/n.git", None, "https://example.org/o/n.git"),
        ("https://ada@example.org:8443/o/n.git", None, "https://example.org:8443/o/n.git"),
        ("https://ada:p%40ss@example.org/o/n.git?token=1", "o/n", "https://example.org/o/n.git"),
        ("samples/shapes.fast-import", None, "samples/shapes.fast-import"),
    ],
)
def test_public_locations(location: str, repo: str | None, public: str) -> None:
    assert public_location(location, repo) == public


def test_fast_import_files_are_published_by_name() -> None:
    source = SourceConfig(fast_import=("/home/ada/shapes.fi", "samples/b.fi"))
    config = Config((source,), WindowConfig(datetime(2024, 1, 1, tzinfo=UTC)))
    assert published_config(config)["sources"][0]["fast_import"] == ["shapes.fi", "samples/b.fi"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/a", True), ("~/a", True), ("C:/a", True), ("\\\\a", True), ("a", False), ("../a", False), ("c/a", False)],
)
def test_absolute_paths(path: str, expected: bool) -> None:
    assert is_absolute(path) is expected


def test_private_paths_are_those_of_one_machine() -> None:
    sources = [
        SourceConfig(git=("../a", "/home/ada/b.git", "file:///srv/c")),
        SourceConfig(git=("https://example.org/o/n.git",)),
        SourceConfig(fast_import=("/home/ada/d.fi",)),
    ]
    assert list(private_paths(sources)) == [("/home/ada/b.git", "b"), ("/srv/c", "c"), ("/home/ada/d.fi", "d.fi")]


def test_what_an_earlier_versions_manifest_lacks_is_null(tmp_path: Path) -> None:
    values = json.loads(make_manifest(make_inputs(), {"raw_data": 6}, FILES).to_json())
    for name in ("unused", "future_from", "changes"):
        del values[name]
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    manifest = read_manifest(tmp_path / "manifest.json")
    assert (manifest.unused, manifest.future_from, manifest.changes) == ((), None, None)


def test_a_manifest_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    made = make_manifest(make_inputs(), {"raw_data": 6}, FILES)
    (tmp_path / "manifest.json").write_text(made.to_json())
    manifest = read_manifest(tmp_path / "manifest.json")
    assert manifest.to_json() == made.to_json()
    config = manifest.read_config()
    assert published_config(config) == made.config
    assert (config.window, config.release, config.dedup) == (CONFIG.window, CONFIG.release, CONFIG.dedup)
