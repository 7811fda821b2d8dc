"""The data set card (`README.md` of a release): YAML header and text, written from what the files hold."""

from datetime import datetime

from publishing.card_numbers import changes_section, cutoffs_table, features_section
from publishing.card_tables import (
    columns_section,
    configs_section,
    funnel_section,
    licenses_section,
    overlap_section,
    repositories_section,
)
from publishing.citation import bibtex_entry
from publishing.croissant import CROISSANT_NAME
from publishing.discovery import discovery_section
from publishing.duplicates import duplicates_section
from publishing.examples import render_example
from publishing.facts import ReleaseFacts
from publishing.harness.section import harness_section
from publishing.header import SPLIT, header
from publishing.limits import limits_section
from publishing.manifest import MANIFEST_NAME, Manifest
from publishing.markdown import code, fenced, plain
from publishing.shards import shard_pattern


def render_card(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return the whole card; `facts` come from the folder's Parquet files."""
    sections = [
        _introduction(facts, manifest),
        _loading(facts, manifest),
        configs_section(facts, manifest),
        harness_section(facts, manifest),
        changes_section(manifest.changes),
        _examples(facts),
        _cutoff(facts, manifest),
        limits_section(facts, manifest),
        columns_section(facts),
        features_section(facts),
        overlap_section(facts),
        duplicates_section(manifest.duplicates, manifest.config["dedup"]),
        funnel_section(manifest),
        discovery_section(manifest.discovery),
        repositories_section(facts, manifest),
        licenses_section(facts, manifest),
        _provenance(manifest),
        _citation(facts, manifest),
    ]
    return header(facts, manifest.name) + "\n" + "\n\n".join(section for section in sections if section) + "\n"


def _introduction(facts: ReleaseFacts, manifest: Manifest) -> str:
    classes = ", ".join(f"{code(name)} ({rows:,})" for name, rows in facts.by_novelty.items()) or "none"
    return (
        f"# {plain(manifest.name)}\n\n"
        f"Version {plain(manifest.version)}\n\n"
        "Benchmarks for code models, made of Python functions and methods that commits dated at or after "
        f"{_day(manifest.config['window']['since'])} brought to their repositories, mined from git history, freed of "
        "near-duplicates and cut into tasks. What is shown of a row of the class `added` is that no definition of its "
        "name in the file and none with its tokens stood in the commit's parent tree; Limits says what is not shown. "
        "The testbeds follow Galeras (ICSME 2023).\n\n"
        f"{facts.rows:,} distinct rows from {len(facts.by_repo):,} repositories. Novelty classes: {classes}."
    )


def _loading(facts: ReleaseFacts, manifest: Manifest) -> str:
    loadable = [config.name for config in facts.configs if config.rows]
    name = loadable[0] if loadable else "raw_data"
    load = (
        "from datasets import load_dataset\n\n"
        f'rows = load_dataset("<this folder or its id on the Hub>", "{name}", split="{SPLIT}")'
    )
    return (
        f"## How to load\n\n{fenced(load, 'python')}\n\n"
        f'From the Hub, add `revision="{manifest.version}"` to get exactly this release. '
        "With DuckDB, in this folder:\n\n"
        f"```sql\nSELECT repo, fun_name, code FROM '{shard_pattern(name)}' LIMIT 5;\n```\n\n"
        f"`{CROISSANT_NAME}` describes all configs, columns and files in the Croissant format."
    )


def _examples(facts: ReleaseFacts) -> str:
    """Return a row of some testbeds; empty when no row can be shown."""
    if not facts.examples:
        return ""
    note = "One row each, without its other columns. A fence begins and ends with a line end that is not the row's."
    return "\n\n".join(["## Examples", note, *(render_example(example) for example in facts.examples)])


def _cutoff(facts: ReleaseFacts, manifest: Manifest) -> str:
    since, until = manifest.config["window"]["since"], manifest.config["window"]["until"]
    text = f"## Cutoff\n\nAuthor date and committer date of every row's commit are at or after {since}"
    text += f" and before {until} (UTC)." if until else " (UTC); the configuration sets no upper end."
    if facts.first_date is not None and facts.last_date is not None and facts.last_committer_date is not None:
        text += (
            f" The dates found range from {facts.first_date.isoformat()} to {facts.last_date.isoformat()}; the newest "
            f"committer date is {facts.last_committer_date.isoformat()}."
        )
    text += (
        " The time of the run is not recorded: the histories were walked up to the heads named under Repositories, "
        "and nothing that came after those heads is in it."
    )
    moment = _middle(facts, since)
    snippet = (
        "from datetime import datetime, timezone\n\n"
        f"cutoff = datetime({moment.year}, {moment.month}, {moment.day}, tzinfo=timezone.utc)"
        "  # the model's training cutoff\n"
        'rows = rows.filter(lambda row: min(row["author_date"], row["committer_date"]) >= cutoff)'
    )
    rows = cutoffs_table(facts)
    text += f"\n\n{rows}" if rows else ""
    text += "\n\nTo filter by a model's own cutoff, here with the middle of the range:\n\n"
    return text + fenced(snippet, "python")


def _middle(facts: ReleaseFacts, since: str) -> datetime:
    """Return the middle of the dates found, the cutoff without rows."""
    if facts.first_date is None or facts.last_date is None:
        return datetime.fromisoformat(since)
    return facts.first_date + (facts.last_date - facts.first_date) / 2


def _provenance(manifest: Manifest) -> str:
    return (
        "## Provenance\n\n"
        f"`{MANIFEST_NAME}` holds the configuration, in which absolute local paths are shortened to their last part "
        "(or to the configured `repo`), heads of all repositories, file hashes and row counts. "
        f"Made with Postquem {manifest.code_version}, column schemas {manifest.schema_version}, "
        f"CPython {manifest.python_version}, "
        f"{manifest.grammar_version}, tokenizer {code(manifest.tokenizer_sha256)}, {manifest.parquet_writer}; "
        f"configuration {code(manifest.config_digest)}. The same inputs give the same bytes: "
        f"`postquem release build --from {MANIFEST_NAME}` builds the release again and compares them, "
        "`postquem release check` looks at every promise of this page."
    )


def _citation(facts: ReleaseFacts, manifest: Manifest) -> str:
    entry = fenced(bibtex_entry(facts, manifest), "bibtex")
    return f"## How to cite\n\nName the version, since rows differ between versions:\n\n{entry}"


def _day(moment: str) -> str:
    """Return a moment of the configuration without its time when it is midnight UTC."""
    return moment.removesuffix("T00:00:00+00:00")
