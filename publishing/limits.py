"""What a release does not show: the card's section of limits, with shares counted in the rows."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from publishing.facts import ReleaseFacts
from publishing.manifest import Manifest
from publishing.markdown import code, share

_LARGEST = 3
# Measured on raw_data of datatrove, kubernetes-client, betfair-database, click, black, requests, pip and sympy, commits
# of 2024-01-01 to 2026-08-19: sets of `\w+` words of each method against those of every method with the same last name
# in the tree at the cutoff; 223 of 4,851 rows, 102 of 451 in kubernetes-client.
_OLD_SHARE, _OLD_SHARE_WORST = "5%", "23%"
# What a release need not have; a name leaves the line when its file or config is there.
_PLANNED = {
    "real_code": "the testbed `real_code`, whose tasks are proven by execution",
}


def limits_section(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return the section of limits."""
    parts = [
        ("What is new", _newness(facts, manifest)),
        ("What is distinct", _distinctness(manifest)),
        ("What is in it", _composition(facts)),
        ("What the texts are like", _texts(facts)),
        ("Licences and people", _rights(facts)),
    ]
    blocks = [f"### {title}\n\n" + "\n".join(f"- {line}" for line in lines) for title, lines in parts]
    missing = _not_there(facts, manifest)
    if missing:
        blocks.append(f"Not in this release: {'; '.join(missing)}.")
    return "## Limits\n\n" + "\n\n".join(blocks)


def _newness(facts: ReleaseFacts, manifest: Manifest) -> list[str]:
    lines = [
        "Class `added` shows that in the commit's parent tree no definition of this qualified name stood in the file "
        "(renames of the file followed) and no function with these tokens in any Python file (comments, docstring and "
        "its own name apart). It shows no more.",
        _old_code(manifest),
        "From elsewhere: code ported or copied from other projects, books or answers, and code that a model wrote, is "
        "not recognised at all.",
        "Dates are what git records; authors and committers can set them to anything.",
    ]
    if facts.shares.is_root:
        lines.append(
            f"{_rows(facts.shares.is_root, facts)} came with a commit without a parent, to which everything is new: "
            "a project's beginning or an import of older code (`parent_id` is null)."
        )
    return lines


def _old_code(manifest: Manifest) -> str:
    """Return what became of methods that resemble code from before the cutoff."""
    dedup = manifest.config["dedup"]
    if dedup["copied_old"] == "off":
        return (
            "Similar to old code: a method that resembles one from before the cutoff, or restores one that was removed "
            "earlier, is `added` too, since the comparison was switched off (`dedup.copied_old`). How often that "
            f"happens was measured on another set than this, of eight repositories: {_OLD_SHARE} of its rows, and "
            f"{_OLD_SHARE_WORST} of those of one repository, had a Jaccard similarity of 0.7 or more (sets of words) "
            "with a method of the same name in the repository at the cutoff. The docstring of such a row can be old "
            "too, word for word."
        )
    where = "any mined repository's tree" if dedup["copied_old"] == "all" else "its own repository's tree"
    found = sum(row.excluded_by_reason.get("copied_old", 0) for row in manifest.funnel)
    became = f"was left out ({found:,} as `copied_old`)"
    if "copied_old" in manifest.config["features"]["novelty"]:
        became = "has the class `copied_old`"
    return (
        f"Similar to old code: a method that reaches {dedup['threshold']} with one in {where} at the cutoff {became}. "
        "Trees are compared, not histories: code that was removed before the cutoff, or stood on another branch, and "
        f"functions inside functions are not known.{_young(manifest)}"
    )


def _young(manifest: Manifest) -> str:
    """Return how many repositories have no tree at the cutoff; empty when all have one."""
    young = sum(commit is None for commit in manifest.cutoffs.values())
    return f" Of {len(manifest.cutoffs):,} repositories {young:,} had no such tree." if young else ""


def _outside(manifest: Manifest) -> str:
    """Return what outside the release the rows were compared with."""
    names = [reference["name"] or _last_part(reference) for reference in manifest.config["dedup"]["references"]]
    if not names:
        return "Nothing outside this release is compared: neither other benchmarks nor training sets."
    listed = ", ".join(code(name) for name in names)
    return (
        f"Outside this release only these sets are compared: {listed}; rows similar to one of theirs were left out"
        " (`in_reference`, `in_earlier_release`)."
    )


def _last_part(reference: Mapping[str, Any]) -> str:
    """Return the name of a reference set that was given none: the last part of its location."""
    return str(reference["path"] or reference["release"]).replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def _distinctness(manifest: Manifest) -> list[str]:
    dedup = manifest.config["dedup"]
    chained = (
        "Duplicates are chained: of rows linked pair by pair only the earliest stays. A removed row may therefore be "
        f"below {dedup['threshold']} to its keeper; its detail then names the partner to which it is not (`via=`)."
    )
    if dedup["keep"] == "none":
        chained = "Duplicates are left out whole: of rows that have a duplicate none stays, not even the earliest."
    return [
        f"No two rows reach a Jaccard similarity of {dedup['threshold']} (sets of BPE tokens, docstring "
        f"left out; of methods with fewer than {dedup['min_distinct_tokens']} distinct tokens only equal ones are "
        "removed).",
        chained,
        _outside(manifest),
    ]


def _composition(facts: ReleaseFacts) -> list[str]:
    ranked = sorted(facts.raw_by_repo.items(), key=lambda item: (-item[1], item[0]))
    total = sum(facts.raw_by_repo.values())
    largest = ", ".join(f"{code(repo)} {share(rows, total)}" for repo, rows in islice(ranked, _LARGEST))
    lines = ["Python only; methods come without their class, imports and the rest of their file."]
    if ranked:
        lines.append(f"Repositories weigh unequally; the largest: {largest}.")
    lines += [
        f"{_rows(facts.shares.is_test, facts)} belong to tests (`is_test`): none of these is in a testbed "
        "that asks for an answer.",
        f"{_rows(facts.shares.author_is_bot, facts)} came with a bot's commit (`author_is_bot`); bots that do not show "
        "in name or address are not recognised.",
    ]
    shared = [
        f"{share(facts.by_config[config.name].elsewhere, config.rows)} of {code(config.name)}"
        for config in facts.configs
        if config.rows and config.name in facts.by_config and not config.name.startswith("raw_data")
    ]
    if len(shared) > 1:
        lines.append(
            f"Testbeds overlap: {', '.join(shared)} stand in at least one other testbed that asks for an answer."
        )
    return lines


def _texts(facts: ReleaseFacts) -> list[str]:
    return [
        "`diff` of `commit_gen` holds the code. In the direction from message to code it is the answer: give the model "
        "`commit_message` alone, or `code` and `diff` when the message is asked for.",
        "A commit message speaks of its whole commit, of which the row's method is a part.",
        "Which commit messages say something is decided by English patterns; automatic or empty messages in other "
        "languages pass.",
        f"Line ends and tabs are those of the source: the code of {_rows(facts.shares.has_cr, facts)} holds a carriage "
        f"return, that of {_rows(facts.shares.has_tab, facts)} a tab.",
        "`parses` is the verdict of one CPython version (below), `doc_language` that of a statistical identifier.",
    ]


def _rights(facts: ReleaseFacts) -> list[str]:
    return [
        "Licences are recognised by program: texts and notices of some forty licences, SPDX tags, project metadata. "
        "What is stated elsewhere (a README, `REUSE.toml`, the authors' own words) is not seen, several texts in one "
        "folder are taken to hold together, and a GPL text alone does not tell whether later versions may be chosen. "
        "Compare `license` with `license_matches`, and check before you redistribute.",
        "Commit messages stand as they were written, names and e-mail addresses in trailers such as `Co-authored-by:` "
        f"included: {_rows(facts.shares.has_email, facts)} have a message with an address.",
    ]


def _not_there(facts: ReleaseFacts, manifest: Manifest) -> list[str]:
    names = {config.name for config in facts.configs}
    paths = [entry.path for entry in manifest.files]
    return [
        text
        for name, text in _PLANNED.items()
        if name not in names and not any(path.startswith(name) for path in paths)
    ]


def _rows(part: int, facts: ReleaseFacts) -> str:
    return f"{share(part, facts.rows)} of the rows ({part:,})"
