"""The evidence of the miner's rows: the earlier definition that each names stands there and is what the class says."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from schemas.records import Method, Novelty
from tests.oracles.ast_oracle import Truth
from tests.oracles.comparison import MARKS
from tests.oracles.functions import Function, decoded, functions_of
from tests.oracles.plain_git import Lineage, Objects, stored

_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_BLANK = frozenset(b" \t\n\r\f\v")
# Versions of files kept in memory, about 50 kB each.
_MAX_FILES = 500


@dataclass(slots=True)
class Checked:
    """What the check of all rows found."""

    n_checked: Counter[str] = field(default_factory=Counter)
    """Rows whose evidence was checked, by class."""
    n_unjudged: int = 0
    """Rows whose file or whose earlier file does not parse here."""
    problems: list[str] = field(default_factory=list)
    """One line for each row whose evidence does not hold."""


class Unjudged(Exception):
    """A version of a file does not parse here."""


def check_evidence(git_dir: Path, rows: Iterable[Method], truth: Truth) -> Checked:
    """Check the columns `earlier_path`, `earlier_fun_name`, `earlier_commit_id` and `similarity` of every row."""
    checked = Checked()
    with Objects(git_dir) as objects:
        checker = Checker(objects, truth)
        for row in rows:
            try:
                problem = checker.problem(row)
            except Unjudged:
                checked.n_unjudged += 1
                continue
            checked.n_checked[row.novelty] += 1
            if problem is not None:
                place = f"{row.commit_id} {row.path} {row.fun_name} {row.novelty}"
                earlier = f"{row.earlier_commit_id} {row.earlier_path} {row.earlier_fun_name} {row.similarity}"
                checked.problems.append(f"{place}: {problem} ({earlier})")
    return checked


def words_of(text: bytes) -> frozenset[bytes]:
    """Return a text's words of ASCII letters, digits and `_`, and its single other bytes that are no white space."""
    found, start = set(), None
    for at, byte in enumerate(text):
        if byte in _WORD:
            start = at if start is None else start
            continue
        if start is not None:
            found.add(text[start:at])
            start = None
        if byte not in _BLANK:
            found.add(text[at : at + 1])
    if start is not None:
        found.add(text[start:])
    return frozenset(found)


def likeness(one: frozenset[bytes], other: frozenset[bytes]) -> float:
    """Return the Jaccard similarity of two sets that are not both empty."""
    return len(one & other) / len(one | other)


@dataclass(frozen=True, slots=True)
class File:
    """A version of a file."""

    raw: bytes
    encoding: str
    functions: list[Function]

    def words(self, function: Function) -> frozenset[bytes]:
        return words_of(self.raw[function.start : function.end].decode(self.encoding).encode())


class Checker:
    """Checks rows of one repository."""

    def __init__(self, objects: Objects, truth: Truth) -> None:
        self._objects = objects
        self._truth = truth
        self._lineage = Lineage(truth.commits)
        self._files: dict[bytes, File | None] = {}

    def problem(self, row: Method) -> str | None:
        """Return what is wrong with a row's evidence, None when nothing is; raise Unjudged when nobody can say."""
        earlier = (row.earlier_path, row.earlier_fun_name, row.earlier_commit_id, row.similarity)
        if row.novelty is Novelty.ADDED or row.novelty in MARKS:
            return None if earlier == (None,) * 4 else "has evidence"
        if None in earlier:
            return "has no evidence"
        problem = self._wrong_commit(row)
        if problem is not None:
            return problem
        tree = self._truth.commits[row.earlier_commit_id or ""].tree
        blob = self._objects.find(tree, stored(row.earlier_path or ""))
        if blob is None:
            return "no such file there"
        if row.novelty in (Novelty.MODIFIED, Novelty.REFORMATTED) and not self._same_file(row):
            return "another file"
        file, old = self._own_file(row), self._file(blob)
        own = [item for item in file.functions if (item.start, item.end) == (row.start_byte, row.end_byte)]
        if [item.name for item in own] != [row.fun_name]:
            return "the method itself is not there"
        namesakes = [item for item in old.functions if item.name == row.earlier_fun_name]
        if not namesakes:
            return "no such definition there"
        return _wrong_text(row, (file, own[0]), (old, namesakes))

    def _wrong_commit(self, row: Method) -> str | None:
        """Return what is wrong with the commit that a row names."""
        earlier, commits = row.earlier_commit_id or "", self._truth.commits
        if row.novelty not in (Novelty.RESTORED, Novelty.REPEATED):
            return None if earlier in commits[row.commit_id].parents else "no parent"
        if earlier not in commits:
            return "no commit of the history"
        path = stored(row.earlier_path or "")
        blob = self._objects.find(commits[earlier].tree, path)
        if blob is None:
            return "no such file there"
        is_ancestor = bool(self._lineage.ancestors_among(row.commit_id, [earlier]))
        if row.novelty is Novelty.RESTORED:
            return None if is_ancestor else "no ancestor"
        if any(self._objects.find(commits[parent].tree, path) == blob for parent in commits[earlier].parents):
            return "the commit does not change the file"
        if is_ancestor or self._lineage.ancestors_among(earlier, [row.commit_id]):
            return "the same line of history"
        order = [(commits[commit_id].dates[-1], commit_id) for commit_id in (earlier, row.commit_id)]
        if row.fun_name != row.earlier_fun_name:
            return "another name"
        return None if order[0] < order[1] else "not earlier"

    def _same_file(self, row: Method) -> bool:
        """Return whether a row's file is the earlier one, or has taken its place."""
        if row.path == row.earlier_path:
            return True
        old_tree = self._truth.commits[row.earlier_commit_id or ""].tree
        is_new = self._objects.find(old_tree, stored(row.path)) is None
        tree = self._truth.commits[row.commit_id].tree
        return is_new and self._objects.find(tree, stored(row.earlier_path or "")) is None

    def _own_file(self, row: Method) -> File:
        blob = self._objects.find(self._truth.commits[row.commit_id].tree, stored(row.path))
        if blob is None or blob.hex() != row.blob_id:
            raise LookupError(f"{row.commit_id} has no {row.path} with blob {row.blob_id}")
        return self._file(blob)

    def _file(self, blob: bytes) -> File:
        if blob not in self._files:
            raw = self._objects.read(blob) or b""
            functions = functions_of(raw)
            self._files[blob] = None if functions is None else File(raw, decoded(raw)[1], functions)
            if len(self._files) > _MAX_FILES:
                del self._files[next(iter(self._files))]
        file = self._files[blob]
        if file is None:
            raise Unjudged
        return file


def _wrong_text(row: Method, own: tuple[File, Function], old: tuple[File, Sequence[Function]]) -> str | None:
    """Return what is wrong with the definitions of the name that a row names, None when one of them is as it says."""
    (file, function), (old_file, namesakes) = own, old
    exact, at_definition, everywhere = function.signatures
    if row.novelty is Novelty.MODIFIED:
        if row.fun_name != row.earlier_fun_name:
            return "another name"
        if any(item.signatures[0] == exact for item in namesakes):
            return "the tokens are equal"
        fitting = list(namesakes)
    elif row.novelty is Novelty.RENAMED:
        alike = [item for item in namesakes if item.signatures[1] == at_definition or item.signatures[2] == everywhere]
        fitting = [item for item in alike if item.signatures[0] != exact]
    else:
        if row.novelty is Novelty.REFORMATTED and row.fun_name != row.earlier_fun_name:
            return "another name"
        fitting = [item for item in namesakes if item.signatures[0] == exact]
    if not fitting:
        return "the tokens differ"
    words = file.words(function)
    alike_by = [likeness(words, old_file.words(item)) for item in fitting]
    best = [max(alike_by)] if row.novelty in (Novelty.MODIFIED, Novelty.REFORMATTED) else alike_by
    return None if row.similarity in best else f"the similarity is {best}"
