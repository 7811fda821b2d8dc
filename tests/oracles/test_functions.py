"""The oracle's functions: spans, names, signatures."""

import pytest

from tests.oracles.functions import functions_of


class TestFunctions:
    def test_spans_names_and_nesting(self) -> None:
        source = b"class A:\n    @p\n    def f(self):\n        def g(): pass\n        return g  # c\n    # d\n"
        found = functions_of(source) or []
        assert [(item.name, source[item.start : item.end], item.nested) for item in found] == [
            ("A.f", b"@p\n    def f(self):\n        def g(): pass\n        return g", False),
            ("A.f.<locals>.g", b"def g(): pass", True),
        ]

    def test_signatures_ignore_layout_comments_and_docstring(self) -> None:
        one = functions_of(b"def f(a):\n    '''Doc.'''\n    return a\n") or []
        other = functions_of(b"class A:\n  def f( a ): return a  # c\n") or []
        assert one[0].signatures == other[0].signatures

    def test_offsets_of_another_encoding(self) -> None:
        source = "# coding: latin-1\n# ä\ndef f(): return 'ß'\n".encode("latin-1")
        assert [source[item.start : item.end] for item in functions_of(source) or []] == [b"def f(): return '\xdf'"]

    @pytest.mark.parametrize("source", [b"def f(:\n", b"x = '\xe9'\n", b"# coding: nonsense\n", b"\0"])
    def test_what_does_not_parse_is_none(self, source: bytes) -> None:
        assert functions_of(source) is None

    def test_a_statement_that_other_files_hold_too_has_its_own_offsets(self) -> None:
        statement = b"@p\nclass A:\n    def f(self): return 1\n"
        sources = [b"\xef\xbb\xbf" + statement, b"x = 1\n" + statement, b"y = 'longer'\r\n" + statement, statement]
        found = [(source, item) for source in sources for item in functions_of(source) or []]
        assert [source[item.start : item.end] for source, item in found] == [b"def f(self): return 1"] * 4
        assert len({(item.name, item.text, item.signatures) for _, item in found}) == 1

    def test_a_decorator_below_its_at_sign(self) -> None:
        sources = [b"x = 1\n@\\\np\ndef f(): return 1\n", b"yy = 1\n@(\n p)\ndef f(): return 1\n"]
        texts = [source[item.start : item.end] for source in sources for item in functions_of(source) or []]
        assert texts == [b"@\\\np\ndef f(): return 1", b"@(\n p)\ndef f(): return 1"]

    def test_only_functions_with_wanted_names(self) -> None:
        source = b"def f(): return 1\nclass A:\n    def g(self):\n        def f(): pass\n"
        assert [item.name for item in functions_of(source, frozenset({"f"})) or []] == ["f", "A.g.<locals>.f"]
