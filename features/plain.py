"""Counts and metrics read from a method's words: few nodes of the tree become Python objects.

Where the grammar found no error and all is ASCII, a word outside strings and comments is a keyword, a number, the
prefix of a string or an identifier, and the text tells where the nodes are that the metrics look at. Code whose words
do not tell (`print` is a name or a keyword) is counted node by node, with the same results
(tests/features/test_plain.py).
"""

import keyword
import re
from collections.abc import Iterator

from tree_sitter import Node

from features.ast_counts import AstCounts, Landmarks, count_nodes
from features.complexity import Metrics, measure, measure_and_read
from features.lexical import Words, read, split_words
from features.parsing import ParsedCode
from miners.syntax import PYTHON

_GRAMMAR_WORDS = frozenset(
    name.encode()
    for number in range(PYTHON.node_kind_count)
    if PYTHON.node_kind_is_visible(number)
    and not PYTHON.node_kind_is_named(number)
    and (name := PYTHON.node_kind_for_id(number))
    and name.isidentifier()
)
# CPython reserves them, the grammar takes them for names where they fit nothing else, without an error.
_NAMES_TOO = frozenset((b"async", b"await"))
_KEYWORDS = frozenset(word.encode() for word in keyword.kwlist) - _NAMES_TOO
# Keywords where a statement begins and something follows that an assignment's target does not go on with; `case` and
# `_` are keywords in a match statement only.
_STATEMENT_WORDS = frozenset((b"match", b"type"))
_STATEMENT = re.compile(rb"[\n;:][\s\\]*(?:match|type)\b[\s\\]*[^\s\\,)=:\w]|[\n;:][\s\\]*(?:match|type)[\s\\]+\w")
_MATCH_ONLY = frozenset((b"case", b"_"))
# A keyword for certain: a name followed by a word, the second no operator, is an error.
_AWAITED = re.compile(rb"\bawait +(?!(?:if|else|for|in|is|not|and|or|as|async|from|import)\b)[A-Za-z_]")
# Words that need the tree.
_NEED_TREE = (_GRAMMAR_WORDS | _NAMES_TOO) - (_KEYWORDS | _STATEMENT_WORDS | _MATCH_ONLY | {b"await"})
_PREFIXED = re.compile(rb'\b([bBfFrRtTuU][bBfFrRtT]?)"')
_FORMATTED = re.compile(rb'\b(?:[fFtT][rR]?|[rR][fFtT])"')
# Where nodes may begin that the metrics look at: nested functions, cases, strings with interpolations or three quotes.
_QUOTES = tuple((prefix + quote).encode() for prefix in ("f", "F", "fr", "Fr", "fR", "FR") for quote in "\"'")
_SIGNS = (b"def", b"case", b'"""', b"'''", *_QUOTES)
# Begins with a literal character, so that `re` skips to it.
_ANY_PREFIX = re.compile(rb'"(?:(?<=\b[bBfFrRtTuU]")|(?<=\b[bBfFrRtT][bBfFrRtT]"))')
# A float's point with the letter of its exponent or suffix right behind: that letter would look like a name.
_POINT_AND_LETTER = re.compile(rb"\.(?<=[0-9]\.)[eEjJlL]")
_HEADS = (b"def ", b"async def ")
_AFTER_DIGITS = b":"  # in ASCII; words of letters and underscores are greater


def count_and_measure(parsed: ParsedCode) -> tuple[AstCounts, Metrics]:
    """Return the counts of a method's tree and its software metrics."""
    found = read_plain(parsed)
    if found is None:
        counts, landmarks = count_nodes(parsed.tree)
        return counts, measure(parsed, landmarks)
    return found


def read_plain(parsed: ParsedCode) -> tuple[AstCounts, Metrics] | None:
    """Return counts and metrics of code whose words tell them, None for other code."""
    source, root = parsed.source, parsed.tree.root_node
    name = parsed.definition.function.child_by_field_name("name")
    if name is None or not source.isascii() or b"\r" in source or root.has_error:
        return None
    landmarks = _find_landmarks(source, name.end_byte, parsed)
    if landmarks is None:
        return None
    metrics, words = measure_and_read(parsed, landmarks)
    names = _names(words)
    if names is not None and (head := source[: name.start_byte]) not in _HEADS:
        others = _names_before(head)
        names = None if others is None else names | others
    if names is None:
        return None
    return AstCounts(root.descendant_count - 1, _count_levels(root), 0, 0, len(names)), metrics


def _find_landmarks(source: bytes, begin: int, parsed: ParsedCode) -> Landmarks | None:
    """Return the nodes behind the offset `begin` that the metrics look at; None when the text does not tell.

    Of the strings, those are left out that are in one line and have no interpolation.
    """
    find = parsed.tree.root_node.descendant_for_byte_range
    functions, cases, strings, interpolations = [parsed.definition.function], [], [], []
    for start in _occurrences(source, begin):
        token = find(start, start + 1)
        if token is None or (kind := token.type) not in ("def", "case", "string_start", "string_end"):
            continue
        node = token.parent
        if node is None or (kind == "string_end" and token.end_byte == start + 1):
            return None  # a string that begins where another ends
        if kind == "def":
            functions.append(node)
        elif kind == "case":
            cases.append(node)
        elif kind == "string_start" and node not in strings:
            strings.append(node)
            interpolations += [part for part in node.named_children if part.type == "interpolation"]
    if any(map(_has_nested_format, interpolations)):
        return None
    return Landmarks(tuple(functions), tuple(cases), tuple(strings), tuple(interpolations))


def _occurrences(source: bytes, begin: int) -> Iterator[int]:
    """Yield where a sign of a landmark stands; a search for each, since one pattern for all is slow."""
    for sign in _SIGNS:
        start = source.find(sign, begin)
        while start >= 0:
            yield start
            start = source.find(sign, start + 1)


def _has_nested_format(interpolation: Node) -> bool:
    """Return whether a format specifier has an expression with a conversion or specifier of its own."""
    last = interpolation.named_children[-1]
    return last.type == "format_specifier" and any(
        mark in (child.text or b"") for child in last.named_children for mark in (b"!", b":")
    )


def _names(part: Words) -> set[bytes] | None:
    """Return the identifiers among the words of a part of the code; None when they do not tell."""
    text, distinct = part.text, set(part.words)
    if not distinct.isdisjoint(_NEED_TREE) or _POINT_AND_LETTER.search(text):
        return None
    if not distinct.isdisjoint(_STATEMENT_WORDS) and _STATEMENT.search(text):
        return None
    if b"await" in distinct:
        if len(_AWAITED.findall(text)) != part.words.count(b"await"):
            return None
        distinct.remove(b"await")
    if _ANY_PREFIX.search(text) and not distinct.isdisjoint(_PREFIXED.findall(text)):
        distinct.intersection_update(split_words(_PREFIXED.sub(b" ", text)))
    return {word for word in distinct - _KEYWORDS if word > _AFTER_DIGITS}


def _names_before(head: bytes) -> set[bytes] | None:
    """Return the identifiers of decorators; None when words do not tell, as in f-strings."""
    part = read(head.removesuffix(b"def ").removesuffix(b"async "))
    return None if _FORMATTED.search(part.text) else _names(part)


def _count_levels(root: Node) -> int:
    """Return the number of nodes on the longest path from the root to a leaf."""
    cursor = root.walk()
    down, right, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    level = levels = 1
    while True:
        if down():
            level += 1
            if level > levels:
                levels = level
        else:
            while not right():
                if not up():
                    return levels
                level -= 1
