"""Methods that come back from the history outside the window: found by their `def` line, proven by their tokens."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from miners.caches import SourceCache
from miners.changes import display_path
from miners.commits import CommitHeader
from miners.git_process import ObjectReader, read_blobs, run_git
from miners.history import header_digest, header_of
from miners.methods import MethodSpan, token_hashes
from miners.novelty import DefinitionStore, Earlier, similarity
from miners.origins import Lineage, with_origin
from miners.outline import Piece, line_at, outline
from miners.syntax import definition_of, iter_tokens, parse
from schemas.errors import DataError
from schemas.history import HistoricFile
from schemas.records import Method, Novelty

_WORD = re.compile(rb"\w+")


def restore_from_history(
    methods: Sequence[Method], files: Sequence[HistoricFile], headers: Sequence[CommitHeader], reader: ObjectReader,
    max_file_bytes: int,
) -> list[Method]:  # fmt: skip
    """Return the methods, in the given order, with those `restored` whose tokens an old commit brought or had.

    Only commits that the method's own descends from count. The oldest by committer date, then id, is named.
    A definition is found when its first line stands in the history as it is, white space apart.
    """
    wanted = defaultdict(list)
    for index, row in enumerate(methods):
        if row.novelty is Novelty.ADDED and (header := header_of(row.code)) is not None:
            wanted[header].append(index)
    brought: dict[int, list[HistoricFile]] = defaultdict(list)
    for file in files:
        for index in chain.from_iterable(wanted.get(header, ()) for header in file.headers):
            brought[index].append(file)
    commit_ids = {file.commit_id for found in brought.values() for file in found}
    lineage = Lineage(headers, commit_ids | {methods[index].commit_id for index in brought})
    dates = {header.commit_id: header.committer_epoch or 0 for header in headers if header.commit_id in commit_ids}
    by_blob: dict[str, list[tuple[int, HistoricFile]]] = defaultdict(list)
    for index, found in brought.items():
        for file in found:
            if lineage.descends(methods[index].commit_id, file.commit_id):
                by_blob[file.blob_id].append((index, file))
    search = _Search({index: methods[index] for index in brought}, reader, max_file_bytes)
    rows = list(methods)
    for index, same in search.look_into(by_blob).items():
        same.sort(key=lambda place: (dates[place[0].commit_id], place[0].commit_id, place[0].blob_id))
        earlier = next(filter(None, (search.evidence(rows[index], *place) for place in same)), None)
        if earlier is not None:
            rows[index] = with_origin(rows[index], earlier)
    return rows


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to look for: a method and what every text with its tokens has."""

    code: bytes
    name: str
    header: str
    """Digest of its first line."""
    key: bytes
    """Digest of its tokens' characters, as `TextKeys.nameless`."""
    tokens: bytes
    """Digest of its tokens."""
    words: tuple[bytes, ...]
    """The words of its tokens, the longest first."""


Place = tuple[HistoricFile, MethodSpan]


class _Search:
    """Looks for methods in blobs; each is read once, and parsed only when some method's words stand together in it."""

    def __init__(self, methods: Mapping[int, Method], reader: ObjectReader, max_file_bytes: int) -> None:
        self._git_dir: Path = reader.git_dir
        self._max_file_bytes = max_file_bytes
        self._wanted = {index: _wanted(row) for index, row in methods.items()}
        self._sources = SourceCache(reader, max_file_bytes)
        self._store = DefinitionStore(lambda blob_id: self._sources.get(blob_id).utf8)

    def look_into(self, by_blob: Mapping[str, Sequence[tuple[int, HistoricFile]]]) -> dict[int, list[Place]]:
        """Return for each method the blobs that hold its tokens under its name, and where."""
        found: dict[int, list[Place]] = defaultdict(list)
        texts = read_blobs(self._git_dir, list(by_blob), self._max_file_bytes)
        for (blob_id, asked), text in zip(by_blob.items(), texts, strict=True):
            parts: dict[str, list[bytes]] | None = None
            if not text:
                continue  # git cannot read it, or it is above the limit
            for index, file in asked:
                wanted = self._wanted[index]
                if not all(word in text for word in wanted.words[:2]):
                    continue
                parts = _parts(text) if parts is None else parts
                if any(all(word in part for word in wanted.words) for part in parts.get(wanted.header, ())):
                    span = self._find(blob_id, wanted)
                    found[index] += [] if span is None else [(file, span)]
        return found

    def _find(self, blob_id: str, wanted: _Wanted) -> MethodSpan | None:
        try:
            spans = self._store.file(blob_id).methods
        except DataError:
            return None  # what cannot be read cannot be shown to be the same
        for span in spans:
            alike = span.keys.nameless == wanted.key and span.fun_name.rpartition(".")[2] == wanted.name
            if alike and self._store.hashes(blob_id, span).exact == wanted.tokens:
                return span
        return None

    def evidence(self, row: Method, file: HistoricFile, span: MethodSpan) -> Earlier | None:
        """Return what is said of a method that a blob holds; None when git cannot list the commit's tree."""
        path = self._path(file)
        if path is None:
            return None
        like = similarity(row.code.encode("utf-8", "surrogatepass"), self._store.text(file.blob_id, span))
        return Earlier(Novelty.RESTORED, path, span.fun_name, like, file.commit_id)

    def _path(self, file: HistoricFile) -> str | None:
        """Return under which path, the smallest of several, a commit has a blob; None when git cannot list its tree."""
        try:
            output = run_git(self._git_dir, "ls-tree", "-r", "-z", "--full-tree", file.commit_id)
        except DataError:
            return None
        records = [entry.partition(b"\t") for entry in output.split(b"\0")[:-1]]
        blob_id = file.blob_id.encode()
        return display_path(min(path for meta, _, path in records if path.endswith(b".py") and blob_id in meta))


def _wanted(row: Method) -> _Wanted:
    code = row.code.encode("utf-8", "surrogatepass")
    name, header = row.fun_name.rpartition(".")[2], header_of(row.code) or ""
    words = sorted(_words(code), key=lambda word: (-len(word), word))
    return _Wanted(code, name, header, bytes.fromhex(row.token_key), token_hashes(code, b"").exact, tuple(words))


def _words(code: bytes) -> set[bytes]:
    """Return the words of a method's tokens; none when it does not parse."""
    root = parse(code).root_node
    definition = definition_of(root.named_children[0]) if root.named_child_count == 1 else None
    if definition is None:
        return set()
    docstring = definition.docstring
    skipped = range(0) if docstring is None else range(docstring.start_byte, docstring.end_byte)
    tokens = [node for node in iter_tokens(definition.node) if node.start_byte not in skipped]
    return {word for node in tokens for word in _WORD.findall(code[node.start_byte : node.end_byte])}


def _parts(text: bytes) -> dict[str, list[bytes]]:
    """Return, by the digest of its first line, the parts of a text that hold a whole definition, decorators apart.

    A part begins where the definition before does, because decorators belong to it, and reaches to the next line that
    begins a definition, is indented no more and stands in no string.
    """
    starts, pieces, _ = outline(text)
    parts: dict[str, list[bytes]] = defaultdict(list)
    for index, start in enumerate(starts):
        before = starts[index - 1] if index else 0
        parts[header_digest(line_at(text, start))].append(text[before : _end(starts, pieces, index, len(text))])
    return parts


def _end(starts: Sequence[int], pieces: Sequence[Piece], index: int, end: int) -> int:
    """Return where a definition ends at the latest; a string in it may hold lines of any indentation."""
    in_string = pieces[index].odd
    for other in range(index + 1, len(starts)):
        if not in_string and pieces[other].indent <= pieces[index].indent:
            return starts[other]
        in_string ^= pieces[other].odd
    return end
