"""Generate docs/data-dictionary.md from the row dataclasses and the glossary, or check that it is up to date.

python -m tools.data_dictionary            # write docs/data-dictionary.md
python -m tools.data_dictionary --check    # exit 1 when the file is stale
"""

import ast
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from publishing.glossary import REASONS_BY_STAGE, STAGES
from schemas import comparisons, execution, history, records, scores, search, tasks
from schemas.arrow import SCHEMA_VERSION, schema_of, type_name
from tools.generated import Document

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "data-dictionary.md"
SOURCES = tuple(
    ROOT / "schemas" / f"{name}.py"
    for name in ("search", "records", "history", "comparisons", "tasks", "execution", "scores")
)


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the dictionary."""

    title: str
    """Heading: the table's names."""
    row_type: type
    """The dataclass of its rows."""
    base: type | None = None
    """Dataclass whose columns come first and are described elsewhere."""


SECTIONS = (
    Section("repositories", records.RepositoryRecord),
    Section("discoveries", search.Discovery),
    Section("search_windows", search.SearchWindow),
    Section("discovered_repositories", search.DiscoveredRepository),
    Section("commits", records.CommitRecord),
    Section("changed_files", records.ChangedFile),
    Section("methods", records.Method),
    Section("historic_files", history.HistoricFile),
    Section("indexed_files", history.IndexedFile),
    Section("vanished_methods", history.VanishedMethod),
    Section("data_points, raw_data, raw_data_docstring", records.DataPoint),
    Section("random_cut", tasks.RandomCut, records.DataPoint),
    Section("with_docstring", tasks.WithDocString, records.DataPoint),
    Section("from_docstring", tasks.FromDocString, records.DataPoint),
    Section("commit_gen", tasks.CommitGen, records.DataPoint),
    Section("summarization_gen", tasks.SummarizationGen, records.DataPoint),
    Section("real_code", execution.RealCode, records.DataPoint),
    Section("real_code: one of `mocks`", execution.MockResult),
    Section("real_code: `environment`", execution.Environment),
    Section("real_code_runs", execution.RealCodeRun),
    Section("answer_scores (`postquem score --out`)", scores.AnswerScore),
    Section("cutoffs", comparisons.Cutoff),
    Section("old_methods", comparisons.OldMethod),
    Section("copied_old", comparisons.OldCopy),
    Section("reference_sets", comparisons.ReferenceSet),
    Section("reference_texts", comparisons.ReferenceText),
    Section("reference_matches", comparisons.ReferenceMatch),
    Section("release_changes", comparisons.ReleaseChange),
    Section("tokens", comparisons.TextTokens),
    Section("compared_texts", comparisons.ComparedText),
    Section("similar_texts", comparisons.SimilarTexts),
    Section("unique_rows", records.UniqueRow),
    Section("duplicates", records.DuplicatePair),
    Section("duplicate_clusters", comparisons.DescribedCluster),
    Section("testbed_duplicates", comparisons.TestbedDuplicates),
    Section("exclusions, earlier_exclusions", records.Exclusion),
    Section("runs", records.StageReport),
)

# Names in the data that Galeras published (WM-SEMERU/galeras-benchmark), where they differ from the column's name.
# `documentation` is a nested object there; the names in brackets are its flat form in the SQL export.
DATA_POINT_ALIASES = {
    "row_id": "id",
    "docstring": "documentation.docstring",
    "doc_language": "documentation.language (d_language)",
    "doc_n_words": "documentation.n_words (dn_words)",
    "doc_vocab_size": "documentation.vocab_size (d_vocab_size)",
    "doc_n_whitespaces": "documentation.n_whitespaces (dn_whitespaces)",
    "n_ast_levels": "ast_levels",
    "token_count": "token_counts",
}
ALIASES: Mapping[type, Mapping[str, str]] = {
    records.DataPoint: DATA_POINT_ALIASES,
    tasks.RandomCut: {"prefix": "random_cut (earlier random_split)"},
    tasks.WithDocString: {"prefix": "random_cut (earlier random_split)"},
}

# Columns that share a name with Galeras' published data but not the meaning.
SAME_NAME_OTHER_MEANING = {
    "repo": "there the bare project name, without owner",
    "url": "there the clone address of the repository",
    "code": "there without any triple-quoted string and with the file's indentation",
    "signature": "there the text before the first colon",
    "n_words": "there counted on the code without triple-quoted strings; vocab_size and n_whitespaces too",
    "language": "there `Python`",
}

HEADER = f"""# Data dictionary

Made by `python -m tools.data_dictionary` from `schemas/` (`search.py`, `records.py`, `history.py`, `comparisons.py`,
`tasks.py`, `execution.py`) and `publishing/glossary.py`; do not edit. A test and `make check` compare it with the
code. Schema version {SCHEMA_VERSION}.

Every column of the lake's tables and of a release's configurations: its Arrow type, whether it may be null, what it
means and how it is computed, and the name it has in the data that Galeras published where that differs.
Times are in UTC. Offsets count bytes from 0, lines count from 1.
"""

FORMULAS = (
    ("Trees and text", ROOT / "features" / "ast_counts.py"),
    ("complexity, nloc, token_count", ROOT / "features" / "complexity.py"),
    ("doc_language, doc_language_confidence", ROOT / "features" / "language.py"),
)


def field_docs(path: Path) -> dict[str, dict[str, str]]:
    """Return the docstring line under each field, by class and field, read from the source."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            docs = found.setdefault(node.name, {})
            for item, after in zip(node.body, node.body[1:], strict=False):
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    docs[item.target.id] = _text_of(after)
    return found


def _text_of(node: ast.stmt) -> str:
    """Return the text of a string statement, empty for any other."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def render() -> str:
    """Return the whole dictionary; raise ValueError for a field without a docstring line."""
    docs: dict[str, dict[str, str]] = {}
    for path in SOURCES:
        docs |= field_docs(path)
    parts = [HEADER, *(_section(section, docs) for section in SECTIONS), _reasons(), _other_meanings(), _formulas()]
    return "\n".join(parts)


def _section(section: Section, docs: Mapping[str, Mapping[str, str]]) -> str:
    """Return the Markdown of one table."""
    described = frozenset(item.name for item in fields(section.base)) if section.base else frozenset()
    aliases = ALIASES.get(section.row_type, {})
    summary = " ".join((section.row_type.__doc__ or "").split())
    lines = [f"## {section.title}", "", summary, ""]
    if section.base is not None:
        lines += ["All columns of `data_points`, then:", ""]
    heading = ["column", "type", "null", "meaning"] + (["published Galeras name"] if aliases else [])
    lines += [_row(heading), _row(["---"] * len(heading))]
    for column in schema_of(section.row_type):
        if column.name in described:
            continue
        meaning = docs[section.row_type.__name__].get(column.name, "")
        if not meaning:
            raise ValueError(f"{section.row_type.__name__}.{column.name} has no docstring line under it")
        cells = [f"`{column.name}`", type_name(column.type), "yes" if column.nullable else "no", meaning]
        lines.append(_row(cells + ([aliases.get(column.name, "")] if aliases else [])))
    return "\n".join([*lines, ""])


def _row(cells: Sequence[str]) -> str:
    """Return one line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _reasons() -> str:
    """Return what the stages count and why rows do not go on, in the order of the stages."""
    intro = (
        "Stages and reasons of the tables `exclusions` and `runs` and of the funnel in every card. A reason stands "
        "with the first stages that give it; a later one may give it too."
    )
    lines = ["## Reasons", "", intro, "", _row(["stage", "a row of it is"]), _row(["---"] * 2)]
    lines += [_row([f"`{stage}`", text]) for stage, text in STAGES.items()]
    lines += ["", _row(["stage", "reason", "meaning"]), _row(["---"] * 3)]
    for stages, reasons in REASONS_BY_STAGE.items():
        names = ", ".join(f"`{stage}`" for stage in stages)
        lines += [_row([names, f"`{reason}`", text]) for reason, text in reasons.items()]
    return "\n".join([*lines, ""])


def _other_meanings() -> str:
    """Return the list of columns whose name Galeras' published data uses for something else."""
    lines = [f"- `{name}`: {meaning}" for name, meaning in SAME_NAME_OTHER_MEANING.items()]
    return "\n".join(["## Same name in Galeras' published data, other meaning", "", *lines, ""])


def _formulas() -> str:
    """Return the definitions that do not fit into a cell, as the modules that compute them state them."""
    parts = ["## How the features are computed", ""]
    for title, path in FORMULAS:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        parts += [f"### {title}", "", text, ""]
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the dictionary, or with --check compare it; return the exit code."""
    return Document(OUTPUT, str(OUTPUT.relative_to(ROOT)), "tools.data_dictionary").write_or_check(render(), arguments)


if __name__ == "__main__":
    sys.exit(main())
