"""Counts of the tree-sitter tree: nodes, levels, errors and identifiers, in one pass.

The tree is the one of `code` parsed alone, its root (`module`) counted as a level but not as a node; anonymous nodes
(keywords, operators, brackets) and comments count. Line ends: a lone CR is read as LF.
"""

import re
from operator import attrgetter
from typing import NamedTuple

from tree_sitter import Node, Tree

from miners.syntax import PYTHON


def node_kind(name: str, *, named: bool = True) -> int:
    """Return the grammar's number of a node kind, of a token's when it is not named."""
    number = PYTHON.id_for_node_kind(name, named)
    if number is None:
        raise ValueError(f"the Python grammar has no node kind {name!r}; this version is not supported")
    return number


_IDENTIFIER = node_kind("identifier")
# tree-sitter numbers the tokens of a grammar before its rules, of which the start rule is the first: a node of a lower
# kind is a leaf.
_FIRST_RULE = node_kind("module")
_start = attrgetter("start_byte")
# The only anonymous nodes that have children, `not in` and `is not`, stand in comparisons; comments may part the words.
_COMPARISON = node_kind("comparison_operator")
_TWO_WORDS = re.compile(rb"\b(?:not(?:\s|\\|#[^\n]*+)++in|is(?:\s|\\|#[^\n]*+)++not)\b")
# Nodes that the software metrics need; collected here so that the tree is walked once.
_LANDMARKS = tuple(node_kind(name) for name in ("function_definition", "case_clause", "string", "interpolation"))


class AstCounts(NamedTuple):
    """The syntax dimension of a data point that comes from the tree."""

    n_ast_nodes: int
    """Nodes, named and anonymous, below the root."""
    n_ast_levels: int
    """Nodes on the longest root-to-leaf path, root counted."""
    n_ast_errors: int
    """ERROR nodes, each one inside another counted too."""
    n_ast_missing: int
    """MISSING nodes: tokens the parser put in."""
    n_identifiers: int
    """Distinct texts of `identifier` nodes."""


class Landmarks(NamedTuple):
    """Nodes that the software metrics look at, each kind in source order."""

    functions: tuple[Node, ...]
    """`function_definition` nodes, the outermost first."""
    cases: tuple[Node, ...]
    """`case_clause` nodes."""
    strings: tuple[Node, ...]
    """`string` nodes, those inside interpolations too."""
    interpolations: tuple[Node, ...]
    """`interpolation` nodes of f-strings."""


def count_nodes(tree: Tree) -> tuple[AstCounts, Landmarks]:
    """Return the tree's counts and landmarks.

    Making Python objects of nodes is most of the cost: every named node below the root becomes one exactly once, all
    children of a node in one call. Anonymous ones are tokens, which count by number alone; what else they may be is
    looked at where there are two-word operators or errors.
    """
    root = tree.root_node
    text = bytes(root.start_byte) + (root.text or b"")  # slices of it cost a third of Node.text
    has_errors = root.has_error
    is_plain = not has_errors and _TWO_WORDS.search(text) is None
    identifiers: set[bytes] = set()
    landmarks: dict[int, list[Node]] = {kind: [] for kind in _LANDMARKS}
    levels, level = 0, [root]
    while level:
        levels += 1
        below = []
        for node in level:
            for child in node.named_children if is_plain else _children(node, has_errors):
                kind = child.kind_id
                if kind >= _FIRST_RULE:
                    below.append(child)
                    if kind in landmarks:
                        landmarks[kind].append(child)
                elif kind == _IDENTIFIER:
                    identifiers.add(text[child.start_byte : child.end_byte])
        if not below and any(node.child_count for node in level):
            levels += 1  # of tokens alone
        level = below
    errors, missing = _count_errors(root)
    counts = AstCounts(root.descendant_count - 1, levels, errors, missing, len(identifiers))
    return counts, Landmarks(*map(_in_source_order, landmarks.values()))


def _children(node: Node, has_errors: bool) -> list[Node]:
    """Return the children of a node, those without a name only where they may have children of their own."""
    return node.children if has_errors or node.kind_id == _COMPARISON else node.named_children


def _in_source_order(nodes: list[Node]) -> tuple[Node, ...]:
    """Return nodes, given level by level, by their start; of two that share it the outer one stays first."""
    if len(nodes) > 1:
        nodes.sort(key=_start)
    return tuple(nodes)


def _count_errors(root: Node) -> tuple[int, int]:
    """Return the numbers of ERROR and of MISSING nodes.

    Only the root's `has_error` is trusted: an ERROR leaf may deny having one.
    """
    errors = missing = 0
    stack = [root] if root.has_error else []
    while stack:
        node = stack.pop()
        errors += node.is_error
        missing += node.is_missing
        stack.extend(node.children)
    return errors, missing
