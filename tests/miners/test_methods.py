import ast
import sysconfig
import textwrap
import warnings
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tree_sitter import Query, QueryCursor

from miners.methods import MethodSpan, _comments, dedent, find_methods, indentation, is_plain, scan, token_hashes
from miners.syntax import PYTHON, parse
from schemas.errors import DataError
from tests.oracles.functions import functions_of


def methods(source: bytes) -> list[MethodSpan]:
    return find_methods(source, parse(source))


def names(source: bytes) -> list[str]:
    return [span.fun_name for span in methods(source)]


def texts(source: bytes) -> list[bytes]:
    return [source[span.start_byte : span.end_byte] for span in methods(source)]


def code_of(source: bytes, index: int = 0) -> str:
    return dedent(source, methods(source)[index])


def hashes(text: str) -> tuple[bytes, bytes, bytes]:
    found = token_hashes(text.encode(), b"")
    return found.exact, found.nameless, found.nameless_everywhere


class TestWhichDefinitionsAreMethods:
    def test_functions_and_methods_with_qualified_names(self) -> None:
        source = b"def f(): pass\nasync def g(): pass\n"
        source += b"class A:\n    def m(self): pass\n    class B:\n        def n(self): pass\n"
        assert names(source) == ["f", "g", "A.m", "A.B.n"]

    def test_nested_functions_belong_to_their_parent(self) -> None:
        source = b"def f():\n    def g(): pass\n    class A:\n        def m(self): pass\n"
        assert names(source) == ["f"]
        every = [(span.fun_name, span.nested) for span in scan(source, parse(source), {})]
        assert every == [("f", False), ("f.<locals>.g", True), ("f.<locals>.A.m", True)]

    def test_blocks_at_module_and_class_level_do_not_matter(self) -> None:
        source = textwrap.dedent("""\
            if x:
                def a(): pass
            elif y:
                def b(): pass
            else:
                def c(): pass
            try:
                def d(): pass
            except E:
                def e(): pass
            else:
                def f(): pass
            finally:
                def g(): pass
            with x:
                def h(): pass
            for i in x:
                def i(): pass
            else:
                def j(): pass
            while x:
                def k(): pass
            match x:
                case 1:
                    def m(): pass
            try:
                def n(): pass
            except* E:
                def o(): pass
            class A:
                if x:
                    def p(self): pass
            """)
        assert names(source.encode()) == [*"abcdefghijkmno", "A.p"]

    def test_every_one_of_a_name(self) -> None:
        source = b"class A:\n    @property\n    def x(self): return 1\n    @x.setter\n    def x(self, v): pass\n"
        assert names(source) == ["A.x", "A.x"]

    def test_names_are_normalised_as_python_does(self) -> None:
        assert names("def ﬁle(): pass\nclass Äh:\n    def é(self): pass\n".encode()) == ["file", "Äh.é"]

    def test_text_that_only_looks_like_a_definition(self) -> None:
        assert names(b"s = '''\ndef f():\n    pass\n'''\n# def g(): pass\nx = lambda: 1\n") == []

    def test_nothing(self) -> None:
        assert names(b"") == []

    def test_a_syntax_error_inside_keeps_the_method(self) -> None:
        assert names(b"def f():\n    x = = 1\n    return x\ndef g(): pass\n") == ["f", "g"]

    def test_type_parameter_defaults_unknown_to_the_grammar_keep_scopes(self) -> None:
        assert names(b"class A[T = int]:\n    def m(self): return 1\ndef f[T = int](x): return x\n") == ["A.m", "f"]

    def test_a_definition_whose_scope_is_lost_is_no_method(self) -> None:
        source = b"class A:\n    y = 1\n\nx = [\n    def m(self):\n        return 1\n"
        spans = scan(source, parse(source), {})
        assert [(span.fun_name, span.scope_known) for span in spans] == [("m", False)]
        assert names(source) == []

    def test_conflict_markers_cost_only_what_they_touch(self) -> None:
        source = b"def f():\n    return 1\n\n<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> b\n\ndef g():\n    return 2\n"
        assert "f" in names(source)


class TestSpans:
    def test_from_the_first_decorator_to_the_last_statement(self) -> None:
        text = b"@a\n# why\n@b(1)\ndef f():\n    x = 1  # one\n    # two\n    return x"
        source = text + b"  # three\n    # four\n\n# five\ny = 1\n"
        assert texts(source) == [text]
        (span,) = methods(source)
        assert (span.start_line, span.end_line) == (1, 7)

    @pytest.mark.parametrize(
        ("source", "text"),
        [
            (b"def f(): return 1;  # c\n", b"def f(): return 1;"),
            (b"def f():\n  if x:\n    return 1 \\\n\ny = 2", b"def f():\n  if x:\n    return 1"),
            (b"async  def f(): pass", b"async  def f(): pass"),
            (b"def f():\n    '''a\n    # b'''\n", b"def f():\n    '''a\n    # b'''"),
            (b"def f():\n  try: pass\n  finally:\n    pass\n    # c\n", b"def f():\n  try: pass\n  finally:\n    pass"),
            (b"def f(): return '#'\n", b"def f(): return '#'"),
        ],
    )  # fmt: skip
    def test_ends_where_python_says(self, source: bytes, text: bytes) -> None:
        assert texts(source) == [text]
        assert [source[item.start : item.end] for item in functions_of(source) or []] == [text]

    @pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
    def test_lines_are_counted_over_every_line_end(self, newline: bytes) -> None:
        source = newline.join([b"x = 1", b"", b"@a", b"def f():", b"    x", b"    y", b"", b"def g(): pass", b""])
        spans = [(span.fun_name, span.start_line, span.end_line) for span in methods(source)]
        assert spans == [("f", 3, 6), ("g", 8, 8)]

    def test_form_feeds_and_byte_order_mark_are_no_lines(self) -> None:
        source = b"\xef\xbb\xbfdef f():\n    return 1\n\x0c\ndef g():\x0c\n    return 2\n\x0cdef h(): pass\n"
        spans = [(span.fun_name, span.start_byte, span.start_line) for span in methods(source)]
        assert spans == [("f", 3, 1), ("g", 27, 4), ("h", 51, 6)]

    def test_bytes_count_not_characters(self) -> None:
        source = "s = 'äöü'\ndef f(): return 'ß'\n".encode()
        (span,) = methods(source)
        assert source[span.start_byte : span.end_byte].decode() == "def f(): return 'ß'"


class TestIndentation:
    @pytest.mark.parametrize(
        ("before", "white"),
        [(b"", b""), (b"    ", b"    "), (b"\t ", b"\t "), (b" \x0c  ", b"  "), (b"x\r  ", b"  "), (b"a; ", b" ")],
    )
    def test_white_space_before_on_the_line(self, before: bytes, white: bytes) -> None:
        assert indentation(before + b"def f(): pass", len(before)) == white


class TestDedent:
    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ("def f(self):\n        return 1", "def f(self):\n    return 1"),
            ("@a\n    @b\n    async def f(self): return 1", "@a\n@b\nasync def f(self): return 1"),
            ("def f(self):\n        x = '''\n        y\n  z'''", "def f(self):\n    x = '''\n        y\n  z'''"),
            ("def f(self):\n        '''A\n\n        b\n      c\n d\n        '''\n        return 1",
             "def f(self):\n    '''A\n\n    b\n  c\nd\n    '''\n    return 1"),
            ("def f(self):\n        '''A\n        b''' 'c'\n        x = '''\n        d'''",
             "def f(self):\n    '''A\n    b''' 'c'\n    x = '''\n        d'''"),
            ("def f(self):\n        x = f'''{\n        y}\n        z'''",
             "def f(self):\n    x = f'''{\n        y}\n        z'''"),
            ("def f(self):\n        x = 'a\\\n        b'\n        return x",
             "def f(self):\n    x = 'a\\\n        b'\n    return x"),
            ("def f(self):\n        x = (1,\n2,\n  3)\n# c\n  # d\n\n  \n        return x",
             "def f(self):\n    x = (1,\n2,\n3)\n# c\n# d\n\n\n    return x"),
            ("def f(self):\n        x = 1 + \\\n  2\n        return x",
             "def f(self):\n    x = 1 + \\\n2\n    return x"),
            ("def f(self):\n        def g():\n            '''a\n            b'''\n        return g",
             "def f(self):\n    def g():\n        '''a\n            b'''\n    return g"),
            ("def f(self):\r\n        return 1\r\n\r\n        # c\r\n        return 2",
             "def f(self):\r\n    return 1\r\n\r\n    # c\r\n    return 2"),
            ("def f(self):\n\x0c        return 1", "def f(self):\n\x0c    return 1"),
            ("def f(self):\n        return 'ß'", "def f(self):\n    return 'ß'"),
        ],
    )  # fmt: skip
    def test_lines_lose_the_definitions_own_indentation(self, body: str, code: str) -> None:
        source = f"class A:\n    {body}\n    x = 1\n".encode()
        assert code_of(source) == code

    def test_carriage_returns_alone_end_lines(self) -> None:
        assert code_of(b"class A:\r    def f(self):\r        return 1\r") == "def f(self):\r    return 1"

    def test_tabs(self) -> None:
        assert code_of(b"class A:\n\tdef f(self):\n\t\treturn 1\n") == "def f(self):\n\treturn 1"

    def test_mixed_but_consistent_indentation(self) -> None:
        source = b"class A:\n  def f(self):\n\t  if x:\n\t  \treturn 1\n\t  return 2\n"
        assert ast.dump(ast.parse(code_of(source))) == ast.dump(ast.parse(source).body[0].body[0]).join(  # type: ignore[attr-defined]  # it is a class
            ("Module(body=[", "], type_ignores=[])")
        )

    def test_a_form_feed_resets_the_column(self) -> None:
        assert code_of(b"class A:\n  \x0c    def f(self):\n        return 1\n") == "def f(self):\n    return 1"

    def test_at_module_level_nothing_changes(self) -> None:
        source = b"def f():\n  x = '''\n  a'''\n  return x\n"
        assert code_of(source).encode() == source.rstrip()

    def test_a_continuation_before_the_definition(self) -> None:
        assert code_of(b"if x:\n  \\\n  def f():\n      return 1\n") == "def f():\n    return 1"

    def test_a_result_with_other_tokens_is_refused(self) -> None:
        source = b"class A:\n    def f(self):\n        return 1\n"
        (span,) = methods(source)
        wrong = MethodSpan("A.f", 13, 21, 2, 2, False, True, span.keys)
        with pytest.raises(DataError) as error:
            dedent(b"class A:\n    x = 1\n    y\n", wrong)
        assert error.value.reason == "dedent_failed"


@cache
def library_files() -> tuple[Path, ...]:
    """Return a fixed choice of this Python's own library: about 150 files of every style and age."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in folder.rglob("*.py") if not {"site-packages", "test", "lib2to3"} & set(path.parts)]
    return tuple(sorted(files)[::6])


def without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Dump a function; its docstring's text, whose indentation may differ, is replaced."""
    if ast.get_docstring(node, clean=False) is not None:
        node.body[0] = ast.Expr(ast.Constant(...))
    return ast.dump(node)


def definitions(module: ast.Module) -> dict[tuple[int, str], ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {(min([node.lineno, *(item.lineno for item in node.decorator_list)]), node.name): node for node in nodes}


@pytest.mark.parametrize("part", range(4))
def test_thousands_of_real_functions_agree_with_ast(part: int) -> None:
    n_functions = 0
    for path in library_files()[part::4]:
        source = path.read_bytes()
        expected = functions_of(source)
        if expected is None or not source.isascii():
            continue
        spans = methods(source)
        found = [(span.fun_name, span.start_byte, span.end_byte) for span in spans]
        assert found == [(item.name, item.start, item.end) for item in expected if not item.nested], path
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library's own invalid escapes are not at issue
            originals = definitions(ast.parse(source))
            for span in spans:
                (alone,) = ast.parse(dedent(source, span)).body
                assert isinstance(alone, ast.FunctionDef | ast.AsyncFunctionDef)
                original = originals[span.start_line, span.fun_name.rpartition(".")[2]]
                assert without_docstring(alone) == without_docstring(original), (path, span)
        n_functions += len(spans)
    assert n_functions > 250


class TestTokenHashes:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("def f(a):\n    return a+1", "def f( a ):\n  # c\n  return (a + 1)".replace("(a + 1)", "a + 1")),
            ("def f():\n    'doc'\n    return 1", "def f():\n    return 1"),
            ("def f():\n    '''a\n    b'''\n    return 1", "def f():\n    'other'\n    return 1"),
            ("def f(): return 1", "def f():\n    return 1"),
            ("def f():\n    if x: return 1", "def f():\n    if x:\n        return 1"),
            ("def f(): return '''a\r\nb'''", "def f(): return '''a\nb'''"),
            ("def f():\n    return 1 + \\\n        2", "def f():\n    return 1 + 2"),
        ],
    )
    def test_layout_comments_and_docstring_do_not_count(self, one: str, other: str) -> None:
        assert hashes(one) == hashes(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("def f():\n    if x:\n        a()\n        b()", "def f():\n    if x:\n        a()\n    b()"),
            ("def f():\n    x\n    (y)", "def f():\n    x(y)"),
            ("@a\n@b\ndef f(): pass", "@a @ b\ndef f(): pass"),
            ("def f(): return 'a b'", "def f(): return 'ab'"),
            ("def f(): return b'a'", "def f(): return 'a'"),
            ("def f():\n    x = 1\n    'no docstring'", "def f():\n    x = 1"),
            ("def f():\n    def g(): 'doc'", "def f():\n    def g(): pass"),
            ("async def f(): pass", "def f(): pass"),
            ("@a\ndef f(): pass", "def f(): pass"),
        ],
    )
    def test_tokens_and_block_structure_count(self, one: str, other: str) -> None:
        assert len({*hashes(one), *hashes(other)}) == len({*hashes(one)}) + len({*hashes(other)})

    def test_the_own_name_is_replaced_at_the_definition(self) -> None:
        exact, nameless, _ = hashes("def get(self): return self.x.get()")
        other = hashes("def fetch(self): return self.x.get()")
        assert (exact == other[0], nameless == other[1]) == (False, True)

    def test_the_own_name_is_replaced_everywhere_in_recursion(self) -> None:
        one = hashes("def fact(n): return n * fact(n - 1) if n else 1")
        other = hashes("def factorial(n): return n * factorial(n - 1) if n else 1")
        assert (one[1] == other[1], one[2] == other[2]) == (False, True)

    def test_text_that_is_no_definition_is_one_token(self) -> None:
        assert len(set(hashes("x = (")) | set(hashes("x = ["))) == 2


NAMES = st.sampled_from(["f", "value", "if_", "ö"])
LINES = st.sampled_from(
    [
        "return {n}(1)",
        "x = '''\n  {n}'''",
        "# {n}",
        "if {n}: pass",
        "'doc {n}'",
        "y = (1,\n2)",
        "",
        "def g(): return {n}",
    ]
)


@given(NAMES, NAMES, st.lists(LINES, min_size=1, max_size=5), st.sampled_from(["", "    ", "\t"]))
def test_equal_tokens_always_give_equal_keys(one: str, other: str, lines: list[str], indent: str) -> None:
    """The keys find candidates: two definitions with equal hashes must never differ in them."""

    def definition(name: str, extra: str) -> bytes:
        body = "".join(f"{indent}    {line.format(n=name)}{extra}\n" for line in [*lines, "pass"])
        head = "class A:\n" if indent else ""
        return f"{head}{indent}def {name}():{extra}\n{body}".encode()

    sources = [definition(one, ""), definition(other, "  # c"), definition(one, "\t")]
    found = []
    for source in sources:
        for span in methods(source):
            text = source[span.start_byte : span.end_byte]
            found.append((span.keys, token_hashes(text, indentation(source, span.start_byte))))
    for keys, mine in found:
        for other_keys, its in found:
            if mine.nameless == its.nameless:
                assert keys.nameless == other_keys.nameless
            if mine.nameless_everywhere == its.nameless_everywhere:
                assert keys.symbols == other_keys.symbols or keys.nameless == other_keys.nameless


@given(st.text(alphabet="def f():\n\t 'x\"#\\@=\r\x0c1", max_size=60))
def test_any_text_is_scanned_without_a_crash(text: str) -> None:
    source = text.encode()
    for span in scan(source, parse(source), {}):
        assert 0 <= span.start_byte < span.end_byte <= len(source)
        assert 1 <= span.start_line <= span.end_line


@given(st.text(alphabet="def f():\n\t '\"#\\{}=1", max_size=60))
@example("# a\n    x = '#'  # b\n    '''#'''\n    # c\n    f'{x}#{\n# d\nx}'\n")
@example("x = 1 # a\n    # b")
def test_comments_are_found_at_their_hashes(body: str) -> None:
    source = b"def f():\n    " + body.encode()
    node = parse(source).root_node.named_children[0]
    comments = QueryCursor(Query(PYTHON, "(comment) @comment")).captures(node).get("comment", [])
    whole = sorted((comment.start_byte, comment.end_byte) for comment in comments)
    assert list(_comments(node, source[node.start_byte : node.end_byte])) == whole


PLAIN = [
    b"def f(self):\n        return 1",
    b"@wraps(f)\n    @other\n    async def f(self, a=(), *, b: int = 2) -> None:\n        return {'x': b}",
    b'def f(self):\n        """Docstring.\n\n        More.\n        """\n        return "x"',
    b"def f(self):\n\n        r'''Docstring'''\n        return (\n    1)\n# less indented\n",
    b'def f(self):\n        return f"{self.x} {self.y:>{self.n}}" + f"{{"  + f"}}"',
]
NOT_PLAIN = [
    b'def f(self):\n        x = """a\n        b"""',
    b'def f(self):\n        """Docstring.\n        """ + x\n        return 1',
    b'def f(self):\n        """One.""" """Two.\n        """',
    b'def f(self):\n        # """\n        return 1',
    b"def f(self):\n        '''One.'''\n        return '''\n        two'''",
    b'def f(self, x=\'"""\'):\n        return \'"""\\\n        \'',
    b"def f(self):\n        return 'a\\\n        b'",
    b"def f(self):\n\treturn 1",
    b"def f(self):\r\n        return 1",
    b"def f(self):\n        return f'{\n        self.x}'",
    b'def f(self, x=b""):\n        u"""Docstring.\n        """',
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_methods_need_no_proof_to_be_dedented(text: bytes) -> None:
    source = b"class A:\n    " + text + b"\n"
    (span,) = find_methods(source, parse(source))
    assert is_plain(source[span.start_byte : span.end_byte], b"    ")
    assert dedent(source, span, is_sound=True) == dedent(source, span)


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_methods_that_may_hold_lines_inside_strings_are_proven(text: bytes) -> None:
    assert not is_plain(text, b"    ")


def test_tabs_are_not_plain() -> None:
    assert not is_plain(b"def f(self):\n        return 1", b"\t")
