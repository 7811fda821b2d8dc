"""Methods that come back from the history outside the window: found by their `def` line, proven by their tokens."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from miners.caches import SourceCache
from miners.changes import display_path
from miners.commits import CommitHeader
from miners.git_process import ObjectReader, run_git
from miners.history import header_of
from miners.methods import token_hashes
from miners.novelty import DefinitionStore, Earlier, similarity
from miners.origins import Lineage, with_origin
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
    search = _Search(reader, max_file_bytes)
    rows = list(methods)
    for index, found in brought.items():
        row = rows[index]
        older = [file for file in found if lineage.descends(row.commit_id, file.commit_id)]
        older.sort(key=lambda file: (dates[file.commit_id], file.commit_id, file.blob_id))
        earlier = search.first(row, older)
        if earlier is not None:
            rows[index] = with_origin(row, earlier)
    return rows


class _Search:
    """Looks for a method in blobs, each of which is parsed at most once and only when its words are there."""

    def __init__(self, reader: ObjectReader, max_file_bytes: int) -> None:
        self._git_dir: Path = reader.git_dir
        self._sources = SourceCache(reader, max_file_bytes)
        self._store = DefinitionStore(lambda blob_id: self._sources.get(blob_id).utf8)

    def first(self, row: Method, files: Iterable[HistoricFile]) -> Earlier | None:
        """Return the first of the files' definitions that has a method's tokens, None without one."""
        code = row.code.encode("utf-8", "surrogatepass")
        words = sorted(set(_WORD.findall(code)), key=lambda word: (-len(word), word))[:2]
        name = row.fun_name.rpartition(".")[2]
        key, tokens = bytes.fromhex(row.token_key), token_hashes(code, b"").exact
        for file in files:
            try:
                text = self._sources.get(file.blob_id).utf8
                if not all(word in text for word in words):
                    continue
                spans = self._store.file(file.blob_id).methods
            except DataError:
                continue  # what cannot be read cannot be shown to be the same
            for span in spans:
                alike = span.keys.nameless == key and span.fun_name.rpartition(".")[2] == name
                if alike and self._store.hashes(file.blob_id, span).exact == tokens:
                    path = self._path(file)
                    if path is None:
                        break
                    like = similarity(code, self._store.text(file.blob_id, span))
                    return Earlier(Novelty.RESTORED, path, span.fun_name, like, file.commit_id)
        return None

    def _path(self, file: HistoricFile) -> str | None:
        """Return under which path, the smallest of several, a commit has a blob; None when git cannot list its tree."""
        try:
            output = run_git(self._git_dir, "ls-tree", "-r", "-z", "--full-tree", file.commit_id)
        except DataError:
            return None
        records = [entry.partition(b"\t") for entry in output.split(b"\0")[:-1]]
        blob_id = file.blob_id.encode()
        return display_path(min(path for meta, _, path in records if path.endswith(b".py") and blob_id in meta))
