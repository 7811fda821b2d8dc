"""Take the commits of one range: every changed file read, every method classified, rows and exclusions collected."""

import errno
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from miners.caches import SourceCache, TreeCache
from miners.changes import CommitChanges, FileChange, OldFile, display_path, with_renames
from miners.clone import Clone
from miners.collection import without_collection
from miners.commits import read_commit, well_formed
from miners.diffs import CommitDiffs, DiffRequest, file_diff, file_diffs
from miners.git_process import ObjectReader
from miners.history import History, read_history
from miners.licences import LicenceDetector
from miners.marks import is_generated, is_vendored
from miners.method_rows import MethodRows
from miners.methods import MethodSpan
from miners.novelty import Classified, DefinitionStore, Earlier, FileDefinitions, Likeness, ParentView, classify
from miners.plan import Range
from miners.sources import SourceFile
from miners.trees import Trees
from schemas.config import MiningConfig
from schemas.errors import ConfigError, DataError, TransientError
from schemas.history import IndexedFile
from schemas.records import ChangedFile, CommitRecord, Exclusion, Method, Novelty

# Commits whose folders are read at once; each has some ten of them, of some ten kilobytes.
_AT_ONCE = 50
_SYNTAX_ERRORS = {
    "scope_unknown": "a syntax error hides the scope of",
    "earlier_version_broken": "a syntax error in the earlier version may hide an earlier",
}


@dataclass(slots=True)
class Taken:
    """What the commits of one range brought; rows in the order in which they were met."""

    commits: list[CommitRecord] = field(default_factory=list)
    """Commits that were read."""
    files: list[ChangedFile] = field(default_factory=list)
    """Changed files with a method of class `added`."""
    methods: list[Method] = field(default_factory=list)
    """Methods that a commit brought or changed."""
    excluded: list[Exclusion] = field(default_factory=list)
    """Everything left out."""
    n_files: int = 0
    """Changed files that were read."""
    indexed: dict[str, IndexedFile] = field(default_factory=dict)
    """Python files of parent trees outside the window, by blob: of each the smallest (commit, path)."""
    history: History = field(default_factory=History)
    """What commits outside the window brought."""

    def mark(self) -> "_Mark":
        """Return the state to which `roll_back` returns."""
        return _Mark(len(self.commits), len(self.files), len(self.methods), len(self.excluded), self.n_files)

    def roll_back(self, mark: "_Mark") -> None:
        """Forget every row and count that came after a mark."""
        del self.commits[mark.commits :]
        del self.files[mark.files :]
        del self.methods[mark.methods :]
        del self.excluded[mark.excluded :]
        self.n_files = mark.n_files


@dataclass(frozen=True, slots=True)
class _Mark:
    """How much was taken."""

    commits: int
    files: int
    methods: int
    excluded: int
    n_files: int


@without_collection
def take_range(clone: Clone, config: MiningConfig, selected: frozenset[str], part: Range) -> Taken:
    """Return the rows of a range; `selected` are all commits of the window.

    What is said about a commit depends on it and its parents' trees alone, so ranges can be taken in any order, by
    several processes and at different times.
    """
    with ObjectReader(clone.git_dir) as reader:
        miner = _RangeMiner(clone, config, selected, reader)
        for start in range(0, len(part.changes), _AT_ONCE):
            some = part.changes[start : start + _AT_ONCE]
            miner.read_ahead(some)
            for item in some:
                miner.take(item)
        miner.add_diffs()
    taken = miner.taken
    taken.history = read_history(
        clone.git_dir, part.old_ids, clone.record.repo, config.max_file_bytes, part.parents
    )  # fmt: skip
    return taken


class _RangeMiner:
    """Takes commits of one repository, parents first, and collects rows."""

    def __init__(self, clone: Clone, config: MiningConfig, selected: frozenset[str], reader: ObjectReader) -> None:
        self.taken = Taken()
        self._selected = selected
        self._record = clone.record
        self._config = config
        self._folders = Trees(reader)
        self._trees = TreeCache(self._folders)
        self._git_dir = clone.git_dir
        self._reader = reader
        self._licences = LicenceDetector(self._folders)
        self._sources = SourceCache(reader, config.max_file_bytes)
        self._store = DefinitionStore(lambda blob_id: self._sources.get(blob_id).utf8)
        # Latest blob parsed for a path: the likely other version of a new one.
        self._latest: dict[str, str] = {}
        # Commits whose trees the store knows whole: indexed ones, then every commit taken.
        self._known_commits: set[str] = set()
        # Commits whose diffs are made at the end, many at once.
        self._waiting: list[CommitDiffs] = []
        # Row ids of the commit at hand; a malformed tree can hold one path twice.
        self._row_ids: set[str] = set()

    def read_ahead(self, commits: Sequence[CommitChanges]) -> None:
        """Read some commits, and the folders of the files that they change, in few requests."""
        self._folders.read_ahead(
            {item.commit_id: {change.path.rpartition(b"/")[0] for change in item.files} for item in commits}
        )

    def take(self, changes: CommitChanges) -> None:
        """Add one commit's rows and exclusions: all of them, or one exclusion when it provokes what nobody foresaw."""
        out = self.taken
        if any(item.stage == "commits" for item in changes.excluded):
            out.excluded.extend(changes.excluded)
            return
        mark = out.mark()
        try:
            commit = read_commit(self._reader, changes.commit_id, self._record.repo)
            for parent_id in changes.parent_ids:
                self._index_tree(parent_id)
            self._take_commit(commit, with_renames(self._git_dir, changes))
        except Exception as error:  # whatever one commit provokes must not cost the repository
            if _is_machine_trouble(error):
                raise
            out.roll_back(mark)
            reason = "commit_unreadable" if isinstance(error, DataError) else "commit_failed"
            row_id = f"{self._record.repo}@{changes.commit_id}"
            out.excluded.append(Exclusion(row_id, "commits", reason, _words(error)))

    def add_diffs(self) -> None:
        """Add the diffs that were left for the end."""
        diffs = file_diffs(self._git_dir, self._waiting)
        by_path = {(commit, display_path(path)): diff for commit in diffs for path, diff in diffs[commit].items()}
        files = self.taken.files
        files[:] = [replace(row, diff=by_path.get((row.commit_id, row.path), row.diff)) for row in files]

    def _take_commit(self, commit: CommitRecord, changes: CommitChanges) -> None:
        """Add the rows of a commit that can be read and whose parents' trees are indexed."""
        self._row_ids.clear()
        self.taken.commits.append(commit)
        self.taken.excluded.extend(changes.excluded)
        diffs = [request for change in changes.files if (request := self._take_file(commit, changes, change))]
        if diffs:
            self._add_changed_files(commit, changes, diffs)
        self._known_commits.add(changes.commit_id)

    def _index_tree(self, commit_id: str) -> None:
        """Make every definition of a commit's tree findable, unless it is so already.

        The trees of taken commits need no listing: what is in them was in a parent's tree or changed by the commit.
        """
        if commit_id in self._known_commits:
            return
        for blob_id, paths in self._trees.get(commit_id).items():
            problem = self._index_blob(blob_id)
            if commit_id not in self._selected:
                known = self.taken.indexed.get(blob_id)
                if known is None or (commit_id, paths[0]) < (known.commit_id, known.path):
                    row = IndexedFile(self._record.repo, commit_id, paths[0], blob_id, *problem)
                    self.taken.indexed[blob_id] = row
        self._known_commits.add(commit_id)

    def _index_blob(self, blob_id: str) -> tuple[str | None, str]:
        """Make the definitions of a blob findable; return why they cannot be, as reason and detail."""
        try:
            self._store.note(blob_id)
        except Exception as error:  # one monstrous old file must not cost the commits after it
            if _is_machine_trouble(error):
                raise
            return error.reason if isinstance(error, DataError) else "file_unparsable", _words(error)
        return None, ""

    def _take_file(self, commit: CommitRecord, changes: CommitChanges, change: FileChange) -> DiffRequest | None:
        """Add the rows of one changed file or its exclusion; return what its diff needs when it has new methods."""
        path, old = display_path(change.path), _old_file(changes, change)
        try:
            blob_id = change.blob_id or ""
            is_old = self._store.knows(blob_id)
            like = self._latest.get(path)
            if old.file is not None:
                with suppress(DataError):  # `_view` says what is wrong with it
                    self._store.file(old.file.blob_id, like)
                like = old.file.blob_id
            source, after = self._sources.get(blob_id), self._store.file(blob_id, like)
            self._latest[path] = blob_id
            parents = [
                self._view(changes, index, old if index == 0 else _Old(change.path, before), (blob_id, is_old))
                for index, before in enumerate(change.before[: len(changes.parent_ids)])
            ]
            found = classify(after, parents, self._mark(path, source), partial(self._compare, blob_id))
        except DataError as error:
            self._exclude(commit, path, error)
            return None
        except Exception as error:  # noqa: BLE001 - whatever one monstrous file provokes must not cost its neighbours
            self._exclude(commit, path, DataError("file_unparsable", _words(error)))
            return None
        self.taken.n_files += 1
        rows = MethodRows(commit, self._record, source, change.path, not after.has_error)
        unclear = [item.span for item in found if item.novelty is Novelty.ADDED and self._may_be_hidden(item, parents)]
        found = [item for item in found if item.span not in unclear]
        self._add_methods(rows, found)
        self._exclude_methods(rows, new_scopeless(after, parents), "scope_unknown")
        self._exclude_methods(rows, unclear, "earlier_version_broken")
        if not any(item.novelty is Novelty.ADDED for item in found):
            return None
        return DiffRequest(change.path, old.path if old.path != change.path else None, source.encoding)

    def _exclude(self, commit: CommitRecord, path: str, error: DataError) -> None:
        row_id = f"{commit.repo}@{commit.commit_id}:{path}"
        self.taken.excluded.append(Exclusion(row_id, "files", error.reason, error.detail))

    def _view(self, changes: CommitChanges, index: int, old: "_Old", after: tuple[str, bool]) -> ParentView:
        """Return what one parent knows; raise DataError `old_version_unreadable` when its version cannot be read."""
        file = None
        if old.file is not None and old.file.mode.startswith("100"):
            try:
                file = self._store.file(old.file.blob_id)
            except DataError as error:
                raise DataError("old_version_unreadable", f"{old.file.blob_id}: {error}") from None
        parent_id = changes.parent_ids[index]
        return ParentView(parent_id, display_path(old.path), file, partial(self._elsewhere, parent_id, after))

    def _elsewhere(self, parent_id: str, after: tuple[str, bool], span: MethodSpan) -> Earlier | None:
        """Find a method's tokens in a parent's tree; the tree is listed only when some blob may hold them."""
        blob_id, is_old = after
        if not self._store.may_find(blob_id, span, fresh=not is_old):
            return None
        return self._store.find(blob_id, span, self._trees.get(parent_id))

    def _compare(self, blob_id: str, span: MethodSpan, file: FileDefinitions, earlier: MethodSpan) -> Likeness:
        return self._store.compare(blob_id, span, file.blob_id, earlier)

    def _mark(self, path: str, source: SourceFile) -> Novelty | None:
        """Return the class that a file's path or head gives to all of its methods."""
        if is_vendored(path, self._config.vendored_paths):
            return Novelty.VENDORED
        return Novelty.GENERATED if is_generated(path, source.utf8, self._config.generated_names) else None

    def _may_be_hidden(self, item: Classified, parents: Sequence[ParentView]) -> bool:
        """Tell whether a syntax error in a parent's version may hide an earlier definition of an `added` method.

        The parser can lose definitions behind an error. The text then says `def` and the name more often than the
        parser has found definitions of that name, and nobody can say that the method is new.
        """
        name = item.span.fun_name.rpartition(".")[2]
        for file in (parent.file for parent in parents if parent.file is not None and parent.file.has_error):
            written = re.findall(
                rb"\bdef[ \t]+" + re.escape(name.encode()) + rb"\b", self._sources.get(file.blob_id).utf8
            )
            if len(written) > sum(span.fun_name.rpartition(".")[2] == name for span in file.spans):
                return True
        return False

    def _exclude_methods(self, rows: MethodRows, spans: Sequence[MethodSpan], reason: str) -> None:
        for span in spans:
            detail = f"{rows.path}:{span.start_line}: {_SYNTAX_ERRORS[reason]} {span.fun_name}"
            self.taken.excluded.append(Exclusion(rows.row_id(span), "methods", reason, detail))

    def _add_methods(self, rows: MethodRows, found: Sequence[Classified]) -> None:
        """Add a row for every classified method; what cannot become one is excluded."""
        out = self.taken
        if found:
            licence = self._licences.of_file(rows.commit.commit_id, rows.raw_path, rows.source.utf8)
        for item in found:
            row_id = rows.row_id(item.span)
            try:
                if row_id in self._row_ids:
                    where = f"{rows.path}:{item.span.start_line}"
                    raise DataError("row_id_repeated", f"{where}: the commit's tree has the path more than once")
                out.methods.append(rows.method(item, licence))
                self._row_ids.add(row_id)
            except DataError as error:
                out.excluded.append(Exclusion(row_id, "methods", error.reason, error.detail))

    def _add_changed_files(self, commit: CommitRecord, changes: CommitChanges, requests: Sequence[DiffRequest]) -> None:
        """Add the rows of files with new methods; their diffs may come later."""
        parent_id = commit.parent_ids[0] if commit.parent_ids else None
        wanted = CommitDiffs(parent_id, commit.commit_id, tuple(requests))
        diffs = {} if wanted.can_wait else file_diff(self._git_dir, parent_id, commit.commit_id, requests)
        self._waiting += [wanted] if wanted.can_wait else []
        # A malformed tree can hold one path twice: the first of both is the row.
        by_path = {change.path: change for change in reversed(changes.files)}
        for request in {request.path: request for request in requests}.values():
            change = by_path[request.path]
            old = _old_file(changes, change)
            self.taken.files.append(
                ChangedFile(
                    repo=commit.repo,
                    commit_id=commit.commit_id,
                    path=display_path(request.path),
                    old_path=None if request.old_path is None else display_path(request.old_path),
                    blob_id=change.blob_id or "",
                    old_blob_id=None if old.file is None else old.file.blob_id,
                    diff=diffs.get(request.path, ""),
                )
            )


def _words(error: Exception) -> str:
    """Return what an exclusion says of an error; the type of one that was not foreseen is named."""
    return well_formed(str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}")


def _is_machine_trouble(error: Exception) -> bool:
    """Tell whether an error is the machine's (no git, a full disk) and no commit's, so that the run has to say so.

    Arguments that the operating system finds too long are a commit's: its paths.
    """
    if isinstance(error, OSError):
        return error.errno not in (errno.E2BIG, errno.ENAMETOOLONG)
    return isinstance(error, ConfigError | TransientError)


@dataclass(frozen=True, slots=True)
class _Old:
    """A file in a parent."""

    path: bytes
    file: OldFile | None


def _old_file(changes: CommitChanges, change: FileChange) -> _Old:
    """Return a changed file in the first parent, under its old path when it was renamed."""
    before = change.before[0] if change.before else None
    old_path = dict(changes.renames).get(change.path)
    if before is not None or old_path is None:
        return _Old(change.path, before)
    return _Old(old_path, next((item.before[0] for item in changes.deleted if item.path == old_path), None))


def new_scopeless(after: FileDefinitions, parents: Sequence[ParentView]) -> list[MethodSpan]:
    """Return the definitions of unknown scope whose bytes no parent's version of the file has."""
    found = after.scopeless
    if not found:
        return []
    known = {span.keys.text for parent in parents if parent.file is not None for span in parent.file.spans}
    return [span for span in found if span.keys.text not in known]
