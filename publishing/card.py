"""The data set card (`README.md` of a release): YAML header and text, written from what the files hold."""

from collections.abc import Iterable, Sequence

from publishing.columns import column_docs
from publishing.facts import ReleaseFacts
from publishing.header import SPLIT, header
from publishing.manifest import MANIFEST_NAME, Manifest
from publishing.shards import EXCLUSIONS, shard_pattern

_PURPOSES = {
    "raw_data": "every kept method: mining, metrics, sampling of one's own",
    "raw_data_docstring": "the methods whose docstring has more than 3 words",
    "random_cut": "code completion: `prefix` to `target`, without docstring",
    "with_docstring": "code completion: `prefix` with docstring to `target`",
    "from_docstring": "code generation: `prompt_code` (signature and docstring) to `target` (body)",
    "commit_gen": "`commit_message` to `code`, or `code` and `diff` to `commit_message`",
    "summarization_gen": "code summarisation: `code_without_docstring` to `target` (docstring)",
    EXCLUSIONS: "what was left out: id, stage, reason and evidence",
}


def render_card(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return the whole card; `facts` come from the folder's Parquet files."""
    sections = [
        _introduction(facts, manifest),
        _loading(facts, manifest),
        _configs(facts, manifest),
        _cutoff(facts, manifest),
        _funnel(manifest),
        _repositories(facts, manifest),
        _licenses(facts),
        _columns(facts),
        _limits(manifest),
        _provenance(manifest),
        _citation(manifest),
    ]
    return header(facts, manifest.name) + "\n" + "\n\n".join(sections) + "\n"


def _introduction(facts: ReleaseFacts, manifest: Manifest) -> str:
    classes = ", ".join(f"{_code(name)} ({rows:,})" for name, rows in facts.by_novelty.items()) or "none"
    return (
        f"# {_text(manifest.name)} {manifest.version}\n\n"
        "Benchmarks for code models, made of Python functions and methods that entered their repositories after a "
        "cutoff, mined from git history, freed of near-duplicates and cut into tasks. The testbeds follow Galeras "
        "(ICSME 2023).\n\n"
        f"{facts.rows:,} distinct rows from {len(facts.by_repo):,} repositories. Novelty classes: {classes}."
    )


def _loading(facts: ReleaseFacts, manifest: Manifest) -> str:
    loadable = [config.name for config in facts.configs if config.rows]
    name = loadable[0] if loadable else "raw_data"
    return (
        "## How to load\n\n"
        "```python\nfrom datasets import load_dataset\n\n"
        f'rows = load_dataset("<this folder or its id on the Hub>", "{name}", split="{SPLIT}")\n```\n\n'
        f'From the Hub, add `revision="{manifest.version}"` to get exactly this release. '
        "With DuckDB, in this folder:\n\n"
        f"```sql\nSELECT repo, fun_name, code FROM '{shard_pattern(name)}' LIMIT 5;\n```"
    )


def _configs(facts: ReleaseFacts, manifest: Manifest) -> str:
    rows = [
        [_code(config.name), f"{config.rows:,}", _PURPOSES.get(config.name, ""), _megabytes(config.download_size)]
        for config in facts.configs
    ]
    limits = manifest.config["testbeds"]
    empty = [config.name for config in facts.configs if not config.rows]
    text = "## Configs\n\n" + _table(["config", "rows", "for", "files"], rows)
    text += (
        f"\n\nEvery config has the one split `{SPLIT}`. Sampled testbeds have at most {limits['size']:,} rows and at "
        f"most {limits['max_per_repo']:,} of one repository, drawn with seed {limits['seed']} after the removal of "
        "duplicates."
    )
    if empty:
        names = ", ".join(_code(name) for name in empty)
        text += f" Without rows, and so not loadable with `load_dataset`: {names}."
    return text


def _cutoff(facts: ReleaseFacts, manifest: Manifest) -> str:
    since, until = manifest.config["window"]["since"], manifest.config["window"]["until"]
    end = f"before {until}" if until else "not later than the time of mining"
    text = f"## Cutoff\n\nAuthor date and committer date of every row's commit are at or after {since} and {end} (UTC)."
    if facts.first_date is not None and facts.last_date is not None:
        text += f" The dates found range from {facts.first_date.isoformat()} to {facts.last_date.isoformat()}."
    return text + " Both dates are columns, so that rows can be filtered by a model's own training cutoff."


def _funnel(manifest: Manifest) -> str:
    rows = []
    for row in manifest.funnel:
        rows.append([_code(row.stage), f"{row.rows_in:,}", f"{row.rows_out:,}", "", ""])
        rows += [["", "", "", _code(reason), f"{count:,}"] for reason, count in row.excluded_by_reason.items()]
    return (
        "## Funnel\n\nRows of each stage, and why rows did not go on; "
        f"`{EXCLUSIONS}/` names each of them with its evidence.\n\n"
        + _table(["stage", "in", "out", "left out because", "rows"], rows)
    )


def _repositories(facts: ReleaseFacts, manifest: Manifest) -> str:
    rows = [
        [
            _code(str(record["repo"])),
            _text(str(record["host"])),
            _code(str(record["default_branch"])),
            _code(str(record["head"])),
            f"{facts.by_repo.get(str(record['repo']), 0):,}",
        ]
        for record in manifest.repositories
    ]
    return "## Repositories\n\n" + _table(["repository", "host", "branch", "head", "rows"], rows)


def _licenses(facts: ReleaseFacts) -> str:
    rows = [[_text(name), f"{count:,}"] for name, count in facts.by_license.items()]
    return (
        "## Licences\n\nEvery row carries the SPDX expression found in its repository at the commit (column `license`, "
        "null when unknown); the code stays under that licence.\n\n" + _table(["licence", "rows"], rows)
    )


def _columns(facts: ReleaseFacts) -> str:
    """Describe the first testbed's columns, then what each other config has on top."""
    blocks: list[str] = []
    known: set[tuple[str, str]] = set()
    for config in facts.configs:
        docs = column_docs((config.schema.metadata or {}).get(b"postquem.table", b"").decode())
        columns = [(column.name, str(column.type)) for column in config.schema]
        fresh = [column for column in columns if config.name == EXCLUSIONS or column not in known]
        if fresh:
            rows = [[_code(name), kind, _text(docs.get(name, ""))] for name, kind in fresh]
            inherits = len(fresh) < len(columns)
            title = f"### {config.name}\n\n" + ("The columns above that it shares, and:\n\n" if inherits else "")
            blocks.append(title + _table(["column", "type", "meaning"], rows))
        known.update(columns)
    return "## Columns\n\n" + "\n\n".join(blocks)


def _limits(manifest: Manifest) -> str:
    dedup = manifest.config["dedup"]
    return (
        "## Limits\n\n"
        "- Python only.\n"
        "- New means new to the repository at that commit. Code that its author copied from elsewhere, or that a model "
        "wrote, can be among it.\n"
        "- Dates are what git records; their authors can set them to anything.\n"
        f"- Within this release no two rows of `raw_data` reach a Jaccard similarity of {dedup['threshold']} (sets of "
        f"BPE tokens, docstring left out; of methods with fewer than {dedup['min_distinct_tokens']} distinct tokens "
        "only equal ones are removed); similar code outside it is not looked for.\n"
        "- Licences are recognised from files by program; check before you redistribute.\n"
        "- `parses` is the verdict of one CPython version (below), `doc_language` that of a statistical identifier."
    )


def _provenance(manifest: Manifest) -> str:
    return (
        "## Provenance\n\n"
        f"`{MANIFEST_NAME}` holds the configuration, heads of all repositories, file hashes and row counts. "
        f"Made with Postquem {manifest.code_version}, column schemas {manifest.schema_version}, "
        f"CPython {manifest.python_version}, "
        f"{manifest.grammar_version}, tokenizer {_code(manifest.tokenizer_sha256)}, {manifest.parquet_writer}; "
        f"configuration {_code(manifest.config_digest)}. The same inputs give the same bytes."
    )


def _citation(manifest: Manifest) -> str:
    key = "".join(char for char in manifest.name.lower() if char.isalnum() and char.isascii()) or "postquem"
    return (
        "## How to cite\n\n"
        "Name the version, since rows differ between versions:\n\n"
        f"```bibtex\n@misc{{{key},\n  title = {{{_text(manifest.name)}}},\n  version = {{{manifest.version}}},\n"
        f"  note = {{Configuration {manifest.config_digest[:12]}}}\n}}\n```"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _code(text: str) -> str:
    """Return text as a code span that cannot break a table or the span."""
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


def _text(text: str) -> str:
    """Return text for a table cell: one line, no pipes, no tags."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
