"""Methods that come back from the history outside the window: found by their `def` line, proven by their tokens."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from miners.alike import similarity
from miners.caches import SourceCache
from miners.changes import display_path
from miners.commits import CommitHeader
from miners.git_process import ObjectReader, read_blobs
from miners.history import begins_definition, header_digest, header_line
from miners.methods import MethodSpan, token_hashes
from miners.novelty import DefinitionStore, Earlier
from miners.origins import Lineage, with_origin
from miners.partial import fetch_objects, fetch_trees, list_blobs
from miners.sketch import TRIVIA, behind_trivia, opening
from miners.sources import decode_source
from miners.syntax import definition_of, iter_tokens, parse
from miners.trees import Trees, is_folder
from schemas.errors import DataError
from schemas.history import HistoricFile
from schemas.records import Method, Novelty

_DEFINITION = re.compile(rb"def[ \t\\][^\n]*")
_TRIVIA = TRIVIA.pattern
# A string on its own, in parentheses or not.
_STRING = re.compile(
    rb"(?:\(" + _TRIVIA + rb")*+[a-zA-Z]{0,2}"
    rb"(?:\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    rb"|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')" + _TRIVIA + rb"(?:\)" + _TRIVIA + rb")*+",
    re.DOTALL,
)


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
        if row.novelty is Novelty.ADDED and (line := header_line(row.code)) is not None:
            wanted[header_digest(line)].append(index)
    brought_by = {file.commit_id for file in files if not wanted.keys().isdisjoint(file.headers)}
    lineage = Lineage(headers, {methods[index].commit_id for same in wanted.values() for index in same}, brought_by)
    by_blob: dict[str, dict[int, list[HistoricFile]]] = {}
    for file in files:
        for index in chain.from_iterable(wanted.get(header, ()) for header in file.headers):
            if lineage.descends(methods[index].commit_id, file.commit_id):
                by_blob.setdefault(file.blob_id, {}).setdefault(index, []).append(file)
    fetch_objects(reader.git_dir, sorted(by_blob))  # those of a former run may be gone from a partial clone
    search = _Search(methods, reader, max_file_bytes)
    found = search.look_into(by_blob)
    commit_ids = {file.commit_id for before in found.values() for file in before}
    fetch_trees(reader.git_dir, sorted(commit_ids))
    dates = {header.commit_id: header.committer_epoch or 0 for header in headers if header.commit_id in commit_ids}
    rows = list(methods)
    for index, before in found.items():
        before.sort(key=lambda file: (dates[file.commit_id], file.commit_id, file.blob_id))
        earlier = next(filter(None, (search.evidence(index, file) for file in before)), None)
        if earlier is not None:
            rows[index] = with_origin(rows[index], earlier)
    return rows


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to look for, as far as expressions tell it: most methods are told from old definitions by that."""

    code: bytes
    """A method's text."""
    line: bytes
    """The line with its `def`, from there on and without white space."""
    opening: bytes
    """How it goes on, see `miners.sketch.opening`."""


@dataclass(frozen=True, slots=True)
class _Tokens:
    """What every text with a method's tokens has."""

    header: tuple[bytes, ...]
    """Those from `def` on up to the body, with LF for line ends; none for broken code or when the line is all."""
    body: tuple[bytes, ...]
    """Those of the body without the docstring; none for broken code."""

    def stand_at(self, text: bytes, start: int, end: int) -> bool:
        """Tell whether they, a docstring apart, follow one another in a text from the line with `def` on."""
        at = _follow(text, start, self.header) if self.header else end
        return at >= 0 and any(_follow(text, begin, self.body) >= 0 for begin in _bodies(text, at))


class _Search:
    """Looks for methods in blobs; one is parsed only when some method's tokens stand in a row in it."""

    def __init__(self, methods: Sequence[Method], reader: ObjectReader, max_file_bytes: int) -> None:
        self._git_dir: Path = reader.git_dir
        self._max_file_bytes = max_file_bytes
        self._methods = methods
        self._wanted: dict[int, _Wanted] = {}
        self._tokens: dict[int, _Tokens] = {}
        self._compact = _Compact()
        self._trees = Trees(reader)
        self._sources = SourceCache(reader, max_file_bytes)
        self._store = DefinitionStore(lambda blob_id: self._sources.get(blob_id).utf8)

    def look_into(self, by_blob: Mapping[str, Mapping[int, Sequence[HistoricFile]]]) -> dict[int, list[HistoricFile]]:
        """Return for each method the files that may hold its tokens."""
        found: dict[int, list[HistoricFile]] = defaultdict(list)
        for index in sorted(set(chain.from_iterable(by_blob.values()))):
            self._wanted[index] = _describe(self._methods[index])
        texts = read_blobs(self._git_dir, list(by_blob), self._max_file_bytes)
        for (blob_id, asked), raw in zip(by_blob.items(), texts, strict=True):
            for index in self._standing(_text(blob_id, raw), asked):
                found[index] += asked[index]
        return found

    def _standing(self, text: bytes, asked: Iterable[int]) -> set[int]:
        """Return the methods whose tokens stand in a text."""
        by_line: dict[bytes, list[int]] = defaultdict(list)
        for index in asked:
            by_line[self._wanted[index].line].append(index)
        seen = set[int]()
        for match in _DEFINITION.finditer(text):
            same = by_line.get(self._compact[match.group()])
            if not same:
                continue
            begins = opening(text, match.start())
            for index in same:
                mine = self._wanted[index].opening
                if (mine.startswith(begins) or begins.startswith(mine)) and index not in seen:
                    tokens = self._tokens.get(index) or self._read(index)
                    if tokens.stand_at(text, *match.span()):
                        seen.add(index)
        return seen

    def _read(self, index: int) -> _Tokens:
        wanted = self._wanted[index]
        found = self._tokens[index] = _tokens(wanted.code, wanted.line)
        return found

    def evidence(self, index: int, file: HistoricFile) -> Earlier | None:
        """Return what is said of a method that a blob holds; None when it does not or git cannot list the tree."""
        span = self._find(file.blob_id, self._methods[index])
        path = None if span is None else self._path(file)
        if span is None or path is None:
            return None
        like = similarity(_bytes(self._methods[index]), self._store.text(file.blob_id, span))
        return Earlier(Novelty.RESTORED, path, span.fun_name, like, file.commit_id)

    def _find(self, blob_id: str, row: Method) -> MethodSpan | None:
        """Return the definition of a blob that has a method's name and tokens."""
        try:
            spans = self._store.file(blob_id).methods
        except DataError:
            return None  # what cannot be read cannot be shown to be the same
        key, name = bytes.fromhex(row.token_key), row.fun_name.rpartition(".")[2]
        for span in spans:
            alike = span.keys.nameless == key and span.fun_name.rpartition(".")[2] == name
            if alike and self._store.hashes(blob_id, span).exact == _exact(_bytes(row)):
                return span
        return None

    def _path(self, file: HistoricFile) -> str | None:
        """Return under which path, the smallest of several, a commit has a blob; None when git cannot list its tree."""
        try:
            root = self._trees.reader.root(file.commit_id)
            paths = [*_paths(self._trees, root, bytes.fromhex(file.blob_id))]
        except DataError:
            listed = list_blobs(self._git_dir, file.commit_id)
            paths = [path for path, blob_id in listed if path.endswith(b".py") and blob_id == file.blob_id]
        return display_path(min(paths)) if paths else None


def _paths(trees: Trees, tree_id: str, blob_id: bytes, prefix: bytes = b"", depth: int = 0) -> Iterator[bytes]:
    """Yield the paths of Python files below a tree that have a blob; raise DataError when some of it cannot be read."""
    for mode, name, object_id in trees.entries(tree_id, depth):
        if is_folder(mode):
            yield from _paths(trees, object_id.hex(), blob_id, prefix + name + b"/", depth + 1)
        elif object_id == blob_id and name.endswith(b".py"):
            yield prefix + name


class _Compact(dict[bytes, bytes]):
    """Lines without white space; a history repeats its lines many times."""

    def __missing__(self, line: bytes) -> bytes:
        found = self[line] = _compact(line)
        return found


def _describe(row: Method) -> _Wanted:
    code = _bytes(row)
    offset = 0
    for line in code.splitlines(keepends=True):
        if begins_definition(line) and (found := _DEFINITION.search(line)) is not None:
            text = _unified(code)
            at = len(_unified(code[: offset + found.start()]))
            return _Wanted(code, _compact(found.group()), opening(text, at))
        offset += len(line)
    return _Wanted(code, b"", b"")


def _tokens(code: bytes, line: bytes) -> _Tokens:
    root = parse(code).root_node
    whole = not root.has_error and root.named_child_count == 1
    definition = definition_of(root.named_children[0]) if whole else None
    header: list[bytes] = []
    body: list[bytes] = []
    if definition is not None:
        docstring = definition.docstring
        skipped = range(0) if docstring is None else range(docstring.start_byte, docstring.end_byte)
        for node in iter_tokens(definition.function):
            if node.start_byte not in skipped and node.type != "async":
                part = header if node.start_byte < definition.header_end else body
                part.append(_unified(code[node.start_byte : node.end_byte]))
    return _Tokens(() if _compact(b"".join(header)) == line else tuple(header), tuple(body))


@lru_cache(maxsize=1)  # one method is compared with the definitions of many blobs in turn
def _exact(code: bytes) -> bytes:
    return token_hashes(code, b"").exact


def _bytes(row: Method) -> bytes:
    return row.code.encode("utf-8", "surrogatepass")


def _compact(line: bytes) -> bytes:
    return b"".join(line.split())


def _text(blob_id: str, raw: bytes | None) -> bytes:
    """Return a blob's text with LF for all line ends; nothing for one that cannot be read or is above the limit."""
    try:
        return _unified(decode_source(blob_id, raw or b"").utf8)
    except DataError:
        return b""


def _unified(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def _follow(text: bytes, at: int, tokens: Sequence[bytes]) -> int:
    """Return the offset behind tokens that follow one another from an offset on, -1 when they do not."""
    for token in tokens:
        if not text.startswith(token, at):
            at = behind_trivia(text, at)
            if not text.startswith(token, at):
                return -1
        at += len(token)
    return at


def _bodies(text: bytes, at: int) -> Iterator[int]:
    """Yield where a body may begin behind its header: there, and behind each string that it begins with."""
    yield at
    at = behind_trivia(text, at)
    while (string := _STRING.match(text, at)) is not None:
        at = string.end()
        yield at
