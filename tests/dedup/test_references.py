"""Reference sets: which files, which columns, which texts, and what bad input says."""

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dedup.references import find_files, locate, read_reference, split_code
from schemas.comparisons import ReferenceText
from schemas.errors import ConfigError
from schemas.records import Exclusion
from schemas.references import ReferenceConfig, Role

PROMPT = 'import math\n\n\ndef area(r: float) -> float:\n    """Return the area of a circle."""\n'
SOLUTION = "    return math.pi * r * r\n"
AREA = "def area(r: float) -> float:\n    return math.pi * r * r"
ROWS = [
    {"task_id": "T/0", "prompt": PROMPT, "canonical_solution": SOLUTION, "lang": "Python"},
    {"task_id": "T/1", "prompt": "int f()", "canonical_solution": "{}", "lang": "java"},
    {"task_id": "T/2", "prompt": "x = 1\n", "canonical_solution": "y = 2\n", "lang": "python"},
]


def write_parquet(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


def write_jsonl(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


CONFIG = ReferenceConfig(
    path="set.*", concat=("prompt", "canonical_solution"), id="task_id", language_column="lang", name="humane"
)


@pytest.mark.parametrize("name", ["set.parquet", "set.jsonl", "set.jsonl.gz", "set.json"])
def test_every_kind_of_file_gives_the_same_texts(tmp_path: Path, name: str) -> None:
    path = (write_parquet if name.endswith("parquet") else write_jsonl)(tmp_path / name, ROWS)
    files = find_files(CONFIG, tmp_path, tmp_path / "data")
    assert files == [path]
    data = read_reference(CONFIG, files)
    assert data.texts == [
        ReferenceText("humane", "T/0", "area", AREA),
        ReferenceText("humane", "T/2", None, "x = 1\ny = 2\n"),
    ]
    assert (data.n_rows, data.n_other_language, data.excluded, data.earlier) == (2, 1, [], [])


def test_rows_without_text_and_broken_lines_are_excluded_and_their_neighbours_stay(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    lines = ['{"code": "x = 1"}', "", "[1]", "no json", '{"code": null}', '{"code": 3}', '{"code": " "}', "{}"]
    path.write_text("\n".join([*lines, '{"code": "\\ud800"}', '{"code": "y = 2"}']))
    data = read_reference(ReferenceConfig(path="mixed.jsonl"), [path])
    assert [(item.reference_id, item.text) for item in data.texts] == [
        ("mixed.jsonl#0", "x = 1"),
        ("mixed.jsonl#8", "y = 2"),
    ]
    invalid = ("reference_line_invalid", "no JSON object")
    empty = ("reference_not_text", "no text in code")
    reasons = {1: invalid, 2: invalid, 3: empty, 4: empty, 5: empty, 6: empty, 7: empty}
    assert data.excluded == [
        Exclusion(f"mixed.jsonl:mixed.jsonl#{number}", "references", *why) for number, why in reasons.items()
    ]
    assert data.n_rows == 9


@pytest.mark.parametrize("name", ["set.parquet", "set.jsonl"])
def test_a_missing_column_names_those_that_are_there(tmp_path: Path, name: str) -> None:
    path = (write_parquet if name.endswith("parquet") else write_jsonl)(tmp_path / name, ROWS)
    known = ", ".join(ROWS[0] if name.endswith("parquet") else sorted(ROWS[0]))
    with pytest.raises(ConfigError, match=rf"{name} has no column text, no; it has {known}; name others in"):
        read_reference(ReferenceConfig(path=name, code="text", id="no"), [path])


@pytest.mark.parametrize("name", ["set.parquet", "set.jsonl.gz"])
def test_a_damaged_file_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"rubbish")
    with pytest.raises(ConfigError, match=r"set.* cannot be read .*; fetch it again or correct `path`"):
        read_reference(ReferenceConfig(path=name), [path])


def test_files_are_found_from_the_configurations_folder_in_order(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    paths = [write_jsonl(tmp_path / "sets" / name, ROWS) for name in ("b.jsonl", "a.jsonl")]
    assert find_files(ReferenceConfig(path="sets/*.jsonl"), tmp_path, tmp_path) == sorted(paths)
    assert find_files(ReferenceConfig(path=str(tmp_path / "sets" / "?.jsonl")), Path("/"), tmp_path) == sorted(paths)
    assert find_files(ReferenceConfig(path="../sets/a.jsonl"), tmp_path / "configs", tmp_path)[0].name == "a.jsonl"


def test_missing_files_and_unknown_kinds_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\*.jsonl is no file and matches none; correct `path` in"):
        find_files(ReferenceConfig(path="none*.jsonl"), tmp_path, tmp_path)
    (tmp_path / "set.csv").write_text("code")
    with pytest.raises(ConfigError, match=r"set.csv is of no known kind; reference sets are .parquet, .jsonl"):
        find_files(ReferenceConfig(path="set.csv"), tmp_path, tmp_path)
    with pytest.raises(ConfigError, match=r"releases/9 holds no release .*relative to the workspace or absolute"):
        find_files(ReferenceConfig(release="releases/9"), tmp_path, tmp_path / "data")


def test_a_release_gives_its_rows_and_what_its_duplicate_search_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "releases" / "0.1.0"
    code = 'def f(a):\n    """Say."""\n    return a'
    write_parquet(folder / "raw_data" / "test-00000-of-00001.parquet", [{"row_id": "1" * 32, "code": code}])
    write_parquet(
        folder / "exclusions" / "test-00000-of-00001.parquet",
        [
            {"row_id": "2" * 32, "stage": "dedup_near", "reason": "near_duplicate", "detail": "keeper=1"},
            {"row_id": "3" * 32, "stage": "features", "reason": "novelty_moved", "detail": ""},
        ],
    )
    reference = ReferenceConfig(release="releases/0.1.0")
    found = locate(reference, tmp_path, tmp_path / "data")
    data = read_reference(reference, found.files)
    assert (found.title, reference.kind) == ("0.1.0", Role.RELEASE)
    assert data.texts == [ReferenceText("0.1.0", "1" * 32, None, "def f(a):\n    return a")]
    assert data.earlier == [Exclusion("2" * 32, "dedup_near", "near_duplicate", "keeper=1")]
    assert len(found.sha256) == 2
    assert found.sha256[0] == hashlib.sha256(found.files[0].read_bytes()).hexdigest()


def test_the_identity_of_a_set_is_its_contents_not_its_place(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "set.jsonl", ROWS)
    first, second = (
        locate(ReferenceConfig(path=f"{name}/set.jsonl", code="prompt"), tmp_path, tmp_path) for name in ("one", "two")
    )
    assert first.identity == second.identity
    assert locate(replace(first.reference, code="lang"), tmp_path, tmp_path).identity != first.identity
    write_jsonl(tmp_path / "one" / "set.jsonl", ROWS[:1])
    assert locate(first.reference, tmp_path, tmp_path).identity != second.identity


def test_a_program_is_split_into_its_methods() -> None:
    program = (
        "from x import y\n\n@cache\ndef first(a):\n    '''Doc.'''\n"
        "    def inner():\n        return a\n    return inner\n\n"
        "class Solution:\n    def solve(self, n):\n        return n + 1\n\nprint(first(2))\n"
    )
    assert split_code(program) == [
        ("first", "@cache\ndef first(a):\n    def inner():\n        return a\n    return inner"),
        ("Solution.solve", "def solve(self, n):\n    return n + 1"),
    ]


@pytest.mark.parametrize("text", ["print(1)\n", "    return a + b\n", "int f() { return 1; }", "lambda x: x"])
def test_a_text_without_a_method_is_compared_whole(text: str) -> None:
    assert split_code(text) == [(None, text)]
