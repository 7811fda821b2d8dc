"""The card's sections of numbers: features of every testbed, rows for a model's cutoff, attributions, changes."""

from collections.abc import Mapping, Sequence
from itertools import islice

from publishing.changes import CONCLUSIONS, Changes, Kind, TestbedChange
from publishing.facts import UNKNOWN_LICENSE, ReleaseFacts
from publishing.glossary import reason_meaning
from publishing.manifest import Manifest
from publishing.markdown import code, link, plain, table
from publishing.statistics import FEATURES, Attribution, Spread

_CAUSES = 20  # differences that the card lists; manifest.json has all
_REASONS = 3  # reasons of a testbed's changes that the card lists
_VALUE = 60  # characters of a value
_HOLDERS = 3  # lines on the copyright of one repository that the card lists
_FILES = 5  # licence files of one repository that the card lists


def features_section(facts: ReleaseFacts) -> str:
    """Return mean and standard deviation of every feature in every testbed that has rows."""
    spreads = facts.statistics.features
    names = [config.name for config in facts.configs if config.rows and config.name in spreads]
    if not names:
        return ""
    rows = [[code(column), *(_spread(spreads[name][column]) for name in names)] for column in FEATURES]
    return (
        "## Features\n\nMean and standard deviation (of a sample: divided by the rows less one) in every testbed, as "
        "in Table II of Galeras. Columns says what each counts.\n\n" + table(["feature", *map(code, names)], rows)
    )


def _spread(spread: Spread) -> str:
    return f"{spread.mean:,.1f} ± {spread.std:,.1f}"


def cutoffs_table(facts: ReleaseFacts) -> str:
    """Return how many rows each testbed has for a model, by its training cutoff; empty without rows."""
    days = facts.statistics.since
    names = [config.name for config in facts.configs if config.rows and config.name in facts.by_config]
    if not days or not names:
        return ""
    rows = [[day.isoformat(), *(f"{counts[name]:,}" for name in names)] for day, counts in days]
    return (
        "For a model whose training data ends before the day at the left, these rows have both dates on or after that "
        "day, so that by their dates it cannot have seen them (Limits says what dates do not show):\n\n"
        + table(["training data ends before", *map(code, names)], rows)
    )


def attributions_table(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return whose code it is: rows of every repository under every licence, with the files that state it."""
    urls = {str(record["repo"]): record["web_url"] for record in manifest.repositories}
    rows = []
    for item in facts.statistics.attributions:
        files = [code(name) for name in islice(item.sources, _FILES)]
        more = len(item.sources) - len(files)
        url = urls.get(item.repo)
        rows.append([
            link(code(item.repo), str(url) if url else None), plain(item.license or UNKNOWN_LICENSE), f"{item.rows:,}",
            ", ".join([*files, *([f"{more:,} more"] if more else [])]), _holders(item),
        ])  # fmt: skip
    if not rows:
        return ""
    return (
        "### Attribution\n\nThe code is by the contributors of these repositories. Who passes rows on keeps what "
        "their licences ask for: the copyright notices and texts of the files that are named here, as they stand at "
        "the row's commit (`header`: the row's own file). `NOTICE` has every line that names a holder, column "
        "`copyrights` those of each row.\n\n" + table(["repository", "licence", "rows", "stated in", "copyright"], rows)
    )


def _holders(item: Attribution) -> str:
    """Return the lines that name holders, as many as the card lists."""
    lines = [plain(line) for line in islice(item.copyrights, _HOLDERS)]
    more = len(item.copyrights) - len(lines)
    return "; ".join([*lines, *([f"{more:,} more"] if more else [])])


def changes_section(changes: Changes | None) -> str:
    """Return what changed since the release before; empty without one."""
    if changes is None:
        return ""
    rows = [
        [
            code(bed.testbed), f"{bed.before:,}", f"{bed.after:,}", f"{bed.added:,}", f"{bed.removed:,}",
            f"{bed.changed:,}", _reasons(bed),
        ]
        for bed in changes.testbeds
    ]  # fmt: skip
    head = ["testbed", "before", "now", "added", "removed", "changed", "most of them because"]
    blocks = [
        f"## Changes since {plain(changes.version)}",
        _causes(changes),
        table(head, rows),
        _meanings(changes.testbeds),
        "`postquem release diff` with the two folders tells every row and why.",
    ]
    return "\n\n".join(block for block in blocks if block)


def _causes(changes: Changes) -> str:
    """Return what the releases were made from that differs; heads are counted, the rest is listed."""
    heads = [cause for cause in changes.causes if cause.what.startswith("repository ")]
    others = [cause for cause in changes.causes if cause not in heads]
    counts = {
        "new heads": sum(cause.before is not None and cause.after is not None for cause in heads),
        "added": sum(cause.before is None for cause in heads),
        "gone": sum(cause.after is None for cause in heads),
    }
    lines = []
    if heads:
        lines.append("Repositories: " + ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) + ".")
    for cause in others[:_CAUSES]:
        before, after = (("nothing" if value is None else code(_short(value))) for value in (cause.before, cause.after))
        lines.append(f"{plain(cause.what)}: {before} before, {after} now.")
    if len(others) > _CAUSES:
        lines.append(f"{len(others) - _CAUSES:,} more are in `manifest.json` (`changes`).")
    return "\n".join(f"- {line}" for line in lines) or "Made from the same."


def _short(value: str) -> str:
    return value if len(value) <= _VALUE else f"{value[: _VALUE - 3]}..."


def _reasons(bed: TestbedChange) -> str:
    return ", ".join(f"{code(item.reason)} {item.rows:,}" for item in bed.reasons[:_REASONS])


def _meanings(beds: Sequence[TestbedChange]) -> str:
    """Return the meanings of the reasons that the table names; columns that changed mean themselves."""
    named = {item.reason for bed in beds for item in bed.reasons[:_REASONS] if item.change is not Kind.CHANGED}
    meanings: Mapping[str, str] = {name: CONCLUSIONS.get(name) or reason_meaning(name) for name in sorted(named)}
    return table(["reason", "meaning"], [[code(name), text] for name, text in meanings.items()]) if meanings else ""
