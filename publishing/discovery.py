"""What the manifest and the card say of the search that found the repositories."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from publishing.markdown import code
from schemas.search import Discovery


@dataclass(frozen=True, slots=True)
class DiscoveryFacts:
    """A search on GitHub; times, requests and windows are left out, since they differ from search to search."""

    api_url: str
    """Address of the API."""
    query: str
    """The query, without the licences."""
    licences: tuple[str, ...]
    """Licences of which a repository must have one; empty when the search names none."""
    total: int
    """Repositories that GitHub counted."""
    found: int
    """Distinct repositories that were found."""
    uncovered: int
    """Repositories that GitHub does not show."""
    incomplete: int
    """Parts of the search for which GitHub ran out of time and may have shown too little."""
    repo_ids_sha256: str
    """SHA-256 of the numeric ids found, in order, one a line."""


def discovery_facts(discovery: Discovery, repo_ids: Iterable[int]) -> DiscoveryFacts:
    """Return what is published of a search."""
    lines = "".join(f"{repo_id}\n" for repo_id in sorted(repo_ids))
    return DiscoveryFacts(
        api_url=discovery.api_url,
        query=discovery.query,
        licences=discovery.licences,
        total=discovery.total,
        found=discovery.found,
        uncovered=discovery.uncovered,
        incomplete=discovery.incomplete,
        repo_ids_sha256=sha256(lines.encode()).hexdigest(),
    )


def discovery_section(facts: DiscoveryFacts | None) -> str:
    """Return the card's section on the search; empty without one."""
    if facts is None:
        return ""
    text = f"## How the repositories were found\n\nBy a search on {code(facts.api_url)}: {code(facts.query)}"
    if facts.licences:
        text += f", with one of the licences {', '.join(map(code, facts.licences))}"
    text += f". GitHub counts {facts.total:,} repositories, of which {facts.found:,} were found."
    if facts.uncovered:
        text += f" {facts.uncovered:,} are alike in everything that a search can tell apart, and GitHub shows them not."
    if facts.incomplete:
        text += f" For {facts.incomplete:,} parts of the search GitHub ran out of time, so that some may be missing."
    return text + " Stars and other numbers change, so that the same search finds other repositories on another day."
