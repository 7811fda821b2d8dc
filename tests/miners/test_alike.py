"""Definitions that differ in documentation and layout alone: told without a parser, and never told wrongly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miners.alike import same_but_idle
from miners.methods import token_hashes

PLAIN = "def f(a, b=(1, 2)):\n    x = a\n    if x:\n        return b\n    return '# no'"
DOCUMENTED = PLAIN.replace("    x = a", '    """Do it.\n\n    def g(): 1\n    # why\n    """\n    x = a')


def same(one: str, other: str) -> bool:
    """Compare both ways, and with the parser whenever they are said to be the same."""
    found = same_but_idle(one.encode(), other.encode())
    assert found == same_but_idle(other.encode(), one.encode())
    if found:
        assert token_hashes(one.encode(), b"").exact == token_hashes(other.encode(), b"").exact
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PLAIN, PLAIN),
        (PLAIN, DOCUMENTED),
        (DOCUMENTED, DOCUMENTED.replace("Do it", "Do something else")),
        (DOCUMENTED, DOCUMENTED.replace('"""', "'''")),
        (PLAIN, PLAIN.replace("    if", "\n    # why\n  \n    if")),
        (PLAIN, PLAIN.replace("):\n", "):  # why\n    # and why\n    r'''\\d'''  # so\n")),
        ("@d('x')\n@e(\n    1,\n)\n" + PLAIN, "@d('x')\n@e(\n    1,\n)\n" + DOCUMENTED),
        (f"async {PLAIN}", f"async {DOCUMENTED}"),
        ("def f(): return 1", "def f(): return 1"),
        ("def f():\n    'a'\n    'b'", "def f():\n    'c'\n    'b'"),
    ],
)
def test_documentation_blank_and_comment_lines_do_not_count(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PLAIN, PLAIN.replace("x = a", "x = b")),
        (PLAIN, PLAIN.replace("b=(1, 2)", "b=(1, 3)")),
        (PLAIN, PLAIN.replace("# no", "#  no")),
        (PLAIN, PLAIN.replace("        return b\n    return", "        return b\n        return")),
        ("@d\n" + PLAIN, PLAIN),
        ("def f():\n    'a'\n    'b'", "def f():\n    'a'\n    'c'"),
        ("def f():\n    b'a'\n    1", "def f():\n    b'b'\n    1"),
        ("def f():\n    f'a'\n    1", "def f():\n    f'b'\n    1"),
        ("def f():\n    'a'.b\n    1", "def f():\n    'c'.b\n    1"),
        ("def f():\n    'a'; 1", "def f():\n    'c'; 1"),
        ("def f():\n    '\\xg'\n    1", "def f():\n    'c'\n    1"),
        ("def f():\n    x = '''\n# a\n'''", "def f():\n    x = '''\n# b\n'''"),
        ("def f():\n    x = '''\n\n'''", "def f():\n    x = '''\n'''"),
        ("def f():\n    x = 1 + \\\n# a\n    2", "def f():\n    x = 1 + \\\n# b\n    2"),
        ('def f():\n    x = f"{\n# a\n1}"', 'def f():\n    x = f"{\n# b\n1}"'),
        ("@d('''\ndef f():\n    'a'\n''')\ndef f(): 1", "@d('''\ndef f():\n    'b'\n''')\ndef f(): 1"),
    ],
)
def test_everything_else_does(one: str, other: str) -> None:
    assert not same(one, other)


def test_a_docstring_of_several_pieces_is_left_to_the_parser() -> None:
    assert not same("def f(a):\n    'doc'\n    'e' 'f'\n    return 1", "def f(a):\n    'e' 'f'\n    return 1")
    assert not same("def f(a):\n    'doc'\n    ('e')\n    return 1", "def f(a):\n    ('e')\n    return 1")


@pytest.mark.parametrize("unclear", ["def f(\ta): 1", "def f():\r\n    1", "def f[T](a): 1", "def f(a=(((1)))): 1"])
def test_what_is_not_clear_is_left_to_the_parser(unclear: str) -> None:
    assert not same(unclear, unclear)


LINES = [
    "'doc'",
    '"""a\n    b"""',
    "# c",
    "",
    "x = 1",
    "x = '#'",
    "if x:\n        pass",
    "    # d",
    "y = f'{x}'",
    "'e' 'f'",
    "('g')",
]


@given(st.lists(st.sampled_from(LINES), max_size=4), st.lists(st.sampled_from(LINES), max_size=4))
def test_never_the_same_with_other_tokens(mine: list[str], its: list[str]) -> None:
    one, other = ("".join(f"    {line}\n" for line in lines) + "    return 1" for lines in (mine, its))
    same("def f(a):\n" + one, "def f(a):\n" + other)
