"""What changed between two releases, and why."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from publishing.changes import CONCLUSIONS, Cause, Kind, ReasonCount, RowChange, TestbedChange
from publishing.diff import compare, open_side
from publishing.inputs import ReleaseInputs
from publishing.manifest import MANIFEST_NAME
from publishing.release import write_release
from schemas.arrow import from_table, to_table
from schemas.config import Config, OptOutConfig
from schemas.errors import ConfigError
from schemas.records import DataPoint, Exclusion, StageReport
from tests.publishing.sound import CONFIG, REPOSITORY, SINCE, make_inputs, points, write_sound_release

MEAN, PLACE, EMPTY, PARSE, ANGLE = points()
LATER = "2025.01.31"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_release(tmp_path_factory.mktemp("before"))


def later(config: Config = CONFIG) -> Config:
    return replace(config, release=replace(config.release, version=LATER))


def only(*names: str) -> Config:
    return later(replace(CONFIG, testbeds=replace(CONFIG.testbeds, names=names)))


def raw_only(rows: list[DataPoint], config: Config, *excluded: Exclusion) -> ReleaseInputs:
    """Inputs with `raw_data` alone and one stage that leaves something out."""
    reasons = {item.reason: 1 for item in excluded}
    funnel = StageReport("features", "all", len(rows) + len(reasons), len(rows), reasons)
    return make_inputs(
        rows, config=config, tables={"raw_data": to_table(rows, DataPoint)}, funnel=(funnel,),
        exclusions=to_table(excluded, Exclusion),
    )  # fmt: skip


def raw_changes(before: Path, after: Path) -> list[tuple[Kind, str, str]]:
    """Change, row and reason of the rows of `raw_data`."""
    _, rows = compare(open_side(before), open_side(after))
    return [(row.change, row.fun_name, row.reason) for row in rows if row.testbed == "raw_data"]


def test_a_release_and_its_copy_differ_in_nothing(before: Path, tmp_path: Path) -> None:
    after = write_sound_release(tmp_path)
    changes, rows = compare(open_side(before), open_side(after))
    digest = hashlib.sha256((before / MANIFEST_NAME).read_bytes()).hexdigest()
    assert (changes.version, changes.manifest_sha256, changes.causes, rows) == ("2024.12.31", digest, (), [])
    assert changes.testbeds[0] == TestbedChange("raw_data", 5, 5, 0, 0, 0, ())
    assert [bed.before - bed.after for bed in changes.testbeds] == [0] * 8


def test_every_row_that_changed_is_told_with_its_reason(before: Path, tmp_path: Path) -> None:
    config = later(replace(CONFIG, testbeds=replace(CONFIG.testbeds, size=2, names=("raw_data", "random_cut"))))
    inputs = make_inputs([replace(PLACE, complexity=9, docstring=None), EMPTY, PARSE, ANGLE], config=config)
    tables = {name: inputs.tables[name] for name in ("raw_data", "random_cut")}
    duplicate = Exclusion(MEAN.row_id, "dedup_near", "near_duplicate", f"keeper={PLACE.row_id} jaccard=0.8")
    exclusions = to_table([*from_table(inputs.exclusions, Exclusion), duplicate], Exclusion)
    after = write_release(replace(inputs, tables=tables, exclusions=exclusions), tmp_path).folder
    changes, rows = compare(open_side(before), open_side(after))
    assert changes.causes == (
        Cause("configuration testbeds.names", '["raw_data", "raw_data_docstring", "random_cut", "with_docstring", '
              '"from_docstring", "commit_gen", "summarization_gen", "real_code"]', '["raw_data", "random_cut"]'),
        Cause("configuration testbeds.size", "3000", "2"),
    )  # fmt: skip
    assert changes.testbeds[:3] == (
        TestbedChange("raw_data", 5, 4, 0, 1, 1, (
            ReasonCount(Kind.CHANGED, "docstring, complexity", 1), ReasonCount(Kind.REMOVED, "near_duplicate", 1),
        )),
        TestbedChange("raw_data_docstring", 3, 0, 0, 3, 0, (ReasonCount(Kind.REMOVED, "no_such_testbed", 3),)),
        TestbedChange("random_cut", 4, 2, 0, 2, 1, (
            ReasonCount(Kind.CHANGED, "docstring, complexity", 1), ReasonCount(Kind.REMOVED, "near_duplicate", 1),
            ReasonCount(Kind.REMOVED, "not_sampled", 1),
        )),
    )  # fmt: skip
    assert [row for row in rows if row.testbed in ("raw_data", "random_cut")] == [
        RowChange("raw_data", Kind.CHANGED, PLACE.row_id, "example/shapes", "Shelf.place", "docstring, complexity", ""),
        RowChange("raw_data", Kind.REMOVED, MEAN.row_id, "example/shapes", "mean_of_squares", "near_duplicate",
                  duplicate.detail),
        RowChange("random_cut", Kind.CHANGED, PLACE.row_id, "example/shapes", "Shelf.place", "docstring, complexity",
                  ""),
        RowChange("random_cut", Kind.REMOVED, MEAN.row_id, "example/shapes", "mean_of_squares", "near_duplicate",
                  duplicate.detail),
        RowChange("random_cut", Kind.REMOVED, ANGLE.row_id, "example/shapes", "angle_between", "not_sampled",
                  "sample of 2 is full"),
    ]  # fmt: skip


def test_without_an_exclusion_the_manifests_tell_why(before: Path, tmp_path: Path) -> None:
    """A later window, another head, another repository, and none of these."""
    window = replace(CONFIG.window, since=SINCE + timedelta(days=30, hours=1))
    config = replace(only("raw_data"), window=window)
    after = write_release(raw_only([PLACE, EMPTY, PARSE], config), tmp_path / "window").folder
    assert raw_changes(before, after) == [
        (Kind.REMOVED, "mean_of_squares", "outside_window"), (Kind.REMOVED, "angle_between", "read_otherwise"),
    ]  # fmt: skip
    assert raw_changes(after, before) == [
        (Kind.ADDED, "mean_of_squares", "outside_window"), (Kind.ADDED, "angle_between", "read_otherwise"),
    ]  # fmt: skip
    moved = raw_only([MEAN, PLACE], only("raw_data"))
    moved = replace(moved, repositories=(replace(REPOSITORY, head="9" * 40),))
    after = write_release(moved, tmp_path / "moved").folder
    assert {reason for _, _, reason in raw_changes(before, after)} == {"other_head"}
    changes, rows = compare(open_side(before), open_side(after))
    assert Cause("repository example/shapes", "d" * 40, "9" * 40) in changes.causes
    assert rows[0].detail == f"head {'9' * 40}"
    other = replace(moved, repositories=(replace(REPOSITORY, repo="example/other"),))
    after = write_release(replace(other, tables={"raw_data": to_table([], DataPoint)}), tmp_path / "other").folder
    assert {reason for _, _, reason in raw_changes(before, after)} == {"other_repository"}
    assert {reason for _, _, reason in raw_changes(after, before)} == {"other_repository"}


def test_a_repository_is_known_by_its_former_names(before: Path, tmp_path: Path) -> None:
    renamed = replace(REPOSITORY, repo="example/forms", aliases=("example/shapes",))
    inputs = replace(raw_only([MEAN], only("raw_data")), repositories=(renamed,))
    after = write_release(inputs, tmp_path).folder
    assert {reason for _, _, reason in raw_changes(before, after)} == {"read_otherwise"}


def test_a_repository_is_known_by_its_number(tmp_path: Path) -> None:
    """Whoever was not there when it was renamed does not know its earlier name."""
    first = replace(REPOSITORY, host="host.example", repo_id=7)
    inputs = raw_only([MEAN], only("raw_data"))
    before = write_release(replace(inputs, repositories=(first,)), tmp_path / "before").folder
    for number, head, reason in ((1, first.head, "read_otherwise"), (2, "9" * 40, "other_head")):
        renamed = replace(first, repo="example/forms", head=head)
        other = replace(inputs, repositories=(renamed,), tables={"raw_data": to_table([], DataPoint)})
        after = write_release(other, tmp_path / str(number)).folder
        changes, rows = compare(open_side(before), open_side(after))
        assert {row.reason for row in rows} == {reason}
        heads = [] if number == 1 else [Cause("repository example/forms", first.head, head)]
        assert [cause for cause in changes.causes if cause.what.startswith("repository")] == heads


def test_commits_and_files_that_were_left_out_are_the_reason_of_their_rows(before: Path, tmp_path: Path) -> None:
    commit = f"example/shapes@{MEAN.commit_id}"
    for number, (excluded, reason) in enumerate((
        (Exclusion(commit, "commits", "too_many_files"), "too_many_files"),
        (Exclusion(f"{commit}:{MEAN.path}", "files", "undecodable"), "undecodable"),
        (Exclusion(f"{commit}:{MEAN.path}", "index", "undecodable"), "read_otherwise"),  # of another tree
    )):  # fmt: skip
        after = write_release(raw_only([], only("raw_data"), excluded), tmp_path / str(number)).folder
        assert {why for _, _, why in raw_changes(before, after)} == {reason}


def test_opt_outs_and_versions_are_causes(before: Path, tmp_path: Path) -> None:
    config = replace(only("raw_data"), optout=OptOutConfig(("optout.toml",)))
    out = Exclusion(MEAN.row_id, "opt_out", "opted_out")
    inputs = raw_only([PLACE, EMPTY, PARSE, ANGLE], config, out)
    funnel = (replace(inputs.funnel[0], stage="opt_out"),)
    after = write_release(replace(inputs, funnel=funnel, code_version="0.2.0", python_version="3.14.0"), tmp_path)
    changes, _ = compare(open_side(before), open_side(after.folder))
    assert raw_changes(before, after.folder) == [(Kind.REMOVED, "mean_of_squares", "opted_out")]
    causes = [(cause.what, cause.after) for cause in changes.causes]
    assert ("code_version", "0.2.0") in causes
    assert ("python_version", "3.14.0") in causes
    assert ("configuration optout.files", '["optout.toml"]') in causes
    assert causes[-1] == ("rows opted out", "1")


def test_every_conclusion_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "release.md").read_text()
    for word, meaning in CONCLUSIONS.items():
        assert f"| `{word}` | {meaning} |" in text


def test_what_is_no_release_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=rf"{tmp_path} cannot be compared: .* is no release: manifest\.json cannot be read"
    ):
        open_side(tmp_path)


def test_a_date_at_the_end_of_the_window_is_outside(before: Path, tmp_path: Path) -> None:
    window = replace(CONFIG.window, until=datetime(2024, 1, 31, 2, tzinfo=UTC))
    after = write_release(raw_only([MEAN, PLACE], replace(only("raw_data"), window=window)), tmp_path).folder
    assert {reason for _, _, reason in raw_changes(before, after)} == {"outside_window"}
