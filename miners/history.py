"""The history outside the window: which definitions stood there, to tell code that comes back from new code.

Old blobs are too many to parse: git shows the lines that each old commit added or removed, and those that begin a
definition are remembered by digest. A method of the window whose first `def` line stood in the history is then
compared, token by token, with the definitions of the blobs that brought such a line, which hold the first version, and
of those that had it before it was removed, which hold the last one. A commit of the window may have removed it too.
"""

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from miners.git_process import start_git
from schemas.history import HistoricFile
from schemas.records import Exclusion

STAGE = "history"
_DEFINITION = re.compile(rb"[ \t\f]*(?:async[ \t]+)?def[ \t\\]")
# A changed line that begins a definition, a file's blobs, or a commit's id and its parent's: all other lines of the
# output are skipped. The line feed before them is what the engine looks for.
_LINE = re.compile(
    rb"\n(?:(?P<sign>[+-])(?P<definition>[ \t\f]*(?:async[ \t]+)?def[ \t\\][^\n]*)"
    rb"|index (?P<old>[0-9a-f]{40,64})\.\.(?P<blob>[0-9a-f]{40,64})"
    rb"|(?P<commit>[0-9a-f]{40,64}) (?P<parent>[0-9a-f]{40,64})?)"
)
_CHUNK = 1 << 20
_DIGEST_BYTES = 4  # a false match of two lines costs one more comparison and no more
_BATCH = 2_000  # commits of one git process; a commit that ends git costs its batch again


@dataclass(slots=True)
class History:
    """What the old commits of a repository brought and removed."""

    files: list[HistoricFile] = field(default_factory=list)
    """Blobs that brought definitions or had them before they were removed."""
    excluded: list[Exclusion] = field(default_factory=list)
    """Commits that git cannot show."""
    n_commits: int = 0
    """Commits that it has shown."""


def header_digest(line: bytes) -> str:
    """Return the digest of a definition's first line without its white space, 8 hex digits."""
    return blake2b(b"".join(line.split()), digest_size=_DIGEST_BYTES).hexdigest()


def header_of(code: str) -> str | None:
    """Return the digest of the line of a method's code that begins the definition, None without one."""
    lines = code.encode("utf-8", "surrogatepass").splitlines()
    found = next((line for line in lines if _DEFINITION.match(line)), None)
    return None if found is None else header_digest(found)


def merged(files: Iterable[HistoricFile]) -> list[HistoricFile]:
    """Return one row for each commit and blob, sorted by both, with all their headers."""
    headers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for file in files:
        headers[file.repo, file.commit_id, file.blob_id].update(file.headers)
    return [HistoricFile(*place, tuple(sorted(headers[place]))) for place in sorted(headers)]


def read_history(
    git_dir: Path, commit_ids: Sequence[str], repo: str, max_file_bytes: int, signs: bytes = b"+-"
) -> History:
    """Return what each commit brought (sign `+`), and what it removed (`-`) as rows of its parent, which still had it.

    Merges bring and remove nothing here, and files above the limit are not looked into. A commit that git cannot show
    is an exclusion (`commit_unreadable`).
    """
    history = History()
    pending = [list(commit_ids[start : start + _BATCH]) for start in range(0, len(commit_ids), _BATCH)][::-1]
    while pending:
        batch = pending.pop()
        rows = _read(git_dir, batch, max_file_bytes, signs)
        if rows is not None:
            history.n_commits += len(batch)
            history.files.extend(HistoricFile(repo, commit, blob, headers) for commit, blob, headers in rows)
        elif len(batch) > 1:
            middle = len(batch) // 2
            pending += [batch[middle:], batch[:middle]]
        else:
            row_id = f"{repo}@{batch[0]}"
            history.excluded.append(Exclusion(row_id, STAGE, "commit_unreadable", "git cannot show its changes"))
    return history


def _read(
    git_dir: Path, commit_ids: Sequence[str], max_file_bytes: int, signs: bytes
) -> list[tuple[str, str, tuple[str, ...]]] | None:
    """Return (commit, blob, header digests) of the commits of one git process; None when git gives up."""
    with tempfile.TemporaryFile() as ids:
        ids.write("".join(f"{commit_id}\n" for commit_id in commit_ids).encode())
        ids.seek(0)
        process = start_git(
            git_dir, "-c", f"core.bigFileThreshold={max_file_bytes}", "diff-tree", "--stdin", "--root", "-r", "-p",
            "--format=%H %P", "--unified=0", "--no-renames", "--full-index", "--no-color", "--no-ext-diff",
            "--no-textconv", "--diff-algorithm=myers", "--", "*.py", stdin=ids, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with process:
            rows = _parse(_chunks(process), signs)
        return rows if process.returncode == 0 else None


def _chunks(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield a process's output in pieces of whole lines, each behind a line feed."""
    rest = b"\n"
    while process.stdout is not None and (chunk := process.stdout.read(_CHUNK)):
        whole, end, last = (rest + chunk).rpartition(b"\n")
        yield whole + end
        rest = b"\n" + last
    yield rest


def _parse(chunks: Iterator[bytes], signs: bytes) -> list[tuple[str, str, tuple[str, ...]]]:
    commit = parent = old = blob = ""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for chunk in chunks:
        for match in _LINE.finditer(chunk):
            if match["definition"]:
                if match["sign"] in signs:
                    place = (commit, blob) if match["sign"] == b"+" else (parent, old)
                    found[place].append(header_digest(match["definition"]))
            elif match["blob"]:
                old, blob = match["old"].decode(), match["blob"].decode()
            else:
                commit, parent = match["commit"].decode(), (match["parent"] or b"").decode()
    return [(commit, blob, tuple(dict.fromkeys(headers))) for (commit, blob), headers in found.items()]
