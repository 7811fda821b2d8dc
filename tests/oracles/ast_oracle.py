"""An independent extraction of methods with the standard library's `ast` and `tokenize` and plain git.

It shares no code with `miners` and no method either: trees are compared here instead of by git's streamed diffs,
functions come from `ast`, tokens from `tokenize`. Files that this CPython cannot parse are left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from schemas.records import Novelty
from tests.oracles.functions import Function, functions_of
from tests.oracles.plain_git import Commit, Lineage, Objects, history, shown

_EXACT, _KINDS = 0, range(3)
_DEFINED = re.compile(rb"def[\s\\]+([^\s(\\\[]+)")
AGE = (Novelty.REFORMATTED, Novelty.MODIFIED, Novelty.MOVED, Novelty.RENAMED, Novelty.ADDED)

Key = tuple[str, str, str, int, int]
"""Commit, path, qualified name, start byte, end byte."""


@dataclass(slots=True)
class Truth:
    """What the oracle found in one repository."""

    novelty: dict[Key, Novelty] = field(default_factory=dict)
    """Class of every method that is not unchanged."""
    unreadable: set[tuple[str, str]] = field(default_factory=set)
    """(commit, path) of files that cannot be judged: a version before or after does not parse here."""
    functions: dict[Key, Function] = field(default_factory=dict)
    """What each classified method is."""
    commits: dict[str, Commit] = field(default_factory=dict)
    """The whole history, parents first."""
    inside: set[str] = field(default_factory=set)
    """Commits of the window."""
    brought: dict[bytes, dict[str, None]] = field(default_factory=dict)
    """Commits that brought a method, by its exact signature."""


def extract(
    git_dir: Path, since: datetime, until: datetime | None = None, head: str = "HEAD", search_history: str = "all"
) -> Truth:
    """Classify every method of every changed file of the window's commits.

    Of the commits outside the window `all`, `none`, or those of some years before it (`2y`) are searched for code that
    comes back.
    """
    with Objects(git_dir) as objects:
        extraction = Extraction(objects, history(git_dir, head))
        truth = extraction.truth
        for commit in truth.commits.values():
            dates = commit.dates
            if len(dates) == 2 and min(dates) >= since.timestamp() and (not until or max(dates) < until.timestamp()):
                truth.inside.add(commit.commit_id)
        for commit_id in truth.commits:
            if commit_id in truth.inside:
                extraction.judge_commit(truth.commits[commit_id])
        if search_history != "none":
            years = None if search_history == "all" else int(search_history.removesuffix("y"))
            note_history(objects, truth, None if years is None else since - years * timedelta(days=365.25))
    resolve_origins(truth)
    return truth


class Extraction:
    """Judges commits, parents first, and remembers which blobs hold which functions."""

    def __init__(self, objects: Objects, commits: dict[str, Commit]) -> None:
        self.truth = Truth(commits=commits)
        self._objects = objects
        self._functions: dict[bytes, list[Function] | None] = {}
        # Blobs by each kind of signature of their functions, nested ones included.
        self._blobs: tuple[dict[bytes, list[bytes]], ...] = tuple({} for _ in _KINDS)
        # All paths at which a tree met so far holds a blob.
        self._paths: dict[bytes, set[bytes]] = {}
        self._listed: set[tuple[bytes, bytes]] = set()

    def judge_commit(self, commit: Commit) -> None:
        """Classify the methods of one commit's changed files."""
        parents = [self.truth.commits[parent] for parent in commit.parents]
        for parent in parents:
            if parent.commit_id not in self.truth.inside:
                self._list(parent.tree, b"")
        trees = [parent.tree for parent in parents]
        changed = dict(self._objects.changed(commit.tree, trees or [None]))
        for path, blob in changed.items():
            self._note(path, blob)
        renames = self._renames(commit, changed)
        for path, blob in sorted(changed.items()):
            olds = [self._objects.find(tree, path) for tree in trees]
            if trees and olds[0] is None and path in renames:
                olds[0] = self._objects.find(trees[0], renames[path])
            self._judge_file((commit.commit_id, shown(path)), blob, olds, trees)

    def _judge_file(
        self, place: tuple[str, str], blob: bytes, old_blobs: Sequence[bytes | None], trees: Sequence[bytes]
    ) -> None:
        after = self.functions(blob)
        olds = [[] if old is None else self.functions(old) for old in old_blobs]
        if after is None or any(old is None for old in olds):
            self.truth.unreadable.add(place)
        for method in after or []:
            if method.nested or any(old.name == method.name and old.text == method.text for old in _methods(olds)):
                continue
            self.truth.brought.setdefault(method.signatures[_EXACT], {})[place[0]] = None
            if place not in self.truth.unreadable:
                key = (*place, method.name, method.start, method.end)
                self.truth.functions[key] = method
                self.truth.novelty[key] = self._judge(method, olds, trees)

    def _judge(self, method: Function, olds: Sequence[list[Function] | None], trees: Sequence[bytes]) -> Novelty:
        """Return the class of a method that no parent has unchanged: the oldest over all parents."""
        classes = [Novelty.ADDED]
        for old, tree in zip(olds, trees, strict=True):
            namesakes = [item for item in _methods([old]) if item.name == method.name]
            if any(item.signatures[_EXACT] == method.signatures[_EXACT] for item in namesakes):
                classes.append(Novelty.REFORMATTED)
            elif namesakes:
                classes.append(Novelty.MODIFIED)
            elif self._stands(method, _EXACT, tree):
                classes.append(Novelty.MOVED)
            elif any(self._stands(method, kind, tree) for kind in _KINDS):
                classes.append(Novelty.RENAMED)
        return min(classes, key=AGE.index)

    def _stands(self, method: Function, kind: int, tree: bytes) -> bool:
        """Return whether some file of a tree has a function with the same signature."""
        blobs = self._blobs[kind].get(method.signatures[kind], ())
        return any(self._objects.find(tree, path) == blob for blob in blobs for path in self._paths[blob])

    def functions(self, blob: bytes) -> list[Function] | None:
        """Return a blob's functions, None when it is missing or this CPython cannot parse it."""
        if blob not in self._functions:
            raw = self._objects.read(blob)
            self._functions[blob] = None if raw is None else functions_of(raw)
        return self._functions[blob]

    def _note(self, path: bytes, blob: bytes) -> None:
        """Note that a tree holds a blob at a path."""
        if blob in self._paths:
            self._paths[blob].add(path)
            return
        self._paths[blob] = {path}
        for kind in _KINDS:
            for signature in {function.signatures[kind] for function in self.functions(blob) or []}:
                self._blobs[kind].setdefault(signature, []).append(blob)

    def _list(self, tree: bytes, prefix: bytes) -> None:
        """Note every file of a tree."""
        if (tree, prefix) in self._listed:
            return
        self._listed.add((tree, prefix))
        folder = self._objects.folder(tree)
        for name, blob in folder.files.items():
            self._note(prefix + name, blob)
        for name, below in folder.folders.items():
            self._list(below, prefix + name + b"/")

    def _renames(self, commit: Commit, changed: dict[bytes, bytes]) -> dict[bytes, bytes]:
        if not commit.parents:
            return {}
        before = self.truth.commits[commit.parents[0]].tree
        if all(self._objects.find(before, path) is not None for path in changed):
            return {}
        gone = (
            path
            for path, _ in self._objects.changed(before, [commit.tree])
            if self._objects.find(commit.tree, path) is None
        )
        return self._objects.renamed_from(commit.parents[0], commit.commit_id) if any(gone) else {}


def _methods(files: Sequence[list[Function] | None]) -> Iterator[Function]:
    return (item for file in files for item in file or [] if not item.nested)


def note_history(objects: Objects, truth: Truth, first: datetime | None) -> None:
    """Note which methods that the window seems to add stand in files that commits outside the window change.

    With `first` only commits committed since then are looked at, none without a date. What one of them, or one of the
    window's, changes then counts for the parent it stood in as well: whoever brought it may be too old.
    """
    added = [truth.functions[key] for key, novelty in truth.novelty.items() if novelty is Novelty.ADDED]
    wanted = {method.signatures[_EXACT] for method in added}
    names = frozenset(method.name.rpartition(".")[2] for method in added)
    spelled = {name.encode() for name in names}
    known: dict[bytes, frozenset[bytes]] = {}
    for commit_id, blob in _old_versions(objects, truth, first):
        if blob not in known:
            raw = objects.read(blob) or b""
            # What `def` does not stand before cannot be there; bytes beyond ASCII may be a name in other letters.
            likely = not raw.isascii() or not spelled.isdisjoint(_DEFINED.findall(raw))
            found = functions_of(raw, names) if likely else []
            known[blob] = frozenset(item.signatures[_EXACT] for item in found or [] if not item.nested) & wanted
        for signature in known[blob]:
            truth.brought.setdefault(signature, {})[commit_id] = None


def _old_versions(objects: Objects, truth: Truth, first: datetime | None) -> Iterator[tuple[str, bytes]]:
    """Yield commits and blobs that stood in them."""
    for commit in truth.commits.values():
        inside = commit.commit_id in truth.inside
        too_old = first is not None and (len(commit.dates) < 2 or commit.dates[1] < first.timestamp())
        if too_old and not inside:
            continue
        parents = [truth.commits[parent] for parent in commit.parents]
        changed = list(objects.changed(commit.tree, [parent.tree for parent in parents] or [None]))
        if not inside:
            yield from ((commit.commit_id, blob) for _, blob in changed)
        if first is not None:
            paths = {path for path, _ in changed}
            for parent in parents:
                for path, blob in objects.changed(parent.tree, [commit.tree]):
                    if len(parents) == 1 or path in paths:
                        yield parent.commit_id, blob


def resolve_origins(truth: Truth) -> None:
    """Tell what an ancestor or an earlier commit of another branch brought from what is new."""
    lineage = Lineage(truth.commits)
    place = {key: (truth.commits[key[0]].dates[1], key[0], key[1], key[3]) for key in truth.novelty}
    by_method: dict[tuple[bytes, str], list[Key]] = {}
    added: dict[str, list[Key]] = {}
    for key, function in truth.functions.items():
        by_method.setdefault((function.signatures[_EXACT], function.name), []).append(key)
        if truth.novelty[key] is Novelty.ADDED:
            added.setdefault(key[0], []).append(key)
    for commit_id, keys in added.items():
        signatures = {key: truth.functions[key].signatures[_EXACT] for key in keys}
        origins = {key: truth.brought[signature].keys() for key, signature in signatures.items()}
        ancestors = lineage.ancestors_among(commit_id, {origin for found in origins.values() for origin in found})
        for key in keys:
            if not ancestors.isdisjoint(origins[key]):
                truth.novelty[key] = Novelty.RESTORED
                continue
            twins = by_method[signatures[key], key[2]]
            earlier = [twin[0] for twin in twins if place[twin] < place[key] and twin[0] != commit_id]
            if any(not lineage.ancestors_among(twin, [commit_id]) for twin in earlier):
                truth.novelty[key] = Novelty.REPEATED
