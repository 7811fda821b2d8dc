"""How a method at a commit relates to the parents' trees: added, moved, renamed, modified, reformatted, marked.

The pure part (`classify`) works on definitions and a search function; `DefinitionStore` answers the search exactly
without parsing whole trees for each commit.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from miners.alike import jaccard, pieces, same_but_idle, similarity
from miners.caches import Tree
from miners.methods import MethodSpan, TextKeys, TokenHashes, indentation, token_hashes
from miners.rescan import Scanned, rescan, scan_file
from miners.sketch import SketchIndex
from schemas.errors import DataError
from schemas.records import Novelty

# Oldest first: in a merge the class that shows most of a method in a parent wins.
_AGE = (Novelty.REFORMATTED, Novelty.MODIFIED, Novelty.MOVED, Novelty.RENAMED)
# A method's version before was its version after in an earlier commit; about 6 kB each.
_MAX_PIECES = 2_000
# Enough for every distinct method text that a commit's candidates touch; 300 bytes each.
_MAX_HASHES = 100_000


@dataclass(frozen=True, slots=True)
class FileDefinitions:
    """The function definitions of one blob."""

    blob_id: str
    """The blob."""
    scanned: Scanned
    """What one parse of it says."""

    @property
    def spans(self) -> tuple[MethodSpan, ...]:
        """Return all definitions in source order, nested ones included."""
        return self.scanned.spans

    @property
    def has_error(self) -> bool:
        """Return whether the file has a syntax error (or is empty): its statements' starts are not known then."""
        return not self.scanned.starts

    @property
    def methods(self) -> list[MethodSpan]:
        """Return the definitions that are methods and whose scope is known."""
        return [span for span in self.spans if not span.nested and span.scope_known]

    @property
    def scopeless(self) -> list[MethodSpan]:
        """Return the definitions whose scope a syntax error hides."""
        return [span for span in self.spans if not span.nested and not span.scope_known]


@dataclass(frozen=True, slots=True)
class Earlier:
    """A definition of a parent tree with which a method shares its tokens or its name: the evidence for its class."""

    novelty: Novelty
    """What the method is in view of it."""
    path: str
    """File in which it stood."""
    fun_name: str
    """Its qualified name."""
    similarity: float
    """`similarity` of the two texts."""
    commit_id: str = ""
    """The parent in whose tree it stood."""


@dataclass(frozen=True, slots=True)
class Classified:
    """A method that is not the same, byte for byte, in a parent."""

    span: MethodSpan
    """The method after the commit."""
    novelty: Novelty
    """Its class."""
    earlier: Earlier | None = None
    """The earlier definition that decides the class, null for `added` and for marked files."""


@dataclass(frozen=True, slots=True)
class ParentView:
    """What one parent knows about a file and about everything else."""

    commit_id: str
    """The parent."""
    path: str
    """Path of the file in this parent, the old one when it was renamed."""
    file: FileDefinitions | None
    """Its definitions there, null when the parent has no such file."""
    elsewhere: Callable[[MethodSpan], Earlier | None]
    """Finds a definition of the parent's tree with the method's tokens (`moved`, `renamed`)."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How a method of the file relates to a definition of the file before."""

    same_tokens: bool
    """Their token sequences are equal."""
    similarity: float
    """`similarity` of their texts."""


Compare = Callable[[MethodSpan, FileDefinitions, MethodSpan], Likeness]


def classify(
    after: FileDefinitions, parents: Sequence[ParentView], mark: Novelty | None, compare: Compare
) -> list[Classified]:
    """Return the class of every method of a file that no parent has unchanged, in source order.

    A method is unchanged when the same qualified name has the same bytes in the file before. Otherwise the file's
    `mark` (`vendored`, `generated`) decides; then, against each parent: the name was there with equal tokens
    (`reformatted`) or others (`modified`); its tokens stood anywhere in the parent's tree (`moved`), or but for
    its own name (`renamed`); else it is `added`. Names that occur more than once, as property accessors do, match
    any of their definitions, and the most similar one is named. Over several parents the oldest class wins, and of
    equal ones the first parent's; without parents everything is `added`. `compare(span, file, earlier)` compares a
    method with a definition of the file before.
    """
    # Most methods of a file are unchanged.
    unchanged = {
        (old.fun_name, old.keys.text) for parent in parents if parent.file is not None for old in parent.file.methods
    }
    changed = [span for span in after.methods if (span.fun_name, span.keys.text) not in unchanged]
    if mark is not None:
        return [Classified(span, mark) for span in changed]
    known = [_by_name(parent.file) for parent in parents] if changed else []
    classified = []
    for span in changed:
        views = [_against(span, parent, names, compare) for parent, names in zip(parents, known, strict=True)]
        oldest = min((view for view in views if view is not None), key=_age, default=None)
        classified.append(Classified(span, Novelty.ADDED if oldest is None else oldest.novelty, oldest))
    return classified


def _age(earlier: Earlier) -> int:
    return _AGE.index(earlier.novelty)


def _by_name(file: FileDefinitions | None) -> dict[str, list[MethodSpan]]:
    """Return a file's methods by qualified name."""
    names: dict[str, list[MethodSpan]] = {}
    for span in file.methods if file is not None else ():
        names.setdefault(span.fun_name, []).append(span)
    return names


def _against(
    span: MethodSpan, parent: ParentView, names: Mapping[str, Sequence[MethodSpan]], compare: Compare
) -> Earlier | None:
    """Return the evidence of one parent that does not have a method unchanged, None when it has nothing alike."""
    namesakes = names.get(span.fun_name, ())
    if namesakes and parent.file is not None:
        likes = [compare(span, parent.file, old) for old in namesakes]
        best = max(likes, key=lambda like: (like.same_tokens, like.similarity))
        novelty = Novelty.REFORMATTED if best.same_tokens else Novelty.MODIFIED
        return Earlier(novelty, parent.path, span.fun_name, best.similarity, parent.commit_id)
    found = parent.elsewhere(span)
    return None if found is None else replace(found, commit_id=parent.commit_id)


class _Place(NamedTuple):
    """A definition with a method's tokens; the smallest one is named."""

    rank: int
    path: str
    start_byte: int
    fun_name: str
    blob_id: str
    end_byte: int


class DefinitionStore:
    """Definitions of all blobs seen so far, found by blob or by tokens; every blob is parsed at most once, and only
    where it differs from a version known already. One that is only noted is parsed when its definitions are asked for
    or some of them may have the tokens that are looked for.

    `load(blob_id)` returns a blob's text in UTF-8 or raises DataError; the store keeps digests and spans only.
    """

    def __init__(self, load: Callable[[str], bytes]) -> None:
        self._load = load
        self._files: dict[str, FileDefinitions | DataError] = {}
        self._texts: dict[bytes, TextKeys] = {}
        # Versions of one file, as far as they are known to be: one that was rescanned is of the other one's family.
        self._families: list[list[str]] = []
        self._family_of: dict[str, int] = {}
        # For each key the families in which a version has it, each with the version that was read first.
        self._first_by_key: dict[bytes, dict[int, str]] = {}
        self._hashes: OrderedDict[bytes, TokenHashes] = OrderedDict()
        self._pieces: OrderedDict[bytes, frozenset[bytes]] = OrderedDict()
        # Blobs that were noted, those parsed since among them.
        self._noted: set[str] = set()
        self._sketches = SketchIndex()
        self._last_asked: tuple[tuple[bytes, int], dict[str, bool]] = ((b"", 0), {})

    def note(self, blob_id: str) -> None:
        """Make a blob's definitions findable without parsing it; raise DataError as `file` does."""
        if blob_id not in self._files and blob_id not in self._noted:
            try:
                self._sketches.add(blob_id, self._load(blob_id))
            except DataError as error:
                self._files[blob_id] = error
            self._noted.add(blob_id)
        if isinstance(known := self._files.get(blob_id), DataError):
            raise DataError(known.reason, known.detail)

    def file(self, blob_id: str, like: str | None = None) -> FileDefinitions:
        """Return a blob's definitions and index them; raise the same DataError each time when it is unreadable.

        `like` names a blob that is probably another version of the file; it saves time and changes no result.
        """
        found = self._files.get(blob_id)
        if found is None:
            found = self._files[blob_id] = self._read(blob_id, like)
        if isinstance(found, DataError):
            raise DataError(found.reason, found.detail)
        return found

    def knows(self, blob_id: str) -> bool:
        """Tell whether a blob has been asked for before."""
        return blob_id in self._files or blob_id in self._noted

    def may_find(self, blob_id: str, span: MethodSpan, *, fresh: bool) -> bool:
        """Tell cheaply whether `find` can find anything: some blob, not a fresh one itself, shares one of
        the keys or may do so.
        """
        keys = (span.keys.nameless, span.keys.symbols)
        own = blob_id if fresh else None
        if any(other_id != own for key in keys for other_id in self._first_by_key.get(key, {}).values()):
            return True
        return any(other_id not in self._files for other_id in self._noted_like(blob_id, span))

    def _read(self, blob_id: str, like: str | None) -> FileDefinitions | DataError:
        try:
            source = self._load(blob_id)
            scanned = self._scan(source, like)
        except DataError as error:
            return error
        except (RecursionError, MemoryError, ValueError) as error:
            return DataError("file_unparsable", f"{type(error).__name__}: {error}")
        self._index(blob_id, scanned, like)
        return FileDefinitions(blob_id, scanned)

    def _index(self, blob_id: str, scanned: Scanned, like: str | None) -> None:
        """Note the keys of a blob's definitions; those that it shares with a version of its family stand there."""
        family = None if like is None else self._family_of.get(like)
        if family is None:
            family = len(self._families)
            self._families.append([])
        self._families[family].append(blob_id)
        self._family_of[blob_id] = family
        first = self._first_by_key
        for _, nameless, symbols in (span.keys for span in scanned.parsed):
            for key in (nameless,) if nameless == symbols else (nameless, symbols):
                if key not in first:
                    first[key] = {family: blob_id}
                else:
                    first[key].setdefault(family, blob_id)

    def _scan(self, source: bytes, like: str | None) -> Scanned:
        if like is not None and like in self._noted and like not in self._files:
            self._files[like] = self._read(like, None)
        old = self._files.get(like) if like is not None else None
        if not isinstance(old, FileDefinitions):
            return scan_file(source, self._texts)
        return rescan(source, self._load(old.blob_id), old.scanned, self._texts)

    def hashes(self, blob_id: str, span: MethodSpan) -> TokenHashes:
        """Return the token digests of a definition of a blob."""
        found = self._hashes.get(span.keys.text)
        if found is None:
            source = self._load(blob_id)
            text = source[span.start_byte : span.end_byte]
            found = self._hashes[span.keys.text] = token_hashes(text, indentation(source, span.start_byte))
            if len(self._hashes) > _MAX_HASHES:
                self._hashes.popitem(last=False)
        return found

    def find(self, blob_id: str, span: MethodSpan, tree: Tree) -> Earlier | None:
        """Return where a method's tokens stand in a tree (blob id to paths), nested functions included, or None.

        Equal tokens are `moved`; equal but for the own name, at the definition or everywhere, `renamed`. Of several
        the smallest (path, start byte) is named. Every blob of the tree must have been given to `file` or `note`.
        """
        places = self._places(blob_id, span, self._candidates(span, tree), tree)
        order = sorted(
            (not same, min(tree[other_id]), other_id)
            for other_id, same in self._noted_like(blob_id, span).items()
            if other_id in tree and other_id not in self._files
        )
        for renamed, path, other_id in order:
            if places and min(places)[:2] < (renamed, path):
                break  # nothing that is still to come goes before it
            with suppress(DataError):  # one that cannot be parsed has no definitions
                places += self._places(blob_id, span, self._alike(span, other_id), tree)
        if not places:
            return None
        best = min(places)
        novelty = Novelty.MOVED if best.rank == 0 else Novelty.RENAMED
        text = self._load(best.blob_id)[best.start_byte : best.end_byte]
        return Earlier(novelty, best.path, best.fun_name, similarity(self.text(blob_id, span), text))

    def _places(
        self,
        blob_id: str,
        span: MethodSpan,
        others: Iterable[tuple[str, MethodSpan]],
        tree: Tree,
    ) -> list[_Place]:
        """Return where those of some definitions stand that have a method's tokens."""
        ranked = [(self._rank(blob_id, span, other_id, other), other_id, other) for other_id, other in others]
        return [
            _Place(rank, min(tree[other_id]), other.start_byte, other.fun_name, other_id, other.end_byte)
            for rank, other_id, other in ranked
            if rank is not None
        ]

    def text(self, blob_id: str, span: MethodSpan) -> bytes:
        """Return the text of a definition of a blob."""
        return self._load(blob_id)[span.start_byte : span.end_byte]

    def compare(self, blob_id: str, span: MethodSpan, other_id: str, other: MethodSpan) -> Likeness:
        """Return how a definition of a blob relates to one of another blob."""
        same = span.keys.nameless == other.keys.nameless and self._same_tokens(blob_id, span, other_id, other)
        return Likeness(same, self._similarity(blob_id, span, other_id, other))

    def _same_tokens(self, blob_id: str, span: MethodSpan, other_id: str, other: MethodSpan) -> bool:
        is_sound = not (self.file(blob_id).has_error or self.file(other_id).has_error)
        if is_sound and same_but_idle(self.text(blob_id, span), self.text(other_id, other)):
            return True
        return self.hashes(blob_id, span).exact == self.hashes(other_id, other).exact

    def _similarity(self, blob_id: str, span: MethodSpan, other_id: str, other: MethodSpan) -> float:
        """Return `similarity` of two definitions' texts."""
        if span.keys.text == other.keys.text:
            return 1.0
        return jaccard(self._pieces_of(blob_id, span), self._pieces_of(other_id, other))

    def _pieces_of(self, blob_id: str, span: MethodSpan) -> frozenset[bytes]:
        found = self._pieces.pop(span.keys.text, None)
        found = self._pieces[span.keys.text] = pieces(self.text(blob_id, span)) if found is None else found
        if len(self._pieces) > _MAX_PIECES:
            self._pieces.popitem(last=False)
        return found

    def _candidates(self, span: MethodSpan, tree: Tree) -> Iterable[tuple[str, MethodSpan]]:
        """Yield the definitions of a tree that may have a method's tokens: those that share one of its keys."""
        keys = (span.keys.nameless, span.keys.symbols)
        families = dict.fromkeys(family for key in keys for family in self._first_by_key.get(key, ()))
        for blob_id in (blob_id for family in families for blob_id in self._families[family]):
            if blob_id in tree:
                yield from self._alike(span, blob_id)

    def _alike(self, span: MethodSpan, blob_id: str) -> Iterator[tuple[str, MethodSpan]]:
        """Yield the definitions of a blob that share one of a method's keys."""
        keys = (span.keys.nameless, span.keys.symbols)
        for other in self.file(blob_id).spans:
            if other.keys.nameless in keys or other.keys.symbols in keys:
                yield blob_id, other

    def _noted_like(self, blob_id: str, span: MethodSpan) -> dict[str, bool]:
        """Return the noted blobs that may hold a method's tokens, and for each whether under its name."""
        asked = span.keys.text, len(self._noted)
        if self._last_asked[0] != asked:
            sound = not self.file(blob_id).has_error
            self._last_asked = asked, self._sketches.find(self.text(blob_id, span), sound=sound)
        return self._last_asked[1]

    def _rank(self, blob_id: str, span: MethodSpan, other_id: str, other: MethodSpan) -> int | None:
        """Return 0 for equal tokens, 1 for tokens equal but for the own name, None for others."""
        if span.keys.text == other.keys.text:
            return 0
        mine, its = self.hashes(blob_id, span), self.hashes(other_id, other)
        if mine.exact == its.exact:
            return 0
        if mine.nameless == its.nameless or mine.nameless_everywhere == its.nameless_everywhere:
            return 1
        return None
