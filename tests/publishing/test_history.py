"""Versions beside one another: the day's version, what changed since the one before, and when none is needed."""

from dataclasses import replace
from pathlib import Path

import pytest

from publishing.changes import Cause
from publishing.inputs import ReleaseInputs
from publishing.manifest import MANIFEST_NAME, read_manifest
from publishing.release import ReleaseStatus, write_release
from schemas.config import Config
from schemas.errors import ConfigError
from tests.publishing.sound import CONFIG, make_inputs, points
from tests.publishing.test_release import contents


def inputs(version: str, rows: int = 5, size: int = 3_000, **release: object) -> ReleaseInputs:
    config: Config = replace(CONFIG, release=replace(CONFIG.release, version=version, **release))  # type: ignore[arg-type]
    return make_inputs(points()[:rows], config=replace(config, testbeds=replace(config.testbeds, size=size)))


def changes_of(folder: Path) -> tuple[str, int, int] | None:
    """Version before, rows added to and removed from `raw_data`."""
    changes = read_manifest(folder / MANIFEST_NAME).changes
    return None if changes is None else (changes.version, changes.testbeds[0].added, changes.testbeds[0].removed)


def test_a_release_tells_what_changed_since_the_one_before(tmp_path: Path) -> None:
    first = write_release(inputs("2024.12.30", rows=4), tmp_path).folder
    second = write_release(inputs("2024.12.31.9"), tmp_path).folder
    third = write_release(inputs("2024.12.31.10", rows=3, size=2), tmp_path).folder
    assert [changes_of(folder) for folder in (first, second, third)] == [
        None, ("2024.12.30", 1, 0), ("2024.12.31.9", 0, 2),
    ]  # fmt: skip
    changes = read_manifest(third / MANIFEST_NAME).changes
    assert changes is not None
    assert changes.causes == (Cause("configuration testbeds.size", "3000", "2"),)


def test_other_data_sets_and_names_that_are_no_numbers_come_before_nothing(tmp_path: Path) -> None:
    write_release(inputs("2024.12.30", name="other"), tmp_path)
    write_release(inputs("quickstart"), tmp_path)
    (tmp_path / "2024.12.29").mkdir()
    (tmp_path / "2024.12.29" / MANIFEST_NAME).write_text("{}")
    assert changes_of(write_release(inputs("2024.12.31"), tmp_path).folder) is None


def test_a_release_keeps_what_it_says_when_the_one_before_is_deleted(tmp_path: Path) -> None:
    first = write_release(inputs("2024.12.30", rows=4), tmp_path).folder
    second = write_release(inputs("2024.12.31"), tmp_path).folder
    before = contents(second)
    first.rename(tmp_path.parent / "elsewhere")
    assert write_release(inputs("2024.12.31"), tmp_path).status is ReleaseStatus.UNCHANGED
    assert contents(second) == before


def test_a_damaged_release_before_is_passed_over(tmp_path: Path) -> None:
    first = write_release(inputs("2024.12.30", rows=4), tmp_path).folder
    next((first / "raw_data").iterdir()).write_bytes(b"no Parquet")
    assert changes_of(write_release(inputs("2024.12.31"), tmp_path).folder) is None


def test_a_dated_release_is_written_only_when_something_changed(tmp_path: Path) -> None:
    first = write_release(inputs("2024.12.30"), tmp_path, dated=True)
    assert first.status is ReleaseStatus.WRITTEN
    again = write_release(inputs("2024.12.31"), tmp_path, dated=True)
    assert (again.status, again.folder, again.files) == (ReleaseStatus.UNCHANGED, first.folder, first.files)
    (first.folder / "README.md").unlink()
    damaged = write_release(inputs("2024.12.30.1"), tmp_path, dated=True)
    assert (damaged.status, damaged.folder.name) == (ReleaseStatus.WRITTEN, "2024.12.30.1")
    more = write_release(inputs("2024.12.31", size=2), tmp_path, dated=True)
    assert (more.status, more.folder.name) == (ReleaseStatus.WRITTEN, "2024.12.31")
    # The newest counts, not any: going back is a change, too.
    back = write_release(inputs("2024.12.31.1"), tmp_path, dated=True)
    assert (back.status, back.folder.name) == (ReleaseStatus.WRITTEN, "2024.12.31.1")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "2024.12.30", "2024.12.30.1", "2024.12.31", "2024.12.31.1",
    ]  # fmt: skip


def test_other_rows_under_a_version_are_refused(tmp_path: Path) -> None:
    folder = write_release(inputs("2024.12.31"), tmp_path).folder
    before = contents(folder)
    with pytest.raises(ConfigError, match=r"holds another release; raise release\.version"):
        write_release(inputs("2024.12.31", rows=4), tmp_path)
    assert contents(folder) == before


def test_a_release_built_again_says_what_its_manifest_said(tmp_path: Path) -> None:
    write_release(inputs("2024.12.30", rows=4), tmp_path)
    second = write_release(inputs("2024.12.31"), tmp_path).folder
    manifest = read_manifest(second / MANIFEST_NAME)
    again = replace(inputs("2024.12.31"), again=True, changes=manifest.changes)
    assert contents(write_release(again, tmp_path / "again").folder) == contents(second)
