"""Tree objects of a repository: their entries, kept at hand within a bound, and many of them read at once."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from miners.git_process import ObjectReader
from schemas.errors import DataError

# By digits of an object's id: one entry, and whole trees.
_ENTRY = {digits: re.compile(rb"([0-7]+) ([^\0]+)\0(.{%d})" % (digits // 2), re.DOTALL) for digits in (40, 64)}
_TREE = {digits: re.compile(rb"(?:[0-7]++ [^\0]++\0.{%d})*+" % (digits // 2), re.DOTALL) for digits in (40, 64)}
# Entries kept at hand, about 150 bytes each; a large project's folders have some ten thousand in all.
_MAX_ENTRIES = 50_000
# Deeper trees are left to git, which has a limit of its own.
_MAX_DEPTH = 200

Entry = tuple[bytes, bytes, bytes]  # mode, name, binary id


def is_folder(mode: bytes) -> bool:
    """Tell whether an entry is a tree."""
    return mode.endswith(b"40000")  # 040000 in trees that old programs wrote


class Trees:
    """The entries of trees; the least recently used ones are dropped."""

    def __init__(self, reader: ObjectReader) -> None:
        self.reader = reader
        self._entries: OrderedDict[str, Sequence[Entry]] = OrderedDict()
        self._n_entries = 0

    def entries(self, tree_id: str, depth: int = 0) -> Sequence[Entry]:
        """Return the entries of a tree that stands so many folders deep.

        Raises DataError when it cannot be read, is not made of entries alone or stands too deep.
        """
        if depth >= _MAX_DEPTH:
            raise DataError("object_corrupt", "folders are nested too deep")
        found = self._entries.get(tree_id)
        if found is None:
            return self._keep(tree_id, *self.reader.read(tree_id))
        self._entries.move_to_end(tree_id)
        return found

    def _keep(self, tree_id: str, kind: str, data: bytes) -> Sequence[Entry]:
        if kind != "tree" or not _TREE[len(tree_id)].fullmatch(data):
            raise DataError("object_corrupt", f"{tree_id} is no usual tree")
        found = self._entries[tree_id] = _ENTRY[len(tree_id)].findall(data)
        self._n_entries += len(found) + 1
        while self._n_entries > _MAX_ENTRIES and len(self._entries) > 1:
            self._n_entries -= len(self._entries.popitem(last=False)[1]) + 1
        return found

    def read_ahead(self, folders: Mapping[str, Iterable[bytes]]) -> None:
        """Read commits and the trees on the way to folders of theirs, a whole level at once; paths as git has them.

        What cannot be read is left out: whoever asks for it is told why.
        """
        for _ in self.reader.read_many(folders):
            pass  # kept by the reader
        level: dict[str, set[bytes]] = {}
        for commit_id, paths in folders.items():
            with suppress(DataError):
                for path in paths:
                    level.setdefault(self.reader.root(commit_id), set()).add(path)
        while level:
            level = self._read_level(level)

    def _read_level(self, level: Mapping[str, set[bytes]]) -> dict[str, set[bytes]]:
        """Read trees and return those below them that stand on the way to folders, with the rest of the way."""
        unknown = [tree_id for tree_id in level if tree_id not in self._entries]
        for tree_id, answer in zip(unknown, self.reader.read_many(unknown), strict=True):
            if answer is not None:
                with suppress(DataError):
                    self._keep(tree_id, *answer)
        below: dict[str, set[bytes]] = {}
        for tree_id, paths in level.items():
            rests: dict[bytes, set[bytes]] = {}
            for name, _, rest in (path.partition(b"/") for path in paths if path):
                rests.setdefault(name, set()).add(rest)
            for mode, name, object_id in self._entries.get(tree_id, ()) if rests else ():
                if name in rests and is_folder(mode):
                    below.setdefault(object_id.hex(), set()).update(rests[name])
        return below
