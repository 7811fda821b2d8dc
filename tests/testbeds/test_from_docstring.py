import ast

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from features.docstrings import code_without_docstring
from features.parsing import parse_method
from miners.syntax import parse
from schemas.errors import DataError
from schemas.tasks import FromDocString
from testbeds.from_docstring import from_docstring, prompt_end
from testbeds.task import Inputs
from tests.builders import make_point
from tests.testbeds.awkward import AWKWARD
from tests.testbeds.oracle import any_function, body_span, statement_spans

INPUTS = Inputs({}, 1)


def docstring_of(code: str) -> str | None:
    function = ast.parse(code).body[0]
    return ast.get_docstring(function) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else None


def row_of(code: str) -> FromDocString:
    return from_docstring(make_point(code=code, docstring=docstring_of(code)), INPUTS)


@pytest.mark.parametrize(
    ("name", "prompt_code", "target"),
    [
        (
            "docstring and comments",
            'def f(a):\n    # first\n    """Four words stand here."""  # same line\n',
            "    # next\n\n    b = a\n    return b\n",
        ),
        (
            "docstring and semicolon",
            'def f(a):\n    """Four words stand here."""; ',
            "b = a\n    return b\n",
        ),
        (
            "docstring and lone semicolon",
            'def f(a):\n    """Four words stand here.""";  # why\n',
            "    b = a\n    return b\n",
        ),
        ("one-liner with docstring", 'def f(x): "The next integer of x."; ', "return x + 1"),
        (
            "concatenated docstring",
            "def f(a):\n    ('Four words '\n     'stand here.')\n",
            "    b = a\n    return b\n",
        ),
        (
            "continued docstring",
            'def f(a):\n    "Four words " \\\n    "stand here."\n',
            "    b = a\n    return b\n",
        ),
        (
            "continuation behind docstring",
            'def f(a):\n    "Four words stand here."; \\\n    ',
            "b = a\n    return b\n",
        ),
        (
            "crlf",
            'def f(x):\r\n    """Four words stand here.\r\n\r\n    More.\r\n    """\r\n',
            "    y = x\r\n    return y\r\n",
        ),
        ("tabs", 'def f(x):\n\t"""Four words stand here."""\n', "\tif x:\n\t\treturn 1\n\treturn 2\n"),
        (
            "string statements",
            "def f(a):\n    'Four words stand here.'\n",
            "    'not a docstring'\n    b = a\n    '''nor this'''\n",
        ),
        (
            "non-ascii",
            'def größe(высота, 幅="é€😀"):\n    """Vier Wörter stehen hier."""\n',
            '    面積 = высота * 幅\n    return "ü" + 面積  # ñ\n',
        ),
    ],
)
def test_prompt_ends_with_the_docstrings_line(name: str, prompt_code: str, target: str) -> None:
    row = row_of(AWKWARD[name])
    assert (row.prompt_code, row.target) == (prompt_code, target)


def test_decorators_and_signature_are_in_the_prompt() -> None:
    code = (
        "@first\n@second(1)\nasync def f(\n    a: dict[str, int],  # why\n) -> int:\n"
        '    """Return what a holds."""\n\n    return a["x"]'
    )
    row = row_of(code)
    assert row.prompt_code == code[: code.index("\n    return")]
    assert row.target == '\n    return a["x"]'


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_prompt_of_a_real_function_has_its_docstring_and_nothing_of_its_body(data: st.DataObject) -> None:
    code = any_function(data, documented=True)
    assume(not parse(code.encode()).root_node.has_error)
    parsed = parse_method(code)
    end = prompt_end(parsed.source, parsed.definition)
    body_start, _ = body_span(code)
    docstring = ast.parse(code).body[0].body[0]  # type: ignore[attr-defined] # the code is one function
    between = code.encode()[end:body_start].decode()
    assert end <= body_start
    assert code.encode()[:end].decode().count("\n") >= docstring.end_lineno - 1
    assert all(not line.strip() or line.lstrip().startswith("#") for line in between.split("\n"))
    assert statement_spans(code)[0].start >= end


@pytest.mark.parametrize(
    "code",
    [
        'def f(a, b):\n    """Same as compute(a, b)."""\n    return compute(a, b)\n',
        'def f(a, b):\n    """Short for::\n\n        c = a.get(b)\n        return c[0]\n    """\n'
        "    # comments do not hide the quotation\n    c = a.get(b)\n    return c[0]\n",
        'def f(a):\n    """Runs this:\n\n    >>> a.append(1)\n    >>> a.append(2)\n    """\n'
        "    a.append(1)\n    a.append(2)\n",
    ],
)
def test_docstring_that_quotes_the_body_is_left_out(code: str) -> None:
    with pytest.raises(DataError) as caught:
        row_of(code)
    assert caught.value.reason == "answer_in_prompt"


def test_docstring_that_the_syntax_tree_does_not_have_is_a_reason() -> None:
    with pytest.raises(DataError) as caught:
        from_docstring(make_point(code="def f(a):\n    return a.b\n", docstring="Four words stand here."), INPUTS)
    assert caught.value.reason == "syntax_errors"


def test_prompt_without_body_and_target_without_docstring_make_up_the_code() -> None:
    for code in AWKWARD.values():
        if len((docstring_of(code) or "").split()) > 3:
            row = row_of(code)
            assert row.prompt_code + row.target == code
            assert code_without_docstring(code).endswith(row.target)
