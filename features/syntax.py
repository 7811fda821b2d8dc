"""Counts of the tree and software metrics of a method, from its words where they say the same as its nodes.

Making Python objects of nodes costs most of what `count_nodes` and `measure` do. For nearly all methods only the depth
of the tree has to be asked of it, by a cursor that makes none: the parser has counted its nodes, and its identifiers
and the metrics follow from the words of the text.

The words of an error-free tree's text are its identifiers but for keywords, numbers, prefixes and format specifiers of
strings, by the grammar (tree-sitter-python 0.25, grammar.js and scanner.c): an identifier of ASCII characters is as
long as it can be; what the grammar reserves is never one; a string begins behind letters of `bfrtu` and ends where
`features.lexical` ends it, with the exceptions that are looked for here. tests/features/test_syntax.py compares with
the nodes.
"""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node, Tree

from features.ast_counts import AstCounts, Landmarks, count_nodes, node_kind
from features.complexity import TRIPLE, Metrics, apply_edits, function_edits, measure, string_edits
from features.lexical import STRING, Lexed, lex, tally
from features.parsing import ParsedCode

_IDENTIFIER = node_kind("identifier")
_STRING = node_kind("string")
_STRING_START = node_kind("string_start")
_DEF = node_kind("def", named=False)
_INTERPOLATION = node_kind("interpolation")
_CONVERSION = node_kind("type_conversion")
_SPECIFIER = node_kind("format_specifier")
# grammar.js, `reserved`, but for `async` and `await`, which it makes names again (keyword_identifier).
_RESERVED = frozenset(
    b"False None True and as assert break class continue def del elif else except finally for from global if import in"
    b" is lambda nonlocal not or pass raise return try while with yield".split()
)
# Keywords at some places and names at others: only the tree knows.
_SOFT = {
    word: re.compile(rb"%b(?<!\w%b)(?!\w)" % (word, word))
    for word in b"__future__ async await exec match print type".split()
}
_PLAIN_HEADS = (b"def ", b"async def ")
# scanner.c reads any row of these letters before a quote as the string's prefix.
_PREFIX_LETTERS = b"bBfFrRtTuU"
_PREFIXED = re.compile(rb"\$(?<=[bBfFrRtTuU]\$)")
_FORMATTED = frozenset(b"fFtT")
_WORD = re.compile(rb"\w+")
# The exponent or imaginary unit of a float without digits behind its point is a word for `features.lexical`.
_LETTER_BEHIND_POINT = re.compile(rb"\.(?<=[0-9_]\.)[eEjJ]")
# The last byte of each lies in the opening of a string that the metrics look at, in a `def`, or in something else. Each
# begins with a literal character, so that `re` skips to it.
_LANDMARKS = (
    re.compile(rb'"(?:(?<=[fFtT]")|"")'),
    re.compile(rb"'(?:(?<=[fFtT]')|'')"),
    re.compile(rb"def(?= )(?<!\wdef)"),
)


def measure_syntax(parsed: ParsedCode) -> tuple[AstCounts, Metrics]:
    """Return the counts of a method's tree and its software metrics."""
    root = parsed.tree.root_node
    found = None if root.has_error else _from_words(parsed, root)
    if found is None:
        counts, landmarks = count_nodes(parsed.tree)
        return counts, measure(parsed, landmarks)
    return found


def count_levels(tree: Tree) -> int:
    """Return the number of nodes on the longest root-to-leaf path."""
    cursor = tree.walk()  # its methods are called by name: CPython 3.11 makes such calls faster than bound ones
    level = deepest = 1
    while True:
        while cursor.goto_first_child():
            level += 1
        if level > deepest:
            deepest = level
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return deepest
            level -= 1


def _from_words(parsed: ParsedCode, root: Node) -> tuple[AstCounts, Metrics] | None:
    """Return the counts of a method without syntax errors; None where nodes are needed for them."""
    source = parsed.source
    name = parsed.definition.function.child_by_field_name("name")
    if name is None or b"\r" in source or b"\0" in source or b"\\N{" in source:
        return None  # the grammar reads line ends, NUL, and quotes inside the braces otherwise than `lex`
    begin = name.start_byte
    lexed, n_left_out, vocabulary = _read(parsed, root, begin)
    if vocabulary is not None and (head := source[:begin]) not in _PLAIN_HEADS:
        of_head = _vocabulary(lex(head))
        vocabulary = None if of_head is None else vocabulary | of_head
    if vocabulary is None or b"case" in vocabulary:
        return None
    if not vocabulary.isdisjoint(_SOFT):
        vocabulary = {word for word in vocabulary if word not in _SOFT or _is_name(word, source, root)}
    # What precedes ":" begins with a digit.
    n_identifiers = len([word for word in vocabulary if word > b":" and word not in _RESERVED])
    found = tally(lexed)
    counts = AstCounts(root.descendant_count - 1, count_levels(parsed.tree), 0, 0, n_identifiers)
    return counts, Metrics(found.n_lines, 1 + found.n_conditions, found.n_tokens + n_left_out)


def _read(parsed: ParsedCode, root: Node, begin: int) -> tuple[Lexed, int, set[bytes] | None]:
    """Return the text from an offset on that the metrics count, the tokens left out of it, and the words that may be
    names; None for them when the grammar may read the text otherwise."""
    text, n_left_out = _without_docstring(parsed, begin)
    if b'f"' in text or b"f'" in text or b'"""' in text or b"'''" in text or b"def " in text:
        return _read_around(parsed.source, begin, _landmarks(parsed.source, begin, root))
    lexed = lex(text)
    return lexed, n_left_out, None if b"def" in lexed.vocabulary else _vocabulary(lexed)


def _read_around(source: bytes, begin: int, landmarks: Landmarks) -> tuple[Lexed, int, set[bytes] | None]:
    """Return what `_read` does, for nested functions, strings with interpolations and strings with three quotes."""
    functions, strings = function_edits(landmarks), list(string_edits(source, landmarks))
    text, n_left_out = apply_edits(source, begin, functions + strings)
    lexed = whole = lex(text)
    if functions:
        whole = lex(apply_edits(source, begin, strings)[0])
    is_known = whole.words.count(b"def") == len(functions)
    return lexed, n_left_out, _vocabulary(whole, _no_names(source, landmarks)) if is_known else None


def _without_docstring(parsed: ParsedCode, begin: int) -> tuple[bytes, int]:
    """Return a method's text from `begin` on without a triple-quoted docstring, and how many tokens that is."""
    source, docstring = parsed.source, parsed.definition.docstring
    if docstring is not None:
        start, end = docstring.start_byte, docstring.end_byte
        if source[end - 3 : end] in TRIPLE and docstring.child(0).kind_id == _STRING:
            prefixed = source[start] not in b"\"'"
            return b"%b %b" % (source[begin:start], source[end:]), 1 + prefixed
    return source[begin:], 0


def _landmarks(source: bytes, begin: int, root: Node) -> Landmarks:
    """Return nested functions, and of the strings those with interpolations or three quotes, from an offset on."""
    functions: list[Node] = [root]  # in place of the method's own
    strings: list[Node] = []
    kinds = {_STRING_START: strings, _DEF: functions}
    for end in [found.end() for pattern in _LANDMARKS for found in pattern.finditer(source, begin)]:
        node = root.descendant_for_byte_range(end - 1, end)
        if node is not None and (kept := kinds.get(node.kind_id)) is not None and node.parent is not None:
            kept.append(node.parent)
    interpolations = [part for string in strings for part in string.children if part.kind_id == _INTERPOLATION]
    return Landmarks(tuple(functions), (), tuple(strings), tuple(interpolations))


def _no_names(source: bytes, landmarks: Landmarks) -> list[bytes]:
    """Return the words of strings with interpolations that are prefixes, conversions or in format specifiers."""
    openings = {string.children[0] for item in landmarks.interpolations if (string := item.parent) is not None}
    found = [prefix for item in openings if (prefix := source[item.start_byte : item.end_byte].rstrip(b"\"'"))]
    for interpolation in landmarks.interpolations:
        found.extend(_format_words(source, interpolation))
    return found


def _format_words(source: bytes, interpolation: Node) -> Iterator[bytes]:
    """Yield the words of an interpolation's conversion and format specifier, those of its expressions left out."""
    for part in interpolation.named_children:
        if part.kind_id == _CONVERSION:
            yield from _WORD.findall(source, part.start_byte, part.end_byte)
        elif part.kind_id == _SPECIFIER:
            position = part.start_byte
            for nested in part.named_children:
                yield from _WORD.findall(source, position, nested.start_byte)
                yield from _format_words(source, nested)
                position = nested.end_byte
            yield from _WORD.findall(source, position, part.end_byte)


def _vocabulary(lexed: Lexed, no_names: Sequence[bytes] = ()) -> set[bytes] | None:
    """Return the words of a text that may be names; None when the grammar may read them otherwise."""
    code, words, vocabulary, literals = lexed
    if not code.isascii() or b"`" in code or b"'" in code or b'"' in code or _LETTER_BEHIND_POINT.search(code):
        return None
    if literals and _PREFIXED.search(code) is not None:
        prefixes = _prefixes(code, [literal for literal in literals if not literal.startswith(b"#")])
        if prefixes is None:
            return None
        no_names = [*no_names, *prefixes]
    if no_names:  # some of them may be names elsewhere
        vocabulary = vocabulary - {word for word in set(no_names) if words.count(word) == no_names.count(word)}
    return vocabulary


def _prefixes(code: bytes, strings: Sequence[bytes]) -> list[bytes] | None:
    """Return the prefixes of strings; None when one may have interpolations, which `lex` does not know."""
    found = []
    for before, string in zip(code.split(STRING), strings, strict=False):
        rest = before.rstrip(_PREFIX_LETTERS)
        if len(rest) < len(before) and not rest[-1:].isalnum() and rest[-1:] != b"_":
            found.append(prefix := before[len(rest) :])
            if b"{" in string and not _FORMATTED.isdisjoint(prefix):
                return None
    return found


def _is_name(word: bytes, source: bytes, root: Node) -> bool:
    """Return whether a word is an identifier at any of its places."""
    for found in _SOFT[word].finditer(source):
        node = root.descendant_for_byte_range(found.start(), found.end())
        if node is not None and node.kind_id == _IDENTIFIER:
            return True
    return False
