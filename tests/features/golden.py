"""Small methods with the expected value of every computed column.

Checked by hand: all columns of one_liner, empty, docstring_only and annotated, the metrics of most others. Node counts
of all are checked against a plain tree walk, metrics against lizard, in the tests beside this file.
"""

import sys

from tests.features.shape import Expected

# The keys name what the method is about; each value is the code and what its columns must hold.
GOLDEN: dict[str, tuple[str, Expected]] = {
    "one_liner": (
        "def one(): return 1",
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def one():",
            n_ast_nodes=11,
            n_ast_levels=5,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=1,
            words=(4, 4, 3),
            token_count=6,
            nloc=1,
            complexity=1,
            parses=True,
        ),
    ),
    "empty": (
        ("def nothing():\n    pass"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def nothing():",
            n_ast_nodes=10,
            n_ast_levels=5,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=1,
            words=(3, 3, 5),
            token_count=5,
            nloc=2,
            complexity=1,
            parses=True,
        ),
    ),
    "docstring_only": (
        ("def promise():\n    '''Do it later.'''"),
        Expected(
            docstring="Do it later.",
            doc_language="en",
            doc_words=(3, 3, 2),
            signature="def promise():",
            n_ast_nodes=13,
            n_ast_levels=6,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=1,
            words=(5, 5, 7),
            token_count=5,
            nloc=1,
            complexity=1,
            parses=True,
        ),
    ),
    "annotated": (
        (
            "@cache\n"
            "@app.route('/x')\n"
            "async def load(\n"
            "    url: str,\n"
            "    *,\n"
            "    retries: int = 3,\n"
            ") -> dict[str, int]:\n"
            '    """Load a page and parse it.\n'
            "\n"
            "    Tries again on errors.\n"
            '    """\n'
            "    # go\n"
            "    async with open(url) as page:\n"
            "        return await page.json()"
        ),
        Expected(
            docstring="Load a page and parse it.\n\nTries again on errors.",
            doc_language="en",
            doc_words=(10, 10, 8),
            signature="async def load(\n    url: str,\n    *,\n    retries: int = 3,\n) -> dict[str, int]:",
            n_ast_nodes=91,
            n_ast_levels=11,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=12,
            words=(37, 36, 64),
            token_count=40,
            nloc=7,
            complexity=1,
            parses=True,
        ),
    ),
    "nested": (
        (
            "def outer(items):\n"
            "    def keep(item):\n"
            "        return item and item > 0\n"
            "\n"
            "    return [x for x in items if keep(x)]"
        ),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def outer(items):",
            n_ast_nodes=46,
            n_ast_levels=9,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=5,
            words=(18, 15, 30),
            token_count=20,
            nloc=3,
            complexity=3,
            parses=True,
        ),
    ),
    "tabs_crlf": (
        ("def tabs(n):\r\n\tif n:\r\n\t\treturn -n\r\n\treturn n"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def tabs(n):",
            n_ast_nodes=22,
            n_ast_levels=8,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=2,
            words=(8, 7, 4),
            token_count=13,
            nloc=4,
            complexity=2,
            parses=True,
        ),
    ),
    "form_feed": (
        ("def page():\n    a = 1\n\x0c\n    return a"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def page():",
            n_ast_nodes=16,
            n_ast_levels=6,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=2,
            words=(7, 6, 12),
            token_count=9,
            nloc=3,
            complexity=1,
            parses=True,
        ),
    ),
    "unicode": (
        ("def größe(ширина, 高):\n    return ширина * 高"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def größe(ширина, 高):",
            n_ast_nodes=17,
            n_ast_levels=6,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=3,
            words=(7, 7, 9),
            token_count=11,
            nloc=2,
            complexity=1,
            parses=True,
        ),
    ),
    "f_string": (
        ("def show(d):\n    return f\"a{d['k']!r:>{d['w']}}b\" f'{1 if d else 2}'"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def show(d):",
            n_ast_nodes=54,
            n_ast_levels=12,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=2,
            words=(9, 9, 11),
            token_count=29,
            nloc=2,
            complexity=2,
            parses=True,
        ),
    ),
    "pep695": (
        ("def first[T: (int, str)](xs: list[T]) -> T:\n    return xs[0]"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def first[T: (int, str)](xs: list[T]) -> T:",
            n_ast_nodes=44,
            n_ast_levels=9,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=6,
            words=(9, 9, 11),
            token_count=26,
            nloc=2,
            complexity=1,
            parses=sys.version_info >= (3, 12),
        ),
    ),
    "match": (
        (
            "def kind(x):\n"
            "    match x:\n"
            "        case [a, *_] if a:\n"
            "            return 1\n"
            "        case _:\n"
            "            return 0"
        ),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def kind(x):",
            n_ast_nodes=45,
            n_ast_levels=11,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=3,
            words=(15, 13, 53),
            token_count=25,
            nloc=6,
            complexity=4,
            parses=True,
        ),
    ),
    "lambda": (
        ("def table(rows):\n    key = lambda r: r[0] or r[1]\n    return {k: v for k, v in rows if k if v}"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def table(rows):",
            n_ast_nodes=53,
            n_ast_levels=9,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=6,
            words=(21, 19, 26),
            token_count=35,
            nloc=3,
            complexity=5,
            parses=True,
        ),
    ),
    "try_finally": (
        (
            "def close(f):\n"
            "    try:\n"
            "        f.close()\n"
            "    except (OSError, ValueError):\n"
            "        pass\n"
            "    else:\n"
            "        done()\n"
            "    finally:\n"
            "        f = None"
        ),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def close(f):",
            n_ast_nodes=53,
            n_ast_levels=10,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=5,
            words=(14, 14, 53),
            token_count=30,
            nloc=9,
            complexity=3,
            parses=True,
        ),
    ),
    "walrus": (
        ("def read(f):\n    while (line := f.readline()) and line != b'':\n        yield line if line else None"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def read(f):",
            n_ast_nodes=44,
            n_ast_levels=10,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=4,
            words=(16, 14, 25),
            token_count=27,
            nloc=3,
            complexity=4,
            parses=True,
        ),
    ),
    "chains": (
        (
            "def check(a, b, c):\n"
            "    for x in a:\n"
            "        if x and b or not c and b:\n"
            "            break\n"
            "        elif x:\n"
            "            continue\n"
            "    assert a and b\n"
            "    with c: ..."
        ),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def check(a, b, c):",
            n_ast_nodes=60,
            n_ast_levels=10,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=5,
            words=(28, 24, 72),
            token_count=37,
            nloc=8,
            complexity=8,
            parses=True,
        ),
    ),
    "single_quoted_doc": (
        ("def q():\n    'One line.'\n    return 1"),
        Expected(
            docstring="One line.",
            doc_language="en",
            doc_words=(2, 2, 1),
            signature="def q():",
            n_ast_nodes=16,
            n_ast_levels=6,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=1,
            words=(6, 6, 11),
            token_count=7,
            nloc=3,
            complexity=1,
            parses=True,
        ),
    ),
    "bytes_doc": (
        ("def q():\n    b'Not a docstring.'\n    return 1"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def q():",
            n_ast_nodes=16,
            n_ast_levels=6,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=1,
            words=(7, 7, 12),
            token_count=8,
            nloc=3,
            complexity=1,
            parses=True,
        ),
    ),
    "joined_doc": (
        ("def q():\n    ('One '\n     \"two.\")\n    return 1"),
        Expected(
            docstring="One two.",
            doc_language="en",
            doc_words=(2, 2, 1),
            signature="def q():",
            n_ast_nodes=24,
            n_ast_levels=8,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=1,
            words=(7, 7, 16),
            token_count=10,
            nloc=4,
            complexity=1,
            parses=True,
        ),
    ),
    "text_block": (
        ('def sql():\n    q = """select\n\n    1"""\n    """A text\n    used as a comment."""\n    return q'),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def sql():",
            n_ast_nodes=24,
            n_ast_levels=7,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=2,
            words=(14, 13, 28),
            token_count=10,
            nloc=5,
            complexity=1,
            parses=True,
        ),
    ),
    "continuation": (
        ("def add(a, b):\n    return a + \\\n        b ** 2 // 1.5"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def add(a, b):",
            n_ast_nodes=24,
            n_ast_levels=8,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=3,
            words=(12, 12, 21),
            token_count=18,
            nloc=3,
            complexity=1,
            parses=True,
        ),
    ),
    "error": (
        ("def broken(:\n    return 1"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def broken(:",
            n_ast_nodes=11,
            n_ast_levels=5,
            n_ast_errors=0,
            n_ast_missing=1,
            n_identifiers=1,
            words=(4, 4, 6),
            token_count=5,
            nloc=2,
            complexity=1,
            parses=False,
        ),
    ),
    "cr_only": (
        ("def cr():\r    'Doc here.'\r    return 1"),
        Expected(
            docstring="Doc here.",
            doc_language="en",
            doc_words=(2, 2, 1),
            signature="def cr():",
            n_ast_nodes=16,
            n_ast_levels=6,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=1,
            words=(6, 6, 11),
            token_count=7,
            nloc=3,
            complexity=1,
            parses=True,
        ),
    ),
    "raw_doc_semicolon": (
        "def r(): r'''A \\d.'''; return 0",
        Expected(
            docstring="A \\d.",
            doc_language="en",
            doc_words=(2, 2, 1),
            signature="def r():",
            n_ast_nodes=17,
            n_ast_levels=6,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=1,
            words=(6, 6, 5),
            token_count=9,
            nloc=1,
            complexity=1,
            parses=True,
        ),
    ),
    "error_node": (
        ("def broken(x):\n    y = = x\n    return y"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def broken(x):",
            n_ast_nodes=19,
            n_ast_levels=7,
            n_ast_errors=1,
            n_ast_missing=0,
            n_identifiers=3,
            words=(8, 6, 13),
            token_count=11,
            nloc=3,
            complexity=1,
            parses=False,
        ),
    ),
    "two_errors": (
        ("def odd():\n    a = $\n    b = ?"),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def odd():",
            n_ast_nodes=16,
            n_ast_levels=5,
            n_ast_errors=4,
            n_ast_missing=0,
            n_identifiers=3,
            words=(8, 7, 13),
            token_count=10,
            nloc=3,
            complexity=1,
            parses=False,
        ),
    ),
    "nested_quotes": (
        ("def deep(d):\n    return f'{d['a']}' + f\"{f'{d:#x}'}\""),
        Expected(
            docstring=None,
            doc_language=None,
            doc_words=(0, 0, 0),
            signature="def deep(d):",
            n_ast_nodes=42,
            n_ast_levels=11,
            n_ast_errors=0,
            n_ast_missing=0,
            n_identifiers=2,
            words=(6, 6, 8),
            token_count=18,
            nloc=2,
            complexity=1,
            parses=sys.version_info >= (3, 12),
        ),
    ),
}
