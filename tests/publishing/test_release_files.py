"""Reading a release folder before it is pushed, and the tombstones of its card."""

import json
import shutil
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from publishing.release_files import check_tag, git_blob_id, read_manifest_head, read_manifest_paths, read_release_files
from publishing.withdrawn import Tombstone, split_card, tombstone, with_tombstones
from schemas.errors import ConfigError
from tests.hub.support import make_release


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("releases")).folder


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_a_folder_is_read_as_its_manifest_says(copy: Path) -> None:
    (copy / "notes.txt").write_text("mine")
    release = read_release_files(copy)
    assert (release.name, release.version, release.others) == ("shapes", "2026.10", ("notes.txt",))
    assert dict(release.rows) == {"raw_data": 6, "random_cut": 4, "exclusions": 3}
    assert [entry.path for entry in release.files] == [
        "NOTICE",
        "README.md",
        "croissant.json",
        "exclusions/test-00000-of-00001.parquet",
        "inspect/postquem.py",
        "lm_eval/postquem.py",
        "lm_eval/postquem_random_cut.yaml",
        "lm_eval/postquem_raw_data.yaml",
        "manifest.json",
        "prompts.json",
        "random_cut/test-00000-of-00001.parquet",
        "raw_data/test-00000-of-00001.parquet",
    ]
    manifest = (copy / "manifest.json").read_bytes()
    assert read_manifest_head(manifest) == ("shapes", "2026.10")
    assert read_manifest_paths(manifest) == {entry.path for entry in release.files}


def test_what_is_no_release_or_another_than_its_manifest_is_refused(copy: Path) -> None:
    card = copy / "README.md"
    card.write_bytes(card.read_bytes() + b" ")
    with pytest.raises(ConfigError, match=r"README.md is not the file that manifest.json lists; build the release"):
        read_release_files(copy)
    card.unlink()
    with pytest.raises(ConfigError, match=r"README.md is missing, though manifest.json lists it"):
        read_release_files(copy)
    manifest = json.loads((copy / "manifest.json").read_bytes())
    manifest["files"][0]["path"] = "../outside"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ConfigError, match=r"names a file outside its folder: \.\./outside"):
        read_release_files(copy)
    (copy / "manifest.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"manifest.json is damaged"):
        read_release_files(copy)
    (copy / "manifest.json").unlink()
    with pytest.raises(ConfigError, match=r"is no release: manifest.json cannot be read \(No such file"):
        read_release_files(copy)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[1]", b"{", b'{"files": [1]}'])
def test_a_foreign_manifest_names_nothing(content: bytes | None) -> None:
    assert read_manifest_paths(content) == frozenset()
    assert read_manifest_head(content) == ("", None)


@pytest.mark.parametrize("version", ["2026.11", "0.1.0", "quickstart", "2026.11+rc_1", "2026-11"])
def test_usual_versions_can_be_tags(version: str) -> None:
    check_tag(version)


@pytest.mark.parametrize("version", ["main", "a" * 40, "1..2", "1.", "1.lock", "-1", "é", "a b", "refs/tags/1"])
def test_names_that_git_or_the_hub_refuses_cannot(version: str) -> None:
    with pytest.raises(ConfigError, match="cannot be a tag on the Hub"):
        check_tag(version)


def test_blob_ids_are_gits(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\r\nb\0")
    command = ["git", "hash-object", "--no-filters", str(tmp_path / "file")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.strip()
    assert git_blob_id(b"a\r\nb\0") == told


def test_tombstones_come_back_from_a_card_and_leave_it_as_it_was() -> None:
    stones = (tombstone("2026.2", date(2026, 3, 1), "b\n| c"), tombstone("2026.1", date(2026, 2, 1), "a"))
    card = with_tombstones("# Title\n\nText.\n", stones)
    expected = (Tombstone("2026.1", date(2026, 2, 1), "a"), Tombstone("2026.2", date(2026, 3, 1), "b \\| c"))
    assert split_card(card) == ("# Title\n\nText.\n", expected)
    assert with_tombstones(*split_card(card)) == card
    assert split_card("# Title\n") == ("# Title\n", ())
    assert with_tombstones("# Title\n", ()) == "# Title\n"
    assert split_card(with_tombstones(card, (replace(stones[0], reason="c"),)))[0] == "# Title\n\nText.\n"
