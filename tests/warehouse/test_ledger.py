import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.arrow import to_table
from schemas.config import DedupConfig
from schemas.errors import PipelineError
from schemas.records import Exclusion, StageReport
from warehouse.ledger import Ledger, Unit, partition_path, unit_key
from warehouse.tables import FileEntry

NOW = datetime(2024, 6, 1, tzinfo=UTC)
KEY = unit_key("mine", "1", {"since": "2024-01-01"}, ["head"])
OTHER_KEY = unit_key("mine", "1", {"since": "2024-02-01"}, ["head"])


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "tables")


def finish(ledger: Ledger, partition: str = "o/n", key: str = KEY, rows: int = 2, stage: str = "mine") -> Unit:
    """Write two tables and record their unit."""
    exclusions = [Exclusion(f"{key[:4]}{index}", stage, "bad_blob") for index in range(rows)]
    files = {
        name: (ledger.write(name, partition, key, to_table(exclusions, Exclusion)),)
        for name in ("methods", "exclusions")
    }
    report = StageReport(stage, partition, rows, 0, {"bad_blob": rows}, "digest", "0.1.0", NOW, None)
    unit = Unit(stage, partition, key, files, (report,))
    ledger.record(unit)
    return unit


def tree(ledger: Ledger) -> list[str]:
    return sorted(path.relative_to(ledger.root).as_posix() for path in ledger.root.rglob("*") if path.is_file())


def test_nothing_is_done_in_an_empty_workspace(ledger: Ledger) -> None:
    assert ledger.find("mine", "o/n", KEY, NOW) is None
    assert ledger.units() == []
    assert ledger.sweep() == []


def test_a_recorded_unit_is_found_again_as_it_was(ledger: Ledger) -> None:
    unit = finish(ledger)
    assert Ledger(ledger.root).find("mine", "o/n", KEY, NOW) == unit
    assert ledger.units() == [unit]
    assert tree(ledger) == [
        "_units/mine/o/n.json",
        f"exclusions/o/n/{KEY[:16]}.parquet",
        f"methods/o/n/{KEY[:16]}.parquet",
    ]


def test_a_unit_of_another_key_stage_or_partition_is_not_found(ledger: Ledger) -> None:
    finish(ledger)
    assert ledger.find("mine", "o/n", OTHER_KEY, NOW) is None
    assert ledger.find("features", "o/n", KEY, NOW) is None
    assert ledger.find("mine", "o/m", KEY, NOW) is None


def test_tables_of_a_unit_are_read_back(ledger: Ledger) -> None:
    unit = finish(ledger)
    assert ledger.read(unit, "methods")["row_id"].to_pylist() == [f"{KEY[:4]}0", f"{KEY[:4]}1"]
    with pytest.raises(PipelineError, match="mine over o/n has no table commits; known: "):
        ledger.read(unit, "commits")


def test_a_unit_is_stale_from_valid_until_on(ledger: Ledger) -> None:
    unit = replace(finish(ledger), valid_until=NOW)
    ledger.record(unit)
    assert ledger.find("mine", "o/n", KEY, NOW - timedelta(microseconds=1)) == unit
    assert ledger.find("mine", "o/n", KEY, NOW) is None


def test_a_deleted_file_is_not_done(ledger: Ledger) -> None:
    unit = finish(ledger)
    path = ledger.root / unit.files["methods"][0].path
    path.unlink()
    assert ledger.find("mine", "o/n", KEY, NOW) is None
    assert ledger.verify(unit) == [f"{path} is missing"]


def test_a_truncated_file_is_not_done(ledger: Ledger) -> None:
    unit = finish(ledger)
    entry = unit.files["methods"][0]
    path = ledger.root / entry.path
    path.write_bytes(path.read_bytes()[:-1])
    assert ledger.find("mine", "o/n", KEY, NOW) is None
    assert ledger.verify(unit, deep=False) == [f"{path} has {entry.bytes - 1} bytes instead of {entry.bytes}"]


def test_changed_bytes_of_the_same_size_are_found_by_deep_verification(ledger: Ledger) -> None:
    unit = finish(ledger)
    path = ledger.root / unit.files["exclusions"][0].path
    path.write_bytes(b"\0" * path.stat().st_size)
    assert ledger.verify(unit, deep=False) == []
    assert ledger.verify(unit, deep=True) == [f"{path} has other contents than recorded"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"stage": "mine"}', '{"files": 1}', '"\\ud800"', '{"files": {"a": [{"x": 1}]}}']
)
def test_a_damaged_sidecar_is_not_done_and_swept(ledger: Ledger, content: str) -> None:
    finish(ledger)
    (ledger.root / "_units/mine/o/n.json").write_text(content)
    assert ledger.find("mine", "o/n", KEY, NOW) is None
    assert ledger.units() == []
    assert len(ledger.sweep()) == 3
    assert tree(ledger) == []


def test_a_sidecar_whose_report_does_not_add_up_is_not_done(ledger: Ledger) -> None:
    finish(ledger)
    path = ledger.root / "_units/mine/o/n.json"
    plain = json.loads(path.read_text())
    plain["reports"][0]["rows_in"] += 1
    path.write_text(json.dumps(plain))
    assert ledger.find("mine", "o/n", KEY, NOW) is None


def test_recording_replaces_the_former_unit_and_its_files(ledger: Ledger) -> None:
    finish(ledger)
    unit = finish(ledger, key=OTHER_KEY)
    assert ledger.find("mine", "o/n", KEY, NOW) is None
    assert ledger.find("mine", "o/n", OTHER_KEY, NOW) == unit
    assert tree(ledger) == [
        "_units/mine/o/n.json",
        f"exclusions/o/n/{OTHER_KEY[:16]}.parquet",
        f"methods/o/n/{OTHER_KEY[:16]}.parquet",
    ]


def test_recording_the_same_unit_again_keeps_its_files(ledger: Ledger) -> None:
    unit = finish(ledger)
    before = tree(ledger)
    assert finish(ledger) == unit
    assert tree(ledger) == before


def test_files_that_the_new_unit_still_uses_are_kept(ledger: Ledger) -> None:
    unit = finish(ledger)
    ledger.record(replace(unit, key=OTHER_KEY, files={"methods": unit.files["methods"]}))
    assert tree(ledger) == ["_units/mine/o/n.json", f"methods/o/n/{KEY[:16]}.parquet"]


def test_other_partitions_and_stages_are_left_alone(ledger: Ledger) -> None:
    first, second = finish(ledger, "a/b"), finish(ledger, "a/c")
    third = finish(ledger, "a/b", key=OTHER_KEY, stage="features")
    assert ledger.units() == [third, first, second]
    finish(ledger, "a/b", key=unit_key("mine", "2", {}, []))
    assert ledger.find("mine", "a/c", KEY, NOW) == second
    assert ledger.find("features", "a/b", OTHER_KEY, NOW) == third


def test_a_unit_whose_files_are_not_there_is_not_recorded(ledger: Ledger) -> None:
    unit = Unit("mine", "o/n", KEY, {"methods": (FileEntry("methods/x.parquet", 1, "0" * 64, 1),)})
    with pytest.raises(PipelineError, match=r"cannot record mine over o/n: .*methods/x\.parquet is missing; run"):
        ledger.record(unit)
    assert ledger.units() == []


def test_a_killed_record_leaves_the_former_unit_done(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = finish(ledger)

    def killed(self: Path, target: Path) -> None:
        if target.suffix == ".json":
            raise KeyboardInterrupt
        real(self, target)

    real = Path.replace
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        finish(ledger, key=OTHER_KEY)
    assert ledger.find("mine", "o/n", KEY, NOW) == unit
    assert ledger.sweep() == [
        f"exclusions/o/n/{OTHER_KEY[:16]}.parquet",
        f"methods/o/n/{OTHER_KEY[:16]}.parquet",
    ]
    assert ledger.find("mine", "o/n", KEY, NOW) == unit


def test_discarded_notes_are_gone_and_nothing_else(ledger: Ledger) -> None:
    unit = finish(ledger, "o/n")
    files = {"notes": (ledger.write("notes", "o/n", OTHER_KEY, to_table([], Exclusion)),)}
    notes = Unit("plan", "o/n", OTHER_KEY, files)
    assert ledger.read(notes, "notes", ["row_id"]).column_names == ["row_id"]
    ledger.discard(notes)
    assert ledger.verify(notes) == [f"{ledger.root / files['notes'][0].path} is missing"]
    assert ledger.verify(unit) == []
    assert ledger.sweep() == []


def test_sweep_removes_temporary_and_orphan_files_only(ledger: Ledger) -> None:
    unit = finish(ledger)
    for name in ("methods/o/n/.tmp-1-x.parquet", "methods/o/n/orphan.parquet", "_units/mine/o/.tmp-1-n.json"):
        (ledger.root / name).write_bytes(b"half")
    assert ledger.sweep() == [
        "_units/mine/o/.tmp-1-n.json",
        "methods/o/n/.tmp-1-x.parquet",
        "methods/o/n/orphan.parquet",
    ]
    assert ledger.find("mine", "o/n", KEY, NOW) == unit


def test_a_unit_without_files_can_be_done(ledger: Ledger) -> None:
    unit = Unit("search", "all", KEY, {})
    ledger.record(unit)
    assert ledger.find("search", "all", KEY, NOW) == unit
    assert unit.digest == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_digest_depends_on_contents_and_not_on_key_or_table_order(ledger: Ledger) -> None:
    unit = finish(ledger)
    reordered = {name: unit.files[name] for name in sorted(unit.files, reverse=True)}
    assert replace(unit, key=OTHER_KEY, files=reordered, reports=()).digest == unit.digest
    assert finish(ledger, rows=3).digest != unit.digest


def test_the_key_depends_on_every_part() -> None:
    keys = {
        unit_key("mine", "1", DedupConfig(), ["a", "b"]),
        unit_key("features", "1", DedupConfig(), ["a", "b"]),
        unit_key("mine", "2", DedupConfig(), ["a", "b"]),
        unit_key("mine", "1", DedupConfig(threshold=0.8), ["a", "b"]),
        unit_key("mine", "1", DedupConfig(), ["b", "a"]),
        unit_key("mine", "1", DedupConfig(), ["ab"]),
        unit_key("mine", "1", DedupConfig(), []),
    }
    assert len(keys) == 7
    assert unit_key("mine", "1", DedupConfig(), ["a", "b"]) in keys


@pytest.mark.parametrize(
    ("partition", "path"),
    [
        ("pallets/click", "pallets/click"),
        ("github.com/pallets/click", "github.com/pallets/click"),
        ("all", "all"),
        ("kubernetes-client/python_2.x", "kubernetes-client/python_2.x"),
        ("Pallets/click", "pallets~1a7e747f52cd/click"),
        ("a/b.json", "a/b.json~32af381d1756"),
        ("../..", "~5ec1f7e700f3/~5ec1f7e700f3"),
        ("", "~e3b0c44298fc"),
    ],
)
def test_partition_paths(partition: str, path: str) -> None:
    assert partition_path(partition) == path


@pytest.mark.parametrize(
    "partition",
    ["/etc/passwd", "a/../../b", "a\\b", "a:b", "C:/x", "a\0b", "Ö/é", "x" * 300, ".hidden", "a.", "a b", "\udce9"],
)
def test_unsafe_partitions_stay_inside_the_folder(ledger: Ledger, partition: str) -> None:
    path = partition_path(partition)
    assert path.isascii()
    assert not path.startswith("/")
    assert all(part not in ("", ".", "..") and not part.startswith(".") and len(part) < 120 for part in path.split("/"))


_NAMES = st.text("aAbB.~é/\\-_", max_size=6) | st.sampled_from(
    ["Foo", "foo", "fOO", "a.json", "é", "e\u0301", "~", "a/b"]
)


@given(_NAMES, _NAMES)
def test_different_partitions_have_different_paths_whatever_the_case(first: str, second: str) -> None:
    paths = [partition_path(name).casefold() for name in (first, second)]
    assert (paths[0] == paths[1]) == (first == second)


def test_a_hostile_name_cannot_take_anothers_hashed_path() -> None:
    assert partition_path("pallets~1a7e747f52cd/click") != partition_path("Pallets/click")


def test_a_partition_named_like_a_sidecar_does_not_clash_with_one(ledger: Ledger) -> None:
    first, second = finish(ledger, "a"), finish(ledger, "a.json/b")
    assert ledger.units() == [first, second]
