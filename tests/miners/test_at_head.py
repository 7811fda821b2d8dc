"""Mined methods are found again where a later tree holds them as they were brought, and only there."""

from pathlib import Path

from features.compute import compute_features
from miners.at_head import Standing, find_standing
from miners.sources import decode_source
from schemas.config import FeaturesConfig, LicencesConfig, MiningConfig
from schemas.errors import DataError
from schemas.records import DataPoint
from tests.builders import RepoBuilder, symlink
from tests.miners.mining import mine_at

KEPT = b"def kept(a):\n    return a + 1\n"
MOVED = b"class Box:\n    def lid(self):\n        return self.top\n"
INDENTED = b"if True:\n    class Box:\n        def lid(self):\n            return self.top\n"
LIMIT = 1_000_000


def points_of(builder: RepoBuilder) -> list[DataPoint]:
    mined = mine_at(builder)
    return compute_features(mined.methods, FeaturesConfig(), MiningConfig(), LicencesConfig()).rows


def found(builder: RepoBuilder, commit_id: str, points: list[DataPoint], limit: int = LIMIT) -> dict[str, object]:
    """Return by name the bytes that stand at the place, or the reason and detail."""
    result: dict[str, object] = {}
    for point, place in find_standing(builder.git_dir, commit_id, points, limit):
        if isinstance(place, Standing):
            result[point.fun_name] = place.source.raw[place.start_byte : place.end_byte]
        else:
            result[point.fun_name] = (place.reason, place.detail)
    return result


def test_methods_are_found_by_path_name_and_code(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    changed = b"def changed(a):\n    return a\n\n\n"
    first = builder.commit({"a.py": KEPT + changed, "b.py": MOVED, "gone.py": b"def gone():\n    return 1\n"}, "bring")
    head = builder.commit(
        {
            "a.py": b"import os\n\n\n" + KEPT + changed.replace(b"return a", b"return -a"),
            "b.py": INDENTED,
            "gone.py": None,
        },
        "change",
    )
    points = [point for point in points_of(builder) if point.commit_id == first]
    assert found(builder, first, points) == {
        "kept": KEPT.rstrip(),
        "changed": changed.rstrip(),
        "Box.lid": b"def lid(self):\n        return self.top",
        "gone": b"def gone():\n    return 1",
    }
    assert found(builder, head, points) == {
        "kept": KEPT.rstrip(),
        "changed": ("not_at_head", f"a.py has changed there since {first}"),
        "Box.lid": b"def lid(self):\n            return self.top",
        "gone": ("not_at_head", "the tree has no file gone.py"),
    }


def test_two_definitions_of_one_name_with_the_same_code_are_not_told_apart(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    first = builder.commit({"a.py": KEPT}, "bring")
    head = builder.commit({"a.py": KEPT + b"\n\n" + KEPT}, "twice")
    points = [point for point in points_of(builder) if point.commit_id == first]
    assert found(builder, head, points) == {"kept": ("not_at_head", f"a.py has changed there since {first}")}


def test_files_that_cannot_be_read_there_say_why(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "r.git")
    first = builder.commit({"a.py": KEPT, "b.py": KEPT.replace(b"kept", b"other")}, "bring")
    head = builder.commit({"a.py": KEPT + b"#" * 200, "b.py": symlink("a.py")}, "grow")
    points = [point for point in points_of(builder) if point.commit_id == first]
    assert found(builder, head, points, 100) == {
        "kept": ("file_too_large", f"{len(KEPT) + 200} bytes, the limit is 100"),
        "other": ("not_at_head", "the tree has no file b.py"),
    }


def test_offsets_are_those_of_the_file_whatever_its_encoding(tmp_path: Path) -> None:
    text = "# -*- coding: latin-1 -*-\nNAME = 'é'\ndef kept(a):\n    return 'ü' + a\n"
    builder = RepoBuilder(tmp_path / "r.git")
    first = builder.commit({"a.py": text.encode("latin-1")}, "bring")
    later = text.replace("NAME", "# ß\nNAME").encode("latin-1")
    head = builder.commit({"a.py": later}, "more")
    [(_, place)] = find_standing(builder.git_dir, head, [p for p in points_of(builder) if p.commit_id == first], LIMIT)
    assert not isinstance(place, DataError)
    start = later.index(b"def")
    assert (place.start_byte, place.end_byte) == (start, len(later) - 1)
    assert place.source == decode_source(place.source.blob_id, later)
