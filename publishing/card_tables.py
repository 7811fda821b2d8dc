"""The tables of the data set card: configs, overlap, funnel, repositories, licences, columns."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from publishing.card_numbers import attributions_table
from publishing.columns import column_docs, row_type_doc
from publishing.facts import ConfigFacts, ReleaseFacts
from publishing.glossary import reason_meaning, stage_meaning, stage_name
from publishing.header import SPLIT
from publishing.manifest import Manifest
from publishing.markdown import code, link, plain, share, size, table
from publishing.shards import EXCLUSIONS
from schemas.arrow import type_name

PURPOSES = {
    "raw_data": "every kept method: mining, metrics, sampling of one's own",
    "raw_data_docstring": "the methods whose docstring has more than 3 words",
    "random_cut": "code completion: `prefix` to `target`, without docstring",
    "with_docstring": "code completion: `prefix` with docstring to `target`",
    "from_docstring": "code generation: `prompt_code` (signature and docstring) to `target` (body)",
    "commit_gen": "`commit_message` to `code` (without `diff`), or `code` and `diff` to `commit_message`",
    "summarization_gen": "code summarisation: `code_without_docstring` to `target` (docstring)",
    "real_code": "code generation proven by execution: `left_context` (and `right_context`) to `canonical_solution`",
    EXCLUSIONS: "what was left out: id, stage, reason and evidence",
}
_LOCAL = "local"  # host of paths and imported samples (schemas.records.RepositoryRecord)
_BASE_ROWS = "DataPoint"  # row type without columns of a task

Column = tuple[str, str, str]


def configs_section(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return the table of configs, how they were sampled, and which have no rows."""
    rows = []
    for config in facts.configs:
        origin = facts.by_config.get(config.name)
        largest = "" if origin is None or origin.largest_repo is None else code(origin.largest_repo)
        rows.append([
            code(config.name), f"{config.rows:,}", "" if origin is None else f"{origin.n_repos:,}",
            f"{largest} {share(origin.largest_rows, config.rows)}" if origin is not None and largest else "",
            PURPOSES.get(config.name, ""), size(config.download_size),
        ])  # fmt: skip
    limits = manifest.config["testbeds"]
    empty = [config.name for config in facts.configs if not config.rows]
    head = ["config", "rows", "repositories", "largest of them", "for", "files"]
    text = f"## Configs\n\n{table(head, rows)}"
    text += (
        f"\n\nEvery config has the one split `{SPLIT}`. Sampled testbeds have at most {limits['size']:,} rows and at "
        f"most {limits['max_per_repo']:,} of one repository (`commit_gen` also at most {limits['max_per_commit']:,} of "
        f"one commit), drawn with seed {limits['seed']} after the removal of duplicates."
    )
    if empty:
        names = ", ".join(code(name) for name in empty)
        text += f" Without rows, and so not loadable with `load_dataset`: {names}."
    return text


def overlap_section(facts: ReleaseFacts) -> str:
    """Return how many rows of each testbed stand in each other one."""
    names = [config.name for config in facts.configs if config.rows and config.name in facts.by_config]
    rows = [
        [code(name), *(f"{facts.by_config[name].shared_with.get(other, 0):,}" for other in names)] for name in names
    ]
    return (
        "## Overlap\n\nRows of the testbed at the left that stand, with the same `row_id`, in the testbed above. What "
        "one testbed gives another may ask for (`summarization_gen` gives the whole code): take no examples for a "
        "prompt from rows whose `row_id` is among those that you test with.\n\n" + table(["", *map(code, names)], rows)
    )


def funnel_section(manifest: Manifest) -> str:
    """Return what became of every row, with the meaning of every stage and reason."""
    rows = []
    for row in manifest.funnel:
        rows.append([code(row.stage), f"{row.rows_in:,}", f"{row.rows_out:,}", "", ""])
        rows += [["", "", "", code(reason), f"{count:,}"] for reason, count in row.excluded_by_reason.items()]
    stages = dict.fromkeys(stage_name(row.stage) for row in manifest.funnel)
    sentences = "\n".join(f"- {code(stage)}: {stage_meaning(stage)}." for stage in stages)
    reasons = sorted({reason for row in manifest.funnel for reason in row.excluded_by_reason})
    meanings = [[code(reason), reason_meaning(reason)] for reason in reasons]
    return (
        "## Funnel\n\nRows of each stage, and why rows did not go on; "
        f"`{EXCLUSIONS}/` names each of them with its evidence. In every line of a stage, in is out plus what was left "
        "out; stages count different things, so one stage's out need not be the next one's in.\n\n"
        + table(["stage", "in", "out", "left out because", "rows"], rows)
        + ("\n\nA row of a stage is\n\n" + sentences if stages else "")
        + ("\n\n" + table(["reason", "meaning"], meanings) if meanings else "")
    )


def repositories_section(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return repositories with branch, head and rows; the host where there is one."""
    has_raw = any(config.name == "raw_data" for config in facts.configs)
    hosts = any(record["host"] != _LOCAL for record in manifest.repositories)
    total = sum(facts.raw_by_repo.values())
    rows = []
    for record in manifest.repositories:
        n_rows = facts.raw_by_repo.get(str(record["repo"]), 0)
        host = "" if record["host"] == _LOCAL else plain(str(record["host"]))
        address = record["web_url"]
        rows.append([
            link(code(str(record["repo"])), str(address) if address else None),
            *([host] if hosts else []),
            code(str(record["default_branch"])), code(str(record["head"])), f"{n_rows:,}", share(n_rows, total),
        ])  # fmt: skip
    head = ["repository", *(["host"] if hosts else []), "branch", "head", "rows in `raw_data`" if has_raw else "rows"]
    return "## Repositories\n\n" + table([*head, "share"], rows)


def licenses_section(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return the rows of each licence and which licences were let through."""
    config = manifest.config["licences"]
    allowed = "every licence" if config["allow"] == ["*"] else ", ".join(map(code, config["allow"]))
    unknown = "code without a known licence, too" if config["unknown"] == "keep" else "no code without a known licence"
    rows = [[plain(name), f"{count:,}"] for name, count in facts.by_license.items()]
    return (
        "## Licences\n\nColumn `license` has the SPDX expression that a program recognised at the row's commit: that "
        "of the file's own header, else that of the licence texts and project metadata in the nearest folder that has "
        "any, from the file's own up to the root; null when unknown. `license_matches` has everything that was found. "
        f"Let through: {allowed}; {unknown}. The code stays under its licence.\n\n"
        + table(["licence", "rows"], rows)
        + (f"\n\n{attributions}" if (attributions := attributions_table(facts, manifest)) else "")
    )


def columns_section(facts: ReleaseFacts) -> str:
    """Describe the columns that all testbeds share once, then each config's own with their own meanings."""
    described = {config.name: _columns(config.schema) for config in facts.configs}
    testbeds = [columns for name, columns in described.items() if name != EXCLUSIONS]
    shared = [column for column in testbeds[0] if all(column in columns for columns in testbeds)] if testbeds else []
    blocks = [f"### Shared by all testbeds\n\n{_column_table(shared)}"] if shared else []
    for config in facts.configs:
        own = [column for column in described[config.name] if config.name == EXCLUSIONS or column not in shared]
        blocks.append(_config_block(config, own, shares=bool(shared) and config.name != EXCLUSIONS))
    return "## Columns\n\n" + "\n\n".join(blocks)


def _config_block(config: ConfigFacts, own: Sequence[Column], shares: bool) -> str:
    """Return one config's purpose and own columns."""
    row_type = _row_type(config.schema)
    lines = [f"### {config.name}"]
    if row_type != _BASE_ROWS and (text := row_type_doc(row_type)):
        lines.append(plain(text))
    elif config.name in PURPOSES:
        lines.append(f"{PURPOSES[config.name][0].upper()}{PURPOSES[config.name][1:]}.")
    if not own:
        return "\n\n".join([*lines, "The shared columns and no others."])
    return "\n\n".join([*lines, *(["The shared columns, and:"] if shares else []), _column_table(own)])


def _columns(schema: pa.Schema) -> list[Column]:
    """Return name, type and meaning of a schema's columns."""
    docs: Mapping[str, str] = column_docs(_row_type(schema))
    return [(column.name, type_name(column.type), docs.get(column.name, "")) for column in schema]


def _row_type(schema: pa.Schema) -> str:
    return str((schema.metadata or {}).get(b"postquem.table", b"").decode())


def _column_table(columns: Sequence[Column]) -> str:
    return table(["column", "type", "meaning"], ([code(name), kind, plain(text)] for name, kind, text in columns))
