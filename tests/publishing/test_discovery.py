"""What is published of a search, and what is not."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

from publishing.discovery import DiscoveryFacts, discovery_facts, discovery_section
from schemas.search import Discovery

MOMENT = datetime(2024, 7, 2, tzinfo=UTC)
DISCOVERY = Discovery(
    api_url="https://api.github.com", query="language:Python stars:>=3", licences=("MIT", "0BSD"), started_at=MOMENT,
    finished_at=MOMENT, incremental=False, total=1_510, found=1_002, uncovered=500, incomplete=0, calls=17, lookups=2,
)  # fmt: skip
FACTS = DiscoveryFacts(
    "https://api.github.com", "language:Python stars:>=3", ("MIT", "0BSD"), 1_510, 1_002, 500, 0,
    hashlib.sha256(b"7\n30\n").hexdigest(),
)  # fmt: skip


def test_the_same_repositories_give_the_same_facts_whenever_and_however_they_were_found() -> None:
    assert discovery_facts(DISCOVERY, [30, 7]) == FACTS
    later = datetime(2025, 1, 1, tzinfo=UTC)
    other = replace(DISCOVERY, started_at=later, finished_at=later, incremental=True, calls=3, lookups=0)
    assert discovery_facts(other, [7, 30]) == FACTS
    assert discovery_facts(DISCOVERY, [7]).repo_ids_sha256 != FACTS.repo_ids_sha256


HEAD = "## How the repositories were found\n\nBy a search on `https://api.github.com`: `language:Python stars:>=3`"
END = " Stars and other numbers change, so that the same search finds other repositories on another day."


def test_the_card_says_what_was_asked_and_what_is_missing() -> None:
    assert discovery_section(FACTS) == (
        f"{HEAD}, with one of the licences `MIT`, `0BSD`. GitHub counts 1,510 repositories, of which 1,002 were found. "
        f"500 are alike in everything that a search can tell apart, and GitHub shows them not.{END}"
    )
    plain = replace(FACTS, licences=(), total=5, found=5, uncovered=0, incomplete=2)
    assert discovery_section(plain) == (
        f"{HEAD}. GitHub counts 5 repositories, of which 5 were found. For 2 parts of the search GitHub ran out of "
        f"time, so that some may be missing.{END}"
    )
    assert discovery_section(None) == ""
