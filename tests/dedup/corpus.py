"""Real functions for the tests, and the plain brute-force reading of the data contract as their oracle."""

import ast
import random
import sysconfig
import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from dedup.jaccard import TokenSets, token_sets
from dedup.tokens import load_tokenizer
from tests.dedup.by_rows import DedupRow

START = datetime(2024, 1, 1, tzinfo=UTC)
# Families of similar functions live in these; the rest are of many kinds.
MODULES = (
    "argparse", "ast", "asyncio/streams", "asyncio/base_events", "calendar", "codecs", "collections/__init__",
    "configparser", "csv", "_pydecimal", "difflib", "encodings/cp1250", "encodings/cp1251", "encodings/cp1252",
    "encodings/cp1253", "encodings/utf_16_le", "encodings/utf_16_be", "encodings/latin_1", "fractions", "ftplib",
    "http/client", "http/cookiejar", "inspect", "ipaddress", "json/encoder", "logging/__init__", "mailbox",
    "multiprocessing/managers", "pathlib", "pickle", "pickletools", "socket", "ssl", "statistics", "subprocess",
    "tarfile", "threading", "tkinter/__init__", "tkinter/ttk", "turtle", "typing", "unittest/mock", "urllib/request",
    "uuid", "weakref", "xml/dom/minidom", "xmlrpc/client", "zipfile",
)  # fmt: skip


@cache
def stdlib_functions() -> tuple[str, ...]:
    """Return the functions of some standard-library modules, methods included, docstrings removed, in file order."""
    functions: list[str] = []
    for name in MODULES:
        path = Path(sysconfig.get_path("stdlib")) / f"{name}.py"
        if path.is_file():
            functions += functions_of(path.read_text(encoding="utf-8"))
    return tuple(functions)


def functions_of(source: str) -> list[str]:
    """Return the unparsed functions and methods of a module without docstrings (ast is an oracle, no product code)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    scopes = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    found = []
    for scope in scopes:
        for node in scope.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1:
                    node.body = node.body[1:]
                found.append(ast.unparse(node) + "\n")
    return found


def real_functions(count: int, seed: int = 0) -> list[str]:
    """Return a seeded sample of the standard library's functions."""
    functions = sorted(stdlib_functions())
    return random.Random(seed).sample(functions, min(count, len(functions)))


def rows_of(texts: Sequence[str], *, seed: int = 0) -> list[DedupRow]:
    """Return rows with row ids `m0000`, `m0001` ... and shuffled dates, some of them equal."""
    hours = random.Random(seed).choices(range(max(1, len(texts) // 2)), k=len(texts))
    return [
        DedupRow(f"m{number:04}", START + timedelta(hours=hour), text)
        for number, (text, hour) in enumerate(zip(texts, hours, strict=True))
    ]


def sets_of(texts: Sequence[str]) -> TokenSets:
    """Return the token sets of texts by the shipped tokenizer."""
    tokenizer = load_tokenizer()
    return token_sets(tokenizer.encode_batch(texts), tokenizer.vocab_size)


def sets_from(groups: Iterable[Iterable[int]], vocab_size: int = 1_000) -> TokenSets:
    """Return token sets from plain Python sets of ids."""
    return token_sets([np.array(sorted(group), np.int32) for group in groups], vocab_size)


def jaccard(one: frozenset[int], other: frozenset[int]) -> Fraction:
    """Return the Jaccard similarity by its definition."""
    return Fraction(len(one & other), len(one | other))


def brute_force(groups: Sequence[frozenset[int]], threshold: Fraction) -> dict[tuple[int, int], float]:
    """Return all pairs at or above the threshold and their similarity, by comparing each with each."""
    found = {}
    for (a, one), (b, other) in combinations(enumerate(groups), 2):
        common = len(one & other)
        union = len(one) + len(other) - common
        if common and common * threshold.denominator >= threshold.numerator * union:
            found[a, b] = common / union
    return found


def components(n_items: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the smallest item of each item's connected component, by a plain union of sets."""
    group = [{item} for item in range(n_items)]
    for a, b in pairs:
        if group[a] is not group[b]:
            group[a] |= group[b]
            for item in group[b]:
                group[item] = group[a]
    return [min(members) for members in group]
