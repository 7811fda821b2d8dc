"""Which rows a ledger of opt-outs removes: by repository, path, or the people of a commit."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from miners.git_process import ObjectReader
from schemas.errors import DataError
from schemas.opt_out import OptOut
from schemas.records import RepositoryRecord

_PERSON = re.compile(rb"(?:author |co-authored-by:\s*)(?P<name>[^<\n]*)<(?P<address>[^>\n]*)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands."""

    row_id: str
    """The row."""
    repo: str
    """owner/name."""
    path: str
    """Path of its file."""
    commit_id: str
    """The commit that brought it."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A row that may not stay."""

    row_id: str
    """The row."""
    entry: int | None
    """Number of the first entry that removes it, counted from 0; null when its commit cannot be read, so that nobody
    can say whether an entry's author wrote it."""


def opted_out(
    rows: Iterable[Place],
    entries: Sequence[OptOut],
    repositories: Mapping[str, RepositoryRecord],
    clones: Mapping[str, Path],
) -> Iterator[Removed]:
    """Yield each row that an entry removes; rows of one repository come together.

    `repositories` and `clones` (git directories) are by owner/name; rows of others are matched by their name alone.
    """
    by_repo: dict[str, list[Place]] = {}
    for row in rows:
        by_repo.setdefault(row.repo, []).append(row)
    for repo, places in by_repo.items():
        concerned = [
            (number, entry)
            for number, entry in enumerate(entries)
            if _is_repository(entry, repo, repositories.get(repo))
        ]
        if concerned:
            with _People(clones.get(repo)) as people:
                for row in places:
                    try:
                        first = next((number for number, entry in concerned if _matches(entry, row, people)), None)
                    except DataError:
                        yield Removed(row.row_id, None)
                        continue
                    if first is not None:
                        yield Removed(row.row_id, first)


def _is_repository(entry: OptOut, repo: str, record: RepositoryRecord | None) -> bool:
    """Say whether an entry's repository is this one, by its name, an earlier one, or its number."""
    if entry.repo_id is not None and (record is None or record.repo_id != entry.repo_id):
        return False
    if entry.repository is None:
        return True
    names = (repo, *(record.aliases if record is not None else ()))
    return any(fnmatchcase(name.casefold(), entry.repository.casefold()) for name in names)


def _matches(entry: OptOut, row: Place, people: "_People") -> bool:
    if entry.path is not None and not fnmatchcase(row.path, entry.path):
        return False
    if entry.author is None:
        return True
    pattern = entry.author.casefold()
    return any(fnmatchcase(name.casefold(), pattern) for name in people.of(row.commit_id))


class _People:
    """Authors and co-authors of commits, each commit read once."""

    def __init__(self, git_dir: Path | None) -> None:
        self._reader = None if git_dir is None else ObjectReader(git_dir)
        self._known: dict[str, list[str]] = {}

    def __enter__(self) -> "_People":
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()

    def of(self, commit_id: str) -> list[str]:
        """Return names, addresses and `name <address>` of a commit's author and co-authors."""
        if commit_id not in self._known:
            if self._reader is None:
                raise DataError("object_missing", f"no clone of the repository of {commit_id}")
            _, data = self._reader.read(commit_id)
            self._known[commit_id] = [text for found in _PERSON.finditer(data) for text in _texts(found)]
        return self._known[commit_id]


def _texts(found: re.Match[bytes]) -> tuple[str, str, str]:
    name = found["name"].decode("utf-8", "replace").strip()
    address = found["address"].decode("utf-8", "replace").strip()
    return name, address, f"{name} <{address}>"
