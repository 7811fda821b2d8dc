"""A slow, independent extraction of methods with the standard library's `ast` and `tokenize` and plain git.

It shares no code with `miners` and no method either: whole trees are listed for every commit instead of streamed
diffs, functions come from `ast`, tokens from `tokenize`. Files that this CPython cannot parse are left out.
"""

import ast
import hashlib
import io
import re
import subprocess
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from schemas.records import Exclusion, Method, Novelty
from tests.builders import GIT_ENVIRONMENT

FILE_MODES = ("100644", "100755", "100664")
MARKS = (Novelty.VENDORED, Novelty.GENERATED)
LINE_END = re.compile(rb"\r\n|\r|\n")
NO_TOKENS = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)

Key = tuple[str, str, str, int, int]
"""Commit, path, qualified name, start byte, end byte."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function as `ast` sees it."""

    name: str
    start: int
    end: int
    nested: bool
    text: bytes
    signatures: tuple[bytes, bytes, bytes]
    """Digests of its tokens: exact, own name replaced at the definition, own name replaced everywhere."""


@dataclass(slots=True)
class Truth:
    """What the oracle found in one repository."""

    novelty: dict[Key, Novelty] = field(default_factory=dict)
    """Class of every method that is not unchanged."""
    unreadable: set[tuple[str, str]] = field(default_factory=set)
    """(commit, path) of files that cannot be judged: a version before or after does not parse here."""
    functions: dict[Key, "Function"] = field(default_factory=dict)
    """What each classified method is."""
    committed: dict[str, int] = field(default_factory=dict)
    """Committer date of the window's commits."""
    brought: dict[bytes, list[tuple[str, str]]] = field(default_factory=dict)
    """(commit, qualified name) of the methods with which commits change files, by exact signature."""


class Mined(Protocol):
    """What the miner returns, as far as the comparison needs it."""

    @property
    def methods(self) -> list[Method]: ...

    @property
    def excluded(self) -> list[Exclusion]: ...


@dataclass(frozen=True, slots=True)
class Comparison:
    """Agreement on the set of `added` methods, over files that both sides can judge."""

    n_mined: int
    n_oracle: int
    n_both: int
    n_marked: int
    """Methods left out because the miner marks their file as vendored or generated."""
    n_unjudged: int
    """Methods left out because a version of their file does not parse here or the miner excluded it with a reason."""
    differences: list[str]
    """One line for each method that only one side calls `added`, with the class the other side gives it."""
    other_classes: list[str]
    """The same for classes other than `added`; they do not count into F1."""

    @property
    def precision(self) -> float:
        return self.n_both / self.n_mined if self.n_mined else 1.0

    @property
    def recall(self) -> float:
        return self.n_both / self.n_oracle if self.n_oracle else 1.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def compare(mined: Mined, truth: Truth) -> Comparison:
    """Compare the miner's rows with the oracle's."""
    ours = {_key(row): row.novelty for row in mined.methods}
    left_out = {item.row_id.split("@", 1)[1] for item in mined.excluded if "@" in item.row_id}
    marked = {key for key, novelty in ours.items() if novelty in MARKS}
    unjudged = {
        key
        for key in ours.keys() | truth.novelty.keys()
        if key[:2] in truth.unreadable or key[0] in left_out or f"{key[0]}:{key[1]}" in left_out
    }
    skipped = marked | unjudged
    mine = {key for key, novelty in ours.items() if novelty is Novelty.ADDED} - skipped
    theirs = {key for key, novelty in truth.novelty.items() if novelty is Novelty.ADDED} - skipped
    differing = [
        key for key in sorted((ours.keys() | truth.novelty.keys()) - skipped) if ours.get(key) != truth.novelty.get(key)
    ]
    lines = {key: f"{key}: miner {ours.get(key)}, oracle {truth.novelty.get(key)}" for key in differing}
    return Comparison(
        n_mined=len(mine),
        n_oracle=len(theirs),
        n_both=len(mine & theirs),
        n_marked=len(marked),
        n_unjudged=len(unjudged),
        differences=[lines[key] for key in differing if key in mine ^ theirs],
        other_classes=[lines[key] for key in differing if key not in mine ^ theirs],
    )


def _key(row: Method) -> Key:
    return (row.commit_id, row.path, row.fun_name, row.start_byte, row.end_byte)


def git(git_dir: Path, *args: str) -> bytes:
    command = ["git", "-c", "safe.directory=*", f"--git-dir={git_dir}", *args]
    return subprocess.run(command, env=GIT_ENVIRONMENT, check=True, stdout=subprocess.PIPE).stdout


def extract(
    git_dir: Path, since: datetime, until: datetime | None = None, head: str = "HEAD", history: bool = True
) -> Truth:
    """Classify every method of every changed file of the window's commits.

    Without `history` commits outside the window are not searched for code that comes back.
    """
    repository = Repository(git_dir)
    truth = Truth()
    log = git(git_dir, "log", "--topo-order", "--reverse", "--format=%H %at %ct %P", head).decode()
    for line in log.splitlines():
        commit_id, author, committer, *parents = line.split(" ")
        parents = [parent for parent in parents if parent]
        dates = [int(author), int(committer)]
        inside = min(dates) >= since.timestamp() and (until is None or max(dates) < until.timestamp())
        if inside:
            truth.committed[commit_id] = int(committer)
            judge_commit(repository, commit_id, parents, truth)
        if inside or history:
            note_brought(repository, commit_id, parents, truth)
    resolve_origins(repository, truth)
    return truth


class Repository:
    """Reads trees and blobs and remembers what they hold."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._trees: dict[str, dict[bytes, str]] = {}
        self._functions: dict[str, list[Function] | None] = {}
        self._signatures: dict[str, tuple[frozenset[bytes], ...]] = {}
        self._ancestors: dict[str, frozenset[str]] = {}

    def tree(self, commit_id: str) -> dict[bytes, str]:
        """Return {path: blob} of the Python files of a commit."""
        if commit_id not in self._trees:
            files: dict[bytes, str] = {}
            for entry in git(self.git_dir, "ls-tree", "-r", "-z", "--full-tree", commit_id).split(b"\0")[:-1]:
                meta, path = entry.split(b"\t", 1)
                mode, _, blob_id = meta.decode().split(" ")
                if mode in FILE_MODES and path.endswith(b".py"):
                    files[path] = blob_id
            while len(self._trees) > 20:
                del self._trees[next(iter(self._trees))]
            self._trees[commit_id] = files
        return self._trees[commit_id]

    def functions(self, blob_id: str) -> list[Function] | None:
        """Return a blob's functions, None when it is missing or this CPython cannot parse it."""
        if blob_id not in self._functions:
            try:
                self._functions[blob_id] = functions_of(git(self.git_dir, "cat-file", "blob", blob_id))
            except subprocess.CalledProcessError:
                self._functions[blob_id] = None
        return self._functions[blob_id]

    def signatures(self, blob_id: str) -> tuple[frozenset[bytes], ...]:
        """Return the three sets of signatures of a blob's functions, nested ones included."""
        if blob_id not in self._signatures:
            found = self.functions(blob_id) or []
            self._signatures[blob_id] = tuple(frozenset(item.signatures[kind] for item in found) for kind in range(3))
        return self._signatures[blob_id]

    def descends(self, commit_id: str, earlier: str) -> bool:
        """Return whether a commit descends from another one."""
        if commit_id not in self._ancestors:
            listed = git(self.git_dir, "rev-list", commit_id).decode().split()
            self._ancestors[commit_id] = frozenset(listed) - {commit_id}
        return earlier in self._ancestors[commit_id]

    def renamed_from(self, parent: str, commit_id: str) -> dict[bytes, bytes]:
        """Return {new path: old path} of Python files that git's rename detection pairs; none if a blob is missing."""
        args = ("diff-tree", "-r", "-z", "-M", "-l1000", "--name-status", "--diff-filter=R", parent, commit_id)
        try:
            pieces = git(self.git_dir, *args, "--", "*.py").split(b"\0")[:-1]
        except subprocess.CalledProcessError:
            return {}
        return {new: old for _, old, new in zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=True)}


def judge_commit(repository: Repository, commit_id: str, parents: Sequence[str], truth: Truth) -> None:
    """Classify the methods of one commit's changed files."""
    after = repository.tree(commit_id)
    before = [repository.tree(parent) for parent in parents]
    changed = {path: blob for path, blob in after.items() if all(tree.get(path) != blob for tree in before)}
    renames: dict[bytes, bytes] = {}
    if before and any(path not in before[0] for path in changed) and before[0].keys() - after.keys():
        renames = repository.renamed_from(parents[0], commit_id)
    for path, blob in sorted(changed.items()):
        old_blobs = [tree.get(path) for tree in before]
        if before and old_blobs[0] is None and path in renames:
            old_blobs[0] = before[0].get(renames[path])
        place = (commit_id, path.decode("utf-8", "backslashreplace"))
        files = [repository.functions(item) for item in [blob, *(old for old in old_blobs if old is not None)]]
        if any(file is None for file in files):
            truth.unreadable.add(place)
            continue
        methods, *olds = [[item for item in file or [] if not item.nested] for file in files]
        for method in methods:
            if any(old.name == method.name and old.text == method.text for file in olds for old in file):
                continue
            key = (*place, method.name, method.start, method.end)
            truth.novelty[key] = judge(repository, method, old_blobs, before)
            truth.functions[key] = method


def note_brought(repository: Repository, commit_id: str, parents: Sequence[str], truth: Truth) -> None:
    """Note every method of the files that a commit changes."""
    before = [repository.tree(parent) for parent in parents]
    for path, blob in sorted(repository.tree(commit_id).items()):
        if all(tree.get(path) != blob for tree in before):
            for method in repository.functions(blob) or []:
                if not method.nested:
                    truth.brought.setdefault(method.signatures[0], []).append((commit_id, method.name))


def resolve_origins(repository: Repository, truth: Truth) -> None:
    """Tell what an ancestor or an earlier commit of another branch brought from what is new."""
    place = {key: (truth.committed[key[0]], key[0], key[1], key[3]) for key in truth.novelty}
    by_method: dict[tuple[bytes, str], list[Key]] = {}
    for key, function in truth.functions.items():
        by_method.setdefault((function.signatures[0], function.name), []).append(key)
    for key, novelty in truth.novelty.items():
        if novelty is not Novelty.ADDED:
            continue
        function = truth.functions[key]
        brought = dict.fromkeys(commit for commit, _ in truth.brought.get(function.signatures[0], ()))
        if any(repository.descends(key[0], commit) for commit in brought):
            truth.novelty[key] = Novelty.RESTORED
            continue
        twins = by_method[function.signatures[0], function.name]
        earlier = [twin[0] for twin in twins if place[twin] < place[key] and twin[0] != key[0]]
        if any(not repository.descends(twin, key[0]) for twin in earlier):
            truth.novelty[key] = Novelty.REPEATED


def judge(
    repository: Repository, method: Function, old_blobs: Sequence[str | None], trees: Sequence[dict[bytes, str]]
) -> Novelty:
    """Return the class of a method that no parent has unchanged: the oldest over all parents."""
    classes = [Novelty.ADDED]
    for old_blob, tree in zip(old_blobs, trees, strict=True):
        file = repository.functions(old_blob) if old_blob is not None else []
        namesakes = [old for old in file or [] if not old.nested and old.name == method.name]
        if any(old.signatures[0] == method.signatures[0] for old in namesakes):
            classes.append(Novelty.REFORMATTED)
        elif namesakes:
            classes.append(Novelty.MODIFIED)
        else:
            found = [repository.signatures(blob) for blob in set(tree.values())]
            if any(method.signatures[0] in sets[0] for sets in found):
                classes.append(Novelty.MOVED)
            elif any(method.signatures[kind] in sets[kind] for sets in found for kind in (1, 2)):
                classes.append(Novelty.RENAMED)
    order = (Novelty.REFORMATTED, Novelty.MODIFIED, Novelty.MOVED, Novelty.RENAMED, Novelty.ADDED)
    return min(classes, key=order.index)


def functions_of(raw: bytes) -> list[Function] | None:
    """Return the functions of a file in source order, None when it does not parse."""
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
        text = raw.decode("utf-8" if encoding == "utf-8-sig" else encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(raw)
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        return None
    source = text.encode("utf-8")
    starts = [0, *(found.end() for found in LINE_END.finditer(source))]
    bom = len("\ufeff".encode()) if text.startswith("\ufeff") else 0

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + column + (bom if line == 1 else 0)

    found = []
    for node, name, nested in walk(module, "", False):
        start = offset(node.lineno, node.col_offset)
        if node.decorator_list:
            first = node.decorator_list[0]
            start = source.rindex(b"@", 0, offset(first.lineno, first.col_offset))
        end = offset(node.end_lineno or 0, node.end_col_offset or 0)
        line_start = max(at for at in starts if at <= start)
        signatures = signatures_of(source[line_start:end], len(source[line_start:start].decode()))
        shift = [start, end] if source == raw else [_raw_offset(source, at, encoding) for at in (start, end)]
        found.append(Function(name, shift[0], shift[1], nested, source[start:end], signatures))
    return sorted(found, key=lambda item: (item.start, -item.end))


def _raw_offset(source: bytes, at: int, encoding: str) -> int:
    return len(source[:at].decode("utf-8").encode(encoding))


AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


def walk(node: ast.AST, prefix: str, nested: bool) -> Iterator[tuple[AnyFunction, str, bool]]:
    """Yield every function below a node with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, AnyFunction):
            name = prefix + child.name
            yield child, name, nested
            yield from walk(child, f"{name}.<locals>.", True)
        elif isinstance(child, ast.ClassDef):
            yield from walk(child, f"{prefix}{child.name}.", nested)
        elif not isinstance(child, ast.expr):
            yield from walk(child, prefix, nested)


_SIGNATURES: dict[bytes, tuple[bytes, bytes, bytes]] = {}


def signatures_of(lines: bytes, column: int) -> tuple[bytes, bytes, bytes]:
    """Return the token digests of a function from its lines; it starts at a column of the first one."""
    key = hashlib.sha256(b"%d:" % column + lines).digest()
    if key not in _SIGNATURES:
        # Form feeds in the indentation reset the column; blanks would not.
        text = LINE_END.sub(b"\n", lines).decode("utf-8").removeprefix("\ufeff")
        text = text.lstrip(" \t\f") if column == 0 else text
        blank = text[: len(text) - len(text.lstrip(" \t\f"))]
        own_indent = blank.rsplit("\f", 1)[-1]
        wrapped = ("if 1:\n" if own_indent else "") + own_indent + text[len(blank) :] + "\n"
        _SIGNATURES[key] = _digests(list(_significant(wrapped)))
    return _SIGNATURES[key]


def _significant(text: str) -> Iterator[str]:
    """Yield the texts of a function's tokens and markers of its structure, the docstring left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ast.parse(text)
    function = next(node for node in ast.walk(module) if isinstance(node, AnyFunction))
    lines = text.split("\n")
    skip = _docstring_range(function, lines)
    depths = dict(_statement_depths(function, lines, 0))
    wrapped = text.startswith("if 1:\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in NO_TOKENS or (wrapped and token.start[0] == 1) or skip[0] <= token.start < skip[1]:
            continue
        if token.start in depths:
            yield f"\n{depths[token.start]}"
        yield token.string


def _statement_depths(node: ast.AST, lines: Sequence[str], depth: int) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the (line, character) of each statement below a node and the number of statements around it.

    That is the block structure, whether a block of one statement stands on its header's line or on its own.
    """
    for child in ast.iter_child_nodes(node):
        inside = depth
        if isinstance(child, ast.stmt):
            inside = depth + 1
            yield (child.lineno, len(lines[child.lineno - 1].encode()[: child.col_offset].decode())), inside
        yield from _statement_depths(child, lines, inside)


def _docstring_range(function: AnyFunction, lines: list[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the docstring statement's (line, character) range, an empty one without a docstring."""
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is None:
        return (0, 0), (0, 0)

    def character(line: int, column: int) -> int:
        return len(lines[line - 1].encode()[:column].decode())

    start = (first.lineno, character(first.lineno, first.col_offset))
    end_line = first.end_lineno or first.lineno
    return start, (end_line, character(end_line, first.end_col_offset or 0))


def _digests(tokens: list[str]) -> tuple[bytes, bytes, bytes]:
    """Return the three digests of a token sequence."""
    name_at = tokens.index("def") + 1
    own = tokens[name_at]
    at_definition = [*tokens[:name_at], "\n?", *tokens[name_at + 1 :]]
    everywhere = ["\n?" if token == own else token for token in tokens]
    return _digest(tokens), _digest(at_definition), _digest(everywhere)


def _digest(tokens: Iterable[str]) -> bytes:
    return hashlib.sha256("\0".join(tokens).encode("utf-8", "surrogatepass")).digest()
