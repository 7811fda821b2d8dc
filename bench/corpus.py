"""Real methods for benchmarks, and realistic near-duplicates of them made by seeded edits."""

import ast
import keyword
import random
import re
import subprocess
import sysconfig
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

_NAME = re.compile(r"\b[a-z_][a-z_0-9]{2,}\b")
_KEYWORDS = frozenset(keyword.kwlist)


def read_functions(count: int, seed: int, repositories: Sequence[Path] = ()) -> list[str]:
    """Return `count` different functions (fewer if there are no more) without docstrings, in a seeded order.

    They come from the heads of git repositories and from the standard library and installed packages.
    """
    found: dict[str, None] = {}
    for source in chain(*(_head_files(path) for path in repositories), _installed_files(seed)):
        if len(found) >= count:
            break
        found.update(dict.fromkeys(_functions_of(source)))
    functions = list(found)
    random.Random(seed).shuffle(functions)
    return functions[:count]


def with_near_duplicates(functions: Sequence[str], count: int, seed: int) -> list[str]:
    """Return the functions and edited copies of them, `count` texts in all, in a seeded order.

    A copy has one to twelve edits, few more often than many: a name is replaced throughout, a line left out, repeated
    or moved, a number changed. So copies lie on both sides of the threshold, as forks and generated code do.
    """
    draw = random.Random(seed)
    texts = list(functions)
    while len(texts) < count:
        text = draw.choice(functions)
        for _ in range(min(12, 1 + int(draw.expovariate(0.4)))):
            text = _edit(text, draw)
        texts.append(text)
    draw.shuffle(texts)
    return texts[:count]


def _edit(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    place = draw.randrange(len(lines))
    kind = draw.randrange(5)
    if kind == 0:
        names = sorted(set(_NAME.findall(text)) - _KEYWORDS)
        if names:
            other = f"{draw.choice(names)}_{draw.choice(names)}"
            return re.sub(rf"\b{draw.choice(names)}\b", other, text)
    if kind == 1:
        return re.sub(r"\d+", lambda _: str(draw.randrange(1_000)), text, count=1)
    if kind == 2 and len(lines) > 3:
        del lines[place]
    elif kind == 3:
        lines.insert(draw.randrange(len(lines) + 1), lines[place])
    else:
        lines.insert(draw.randrange(len(lines)), lines.pop(place))
    return "\n".join(lines)


def _installed_files(seed: int) -> Iterator[str]:
    bases = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    files = sorted({path for base in bases for path in base.rglob("*.py")})
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            yield path.read_text(encoding="utf-8")
        except (ValueError, OSError):
            continue  # test data of the standard library holds files that are no Python


def _head_files(repository: Path) -> Iterator[str]:
    git = ["git", "-C", str(repository)]
    listing = subprocess.run([*git, "ls-tree", "-r", "HEAD"], check=True, capture_output=True, text=True).stdout
    blobs = [line.split()[2] for line in listing.splitlines() if line.startswith("100") and line.endswith(".py")]
    wanted = "".join(f"{blob}\n" for blob in blobs).encode()
    stream = subprocess.run([*git, "cat-file", "--batch"], input=wanted, check=True, capture_output=True).stdout
    place = 0
    while place < len(stream):
        end = stream.index(b"\n", place)
        fields = stream[place:end].split()
        place = end + 1
        if fields[1] == b"missing":
            continue  # a partial clone
        size = int(fields[2])
        yield stream[place : place + size].decode("utf-8", errors="replace")
        place += size + 1


def _functions_of(source: str) -> Iterable[str]:
    """Yield functions and methods with their indentation and docstring removed; none of what is no Python 3."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = source.split("\n")
    scopes: list[ast.Module | ast.ClassDef] = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    for scope in scopes:
        for node in scope.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                kept = lines[node.lineno - 1 : node.end_lineno]
                first = node.body[0]
                if ast.get_docstring(node, clean=False) is not None and first.end_lineno is not None:
                    kept = lines[node.lineno - 1 : first.lineno - 1] + lines[first.end_lineno : node.end_lineno]
                yield textwrap.dedent("\n".join(kept))
