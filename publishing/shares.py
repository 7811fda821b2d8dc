"""Shares and overlaps that a user of the testbeds has to know, counted in a release's own rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

# An address as it stands in `Name <name@host.tld>`: enough to say that a message holds one, not to validate it.
_EMAIL = r"[\w.+-]+@[\w-]+(\.[\w-]+)+"
READ_COLUMNS = ("row_id", "is_test", "author_is_bot", "parent_id", "code", "commit_message")
FLAGS = ("is_test", "author_is_bot", "is_root", "has_cr", "has_tab", "has_email")


@dataclass(frozen=True, slots=True)
class Shares:
    """Rows with a trait; a row that stands in several configs counts once."""

    is_test: int
    """Rows that belong to tests."""
    author_is_bot: int
    """Rows brought by a bot's commit."""
    is_root: int
    """Rows brought by a commit without a parent."""
    has_cr: int
    """Rows whose code holds a carriage return."""
    has_tab: int
    """Rows whose code holds a tab."""
    has_email: int
    """Rows whose commit message holds an e-mail address."""


@dataclass(frozen=True, slots=True)
class ConfigShares:
    """Where the rows of one config come from and where else they stand."""

    n_repos: int
    """Repositories with at least one row."""
    largest_repo: str | None
    """Repository with most rows, the first by name of equals; null without rows."""
    largest_rows: int
    """Rows of that repository."""
    shared_with: dict[str, int]
    """Rows that stand in each config, the own one included, in the order of the configs."""
    elsewhere: int
    """Rows that stand in at least one other config that asks for an answer (`TASKS`)."""


def flags(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the boolean column of each of `FLAGS` for a table with `READ_COLUMNS`."""
    return {
        "is_test": table["is_test"],
        "author_is_bot": table["author_is_bot"],
        "is_root": pc.is_null(table["parent_id"]),
        "has_cr": pc.match_substring(table["code"], "\r"),
        "has_tab": pc.match_substring(table["code"], "\t"),
        "has_email": pc.match_substring_regex(table["commit_message"], _EMAIL),
    }


def count_flags(rows: pa.Table) -> Shares:
    """Return the number of rows with each flag; the columns `FLAGS` hold them."""
    return Shares(**{name: pc.sum(pc.fill_null(rows[name], False)).as_py() or 0 for name in FLAGS})


def config_shares(repos: Mapping[str, Mapping[str, str]], tasks: Sequence[str]) -> dict[str, ConfigShares]:
    """Return the shares of each config from its rows' repositories (config -> row id -> repository).

    `tasks` are the configs that ask for an answer: between them an overlap can give answers away.
    """
    shares = {}
    for name, rows in repos.items():
        counts: dict[str, int] = {}
        for repo in rows.values():
            counts[repo] = counts.get(repo, 0) + 1
        largest = min(counts, key=lambda repo: (-counts[repo], repo), default=None)
        others = [repos[task] for task in tasks if task != name and task in repos]
        shares[name] = ConfigShares(
            n_repos=len(counts),
            largest_repo=largest,
            largest_rows=counts[largest] if largest is not None else 0,
            shared_with={other: len(rows.keys() & there.keys()) for other, there in repos.items()},
            elsewhere=sum(any(row_id in there for there in others) for row_id in rows),
        )
    return shares
