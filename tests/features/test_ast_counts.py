"""Counts of the tree, against a walk written the plain way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_sitter import Node

from features.ast_counts import AstCounts, count_nodes
from miners.syntax import PYTHON, parse
from tests.features.golden import GOLDEN

CODES = [code for code, _ in GOLDEN.values()]


def counted_plainly(root: Node) -> AstCounts:
    """Count by visiting every node of the tree with its level."""
    seen: list[tuple[Node, int]] = []
    todo = [(root, 1)]
    while todo:
        node, level = todo.pop()
        seen.append((node, level))
        todo.extend((child, level + 1) for child in node.children)
    return AstCounts(
        n_ast_nodes=len(seen) - 1,
        n_ast_levels=max(level for _, level in seen),
        n_ast_errors=sum(node.type == "ERROR" for node, _ in seen),
        n_ast_missing=sum(node.is_missing for node, _ in seen),
        n_identifiers=len({node.text for node, _ in seen if node.type == "identifier"}),
    )


@pytest.mark.parametrize("code", CODES, ids=GOLDEN.keys())
def test_counts_equal_a_plain_walk(code: str) -> None:
    tree = parse(code.encode())
    assert count_nodes(tree)[0] == counted_plainly(tree.root_node)


@given(
    st.sampled_from(CODES), st.integers(0, 400), st.sampled_from(["", "$", "?", "(", "{", '"', "'", ":", "\n", "  "])
)
def test_counts_of_damaged_code_equal_a_plain_walk(code: str, place: int, text: str) -> None:
    at = place % (len(code) + 1)
    tree = parse((code[:at] + text + code[at + 1 :]).encode())
    assert count_nodes(tree)[0] == counted_plainly(tree.root_node)


def test_empty_code_has_a_root_only() -> None:
    assert count_nodes(parse(b""))[0] == AstCounts(0, 1, 0, 0, 0)


def test_an_identifier_counts_once_whatever_it_names() -> None:
    counts, _ = count_nodes(parse(b"def f(x, y=x):\n    x.y = f(x=x)\n    print(match)\n"))
    # f, x, y, print, match: attribute, keyword argument, soft keyword as a name alike
    assert counts.n_identifiers == 5


def test_errors_inside_errors_count_each() -> None:
    # (ERROR a = (ERROR (ERROR $)) b = (ERROR ?))
    counts, _ = count_nodes(parse(b"def odd():\n    a = $\n    b = ?"))
    assert (counts.n_ast_errors, counts.n_ast_missing) == (4, 0)


def test_a_missing_token_is_no_error_node() -> None:
    counts, _ = count_nodes(parse(b"def f(:\n    return 1"))
    assert (counts.n_ast_errors, counts.n_ast_missing) == (0, 1)


def test_landmarks_are_in_source_order() -> None:
    code = (
        b"def f(x):\n"
        b"    def g(): return f'{x}' 'y'\n"
        b"    match x:\n"
        b"        case 1: pass\n"
        b"        case 2: pass\n"
        b"    return 'z'"
    )
    _, landmarks = count_nodes(parse(code))
    assert [node.start_byte for node in landmarks.functions] == [0, code.index(b"def g")]
    assert [node.text for node in landmarks.cases] == [b"case 1: pass", b"case 2: pass"]
    assert [node.text for node in landmarks.strings] == [b"f'{x}'", b"'y'", b"'z'"]
    assert [node.text for node in landmarks.interpolations] == [b"{x}"]


def test_five_thousand_nested_brackets_are_counted() -> None:
    counts, _ = count_nodes(parse(b"def f():\n    return " + b"(" * 5_000 + b"1" + b")" * 5_000))
    # module, function, block, return, the brackets, the number
    assert counts.n_ast_levels == 4 + 5_000 + 1
    assert counts.n_ast_errors == 0


def test_the_only_anonymous_nodes_with_children_are_those_of_comparisons() -> None:
    kinds = range(PYTHON.id_for_node_kind("module", True) or 0, PYTHON.node_kind_count)
    unnamed = {PYTHON.node_kind_for_id(kind) for kind in kinds if not PYTHON.node_kind_is_named(kind)}
    visible = {PYTHON.node_kind_for_id(kind) for kind in kinds if PYTHON.node_kind_is_visible(kind)}
    assert unnamed & visible == {"not in", "is not"}


@pytest.mark.parametrize(
    ("code", "levels"),
    [
        ("def f(a): a in a", 6),
        ("def f(a): a not in a", 7),
        ("def f(a): (a is # no\n not a)", 8),
        ("def f(a): (a not\\\n in a)", 8),
    ],
)
def test_two_word_operators_are_a_level_of_their_own(code: str, levels: int) -> None:
    counts, _ = count_nodes(parse(code.encode()))
    assert counts.n_ast_levels == levels
