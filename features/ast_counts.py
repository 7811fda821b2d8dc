"""Counts of the tree-sitter tree: nodes, levels, errors and identifiers, in one cursor pass.

The tree is the one of `code` parsed alone, its root (`module`) counted as a level but not as a node; anonymous nodes
(keywords, operators, brackets) and comments count. Line ends: a lone CR is read as LF.
"""

from dataclasses import dataclass

from tree_sitter import Node, Tree

from miners.syntax import PYTHON


def _kind(name: str) -> int:
    """Return the grammar's number of a named node kind."""
    number = PYTHON.id_for_node_kind(name, True)
    if number is None:
        raise ValueError(f"the Python grammar has no node kind {name!r}; this version is not supported")
    return number


_IDENTIFIER = _kind("identifier")
# Nodes that the software metrics need; collected here so that the tree is walked once.
_LANDMARKS = {_kind(name): name for name in ("function_definition", "case_clause", "string", "interpolation")}


@dataclass(frozen=True, slots=True)
class AstCounts:
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


@dataclass(frozen=True, slots=True)
class Landmarks:
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
    """Return the tree's counts and landmarks."""
    root = tree.root_node
    identifiers: set[bytes | None] = set()
    landmarks: list[tuple[str, Node]] = []
    cursor = tree.walk()
    # Bound once: this loop runs for every node of every method, and look-ups would be a third of its time.
    down, forward, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    depth = levels = 1
    node: Node | None = root
    while node is not None:
        kind = node.kind_id
        if kind == _IDENTIFIER:
            identifiers.add(node.text)
        elif kind in _LANDMARKS:
            landmarks.append((_LANDMARKS[kind], node))
        if down():
            depth += 1
        else:
            if depth > levels:
                levels = depth
            while not forward():
                if not up():
                    break
                depth -= 1
            if depth == 1:
                break
        node = cursor.node
    errors, missing = _count_errors(root)
    counts = AstCounts(root.descendant_count - 1, levels, errors, missing, len(identifiers))
    return counts, _grouped(landmarks)


def _grouped(found: list[tuple[str, Node]]) -> Landmarks:
    """Return the landmarks by kind."""
    groups: dict[str, list[Node]] = {name: [] for name in _LANDMARKS.values()}
    for name, node in found:
        groups[name].append(node)
    return Landmarks(*(tuple(groups[name]) for name in _LANDMARKS.values()))


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
