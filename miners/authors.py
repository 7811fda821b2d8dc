"""Who wrote commits, as numbers that tell authors apart and name nobody."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from miners.git_process import ObjectReader
from schemas.errors import DataError

_AUTHOR = re.compile(rb"^author [^\n]*<([^>\n]*)>", re.MULTILINE)


def number_authors(commits: Iterable[tuple[str, str]], clones: Mapping[str, Path]) -> dict[tuple[str, str], int]:
    """Return a number for the author of each commit, given as (repository, commit id); equal numbers, one author.

    An author is an address, capitals apart: somebody with two addresses counts as two. Commits of repositories without
    a clone (git directory by repository), and those that cannot be read, have no number. The numbers mean nothing
    outside this call.
    """
    by_repo: dict[str, list[str]] = {}
    for repo, commit_id in commits:
        by_repo.setdefault(repo, []).append(commit_id)
    numbers: dict[bytes, int] = {}
    found = {}
    for repo in sorted(by_repo.keys() & clones.keys()):
        with ObjectReader(clones[repo]) as reader:
            for commit_id in by_repo[repo]:
                address = _address(reader, commit_id)
                if address is not None:
                    found[repo, commit_id] = numbers.setdefault(address, len(numbers))
    return found


def _address(reader: ObjectReader, commit_id: str) -> bytes | None:
    """Return the address of a commit's author; null when the commit cannot be read or has none."""
    try:
        _, data = reader.read(commit_id)
    except DataError:
        return None
    found = _AUTHOR.search(data)
    return found[1].strip().lower() if found else None
