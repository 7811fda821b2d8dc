"""The tree at the cutoff: which commit it belongs to, and every method that stood in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from miners.caches import list_python
from miners.commits import walk, well_formed
from miners.git_process import ObjectReader, check_object_id, run_git
from miners.methods import MethodSpan, dedent, find_methods
from miners.sources import SourceFile, load_source
from miners.syntax import parse
from schemas.errors import ConfigError, DataError
from schemas.records import Exclusion

STAGE = "cutoff"


@dataclass(frozen=True, slots=True)
class CutoffCommit:
    """The commit whose tree is the repository's state at the cutoff."""

    commit_id: str
    """Full hexadecimal commit id."""
    committer_date: datetime
    """Committer date, UTC."""


def find_cutoff(git_dir: Path, head: str, since: datetime) -> CutoffCommit | None:
    """Return the newest commit before `since` on the first-parent chain of `head`; None for a younger repository.

    Where the chain's committer dates run backwards there is no such point. The one taken leaves the fewest commits on
    the wrong side, those before it dated too late and those behind it dated too early; of equal ones the earliest.
    One wrong clock, in whatever direction, moves the point by its own commit at most. Raises DataError
    `cutoff_unknown` when the history cannot be read as far back.
    """
    chain, whole = _first_parents(git_dir, head)
    chain.reverse()  # oldest first
    limit = since.timestamp()
    # Wrong when everything counts as new: the old ones. Each commit taken over to the old side mends or adds one.
    wrong = fewest = sum(epoch < limit for _, epoch in chain)
    n_old = 0
    for position, (_, epoch) in enumerate(chain, start=1):
        wrong += -1 if epoch < limit else 1
        if wrong < fewest:
            fewest, n_old = wrong, position
    if not n_old:
        if not whole:
            raise DataError("cutoff_unknown", f"git cannot read the parents of {chain[0][0]}")
        return None
    commit_id, epoch = chain[n_old - 1]
    return CutoffCommit(commit_id, datetime.fromtimestamp(epoch, UTC))


def _first_parents(git_dir: Path, head: str) -> tuple[list[tuple[str, int]], bool]:
    """Return id and committer date of the first-parent chain, newest first, and whether it reaches a root.

    A date that git cannot read is 0, which git itself takes it for.
    """
    try:
        lines = run_git(git_dir, "rev-list", "--first-parent", "--timestamp", check_object_id(head)).splitlines()
        return [(line.split()[1].decode(), int(line.split()[0])) for line in lines], True
    except DataError:
        headers = {header.commit_id: header for header in walk(git_dir, head)}
    chain, commit_id = [], head
    while (header := headers.get(commit_id)) is not None and header.readable:
        chain.append((commit_id, header.committer_epoch or 0))
        commit_id = header.parent_ids[0] if header.parent_ids else ""
    return chain, not commit_id


@dataclass(frozen=True, slots=True)
class OldDefinition:
    """A method of the tree at the cutoff."""

    path: str
    """Smallest path of its blob."""
    blob_id: str
    """Its blob."""
    fun_name: str
    """Qualified name."""
    start_byte: int
    """Offset of its first byte in the blob."""
    end_byte: int
    """Offset behind its last byte in the blob."""
    start_line: int
    """First line, counted from 1."""
    code: str
    """The definition with its own indentation removed; as it stands where that would change its meaning."""


@dataclass(slots=True)
class OldTree:
    """Reads the Python files of one tree, one after the other."""

    git_dir: Path
    """The clone."""
    repo: str
    """owner/name."""
    commit_id: str
    """The commit of the tree."""
    max_file_bytes: int
    """Larger files are excluded (`file_too_large`)."""
    share: int = 0
    """Which share of the files is read, from 0 on; together, one behind the other, they give what one share gives."""
    n_shares: int = 1
    """How many shares there are."""
    n_files: int = 0
    """Files read so far."""
    n_methods: int = 0
    """Methods found in them so far."""
    excluded: list[Exclusion] = field(default_factory=list)
    """Files that could not be read (stage `cutoff`), by path."""

    def definitions(self) -> Iterator[OldDefinition]:
        """Yield the methods of every file, by path and place; vendored and generated ones are old code as well.

        Equal files are read once. A tree that git cannot list gives one exclusion, in its first share, and no method.
        """
        try:
            listed = sorted(list_python(self.git_dir, self.commit_id).items(), key=lambda item: item[1])
        except DataError as error:
            if not self.share:
                self._exclude(None, error)
            return
        with ObjectReader(self.git_dir) as reader:
            first, end = (len(listed) * share // self.n_shares for share in (self.share, self.share + 1))
            for blob_id, paths in listed[first:end]:
                try:
                    source = load_source(reader, blob_id, self.max_file_bytes)
                    tree = parse(source.utf8)
                    spans = find_methods(source.utf8, tree)
                except (ConfigError, OSError):
                    raise  # the machine's, no file's
                except Exception as error:  # noqa: BLE001 - one monstrous old file must not cost the repository
                    self._exclude(paths[0], error)
                    continue
                self.n_files += 1
                self.n_methods += len(spans)
                yield from _definitions(source, spans, paths[0], is_sound=not tree.root_node.has_error)

    def _exclude(self, path: str | None, error: Exception) -> None:
        """Note a file, or the whole tree, that cannot be read."""
        known = error if isinstance(error, DataError) else DataError("file_unparsable", well_formed(repr(error)))
        place = f"{self.repo}@{self.commit_id}" + ("" if path is None else f":{path}")
        self.excluded.append(Exclusion(place, STAGE, known.reason, known.detail))


def _definitions(
    source: SourceFile, spans: Sequence[MethodSpan], path: str, *, is_sound: bool
) -> Iterator[OldDefinition]:
    """Yield the methods of one file."""
    for span in spans:
        try:
            code = dedent(source.utf8, span, is_sound=is_sound)
        except DataError:
            code = source.utf8[span.start_byte : span.end_byte].decode("utf-8")
        start, end = source.raw_offset(span.start_byte), source.raw_offset(span.end_byte)
        yield OldDefinition(path, source.blob_id, span.fun_name, start, end, span.start_line, code)
