"""docs/data-dictionary.md is generated and up to date."""

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from publishing.glossary import REASONS, STAGES
from schemas import comparisons, execution, history, records, scores, search, tasks
from schemas.arrow import schema_of
from tools import data_dictionary


def section(text: str, title: str) -> str:
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_file_is_up_to_date() -> None:
    assert data_dictionary.OUTPUT.read_text(encoding="utf-8") == data_dictionary.render()


def test_check_accepts_the_current_file_and_refuses_a_stale_or_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "docs" / "data-dictionary.md"
    monkeypatch.setattr(data_dictionary, "ROOT", tmp_path)
    monkeypatch.setattr(data_dictionary, "OUTPUT", output)
    assert data_dictionary.main(["--check"]) == 1
    assert data_dictionary.main([]) == 0
    assert data_dictionary.main(["--check"]) == 0
    output.write_text(output.read_text(encoding="utf-8") + "\nedited", encoding="utf-8")
    capsys.readouterr()
    assert data_dictionary.main(["--check"]) == 1
    assert capsys.readouterr().err == (
        "docs/data-dictionary.md is stale; run: python -m tools.data_dictionary\n".replace("/", str(Path("/")))
    )


def test_every_row_type_has_a_section() -> None:
    # What functions hand on, and configuration.
    no_rows = (
        records.Kept,
        records.DuplicateCluster,
        search.SearchConfig,
        execution.ExecResult,
        execution.RealCodeConfig,
    )
    described = {item.row_type for item in data_dictionary.SECTIONS}
    rows = {
        value
        for module in (comparisons, execution, history, records, scores, search, tasks)
        for value in vars(module).values()
        if isinstance(value, type) and is_dataclass(value) and value not in no_rows
    }
    assert rows == described


def test_every_column_of_a_data_point_has_a_line_with_its_type() -> None:
    lines = section(data_dictionary.render(), "data_points, raw_data, raw_data_docstring").splitlines()
    rows = [[cell.strip() for cell in line.split(" | ")] for line in lines if line.startswith("| `")]
    assert [row[0] for row in rows] == [f"| `{item.name}`" for item in fields(records.DataPoint)]
    schema = schema_of(records.DataPoint)
    assert [(row[1], row[2]) for row in rows] == [
        (str(column.type).replace("list<element: string>", "list of string"), "yes" if column.nullable else "no")
        for column in schema
    ]
    assert all(row[3] for row in rows)


@pytest.mark.parametrize(
    "line",
    [
        "| `n_ast_levels` | int64 | no | Nodes on the longest root-to-leaf path of the tree-sitter tree of code, "
        "root counted. | ast_levels |",
        "| `commit_id` | string | no | The commit that brought the method. |  |",
        "| `members` | list of string | no | Row ids of all members, sorted. |",
        "| `excluded_by_reason` | map of string to int64 | no | Rows left out, by reason. |",
        "| `sources` | a repository that the configuration names or the search finds |",
        "| `commits`, `history` | `date_in_future` | dated later than the run |",
        "| `files`, `index`, `cutoff` | `symlink` | a symbolic link |",
    ],
)
def test_lines_read_as_expected(line: str) -> None:
    assert line in data_dictionary.render().splitlines()


def test_testbeds_list_their_own_columns_only() -> None:
    text = section(data_dictionary.render(), "random_cut")
    assert [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")] == [
        "prefix",
        "target",
        "cut_byte",
    ]
    assert "random_cut (earlier random_split)" in text
    assert "All columns of `data_points`, then:" in text


def test_reasons_stand_in_the_order_of_their_stages() -> None:
    stages, reasons = section(data_dictionary.render(), "Reasons").split("\n\n| stage | reason | meaning |\n")
    assert [line.split("`")[1] for line in stages.splitlines() if line.startswith("| `")] == list(STAGES)
    rows = [line.split(" | ") for line in reasons.splitlines()[1:] if line]
    assert [row[1].strip("`") for row in rows] == list(REASONS)
    assert list(dict.fromkeys(row[0] for row in rows)) == [
        "| `discovery`",
        "| `sources`",
        "| `commits`, `history`",
        "| `files`, `index`, `cutoff`",
        "| `methods`",
        "| `features`",
        "| `dedup_old`",
        "| `opt_out`",
        "| `references`",
        "| `dedup_references`",
        "| `dedup_exact`, `dedup_near`",
        "| `real_code`",
        "| `testbed_*`",
    ]


def test_aliases_name_columns_that_exist() -> None:
    for row_type, aliases in data_dictionary.ALIASES.items():
        assert aliases.keys() <= {item.name for item in fields(row_type)}
    assert data_dictionary.SAME_NAME_OTHER_MEANING.keys() <= {item.name for item in fields(records.DataPoint)}


def test_a_field_without_a_docstring_is_found(tmp_path: Path) -> None:
    source = tmp_path / "rows.py"
    source.write_text(
        'class Row:\n    a: int\n    """First\n    column."""\n    b: int\n    c: int = 1\n    """Last."""\n'
    )
    assert data_dictionary.field_docs(source) == {"Row": {"a": "First column.", "b": "", "c": "Last."}}


def test_a_dictionary_with_an_undescribed_column_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "empty.py"
    source.write_text("class RepositoryRecord:\n    repo: str\n")
    monkeypatch.setattr(data_dictionary, "SOURCES", (source,))
    with pytest.raises(ValueError, match=r"RepositoryRecord\.repo has no docstring line under it"):
        data_dictionary.render()
