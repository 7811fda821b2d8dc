"""Bodies in models' answers: every shape that answers come in, with the whole expected body."""

import pytest

from schemas.errors import DataError
from scoring.extract_answer import Extracted, Rule, extract_answer

FUNCTION = 'import math\n\n\nclass Ring:\n    size = 3\n\n\ndef area(r):\n    """Return the area."""\n'
BARE = "class Ring:\n    size = 3\n\n\ndef area(r):\n"
METHOD = "class Ring:\n    def __init__(self, r):\n        self.r = r\n\n    def area(self):\n"
BODY = "    square = r * r\n    if square:\n        return math.pi * square\n    return 0"
METHOD_BODY = "        square = self.r**2\n        return 3 * square"


def body_of(answer: str, left: str = FUNCTION) -> str:
    return extract_answer(answer, left).body


def rules_of(answer: str, left: str = FUNCTION) -> list[str]:
    return list(extract_answer(answer, left).rules)


@pytest.mark.parametrize("left", [FUNCTION, BARE])
def test_body_in_its_place_is_not_touched(left: str) -> None:
    assert extract_answer(BODY, left) == Extracted(BODY, ())


@pytest.mark.parametrize(
    "body",
    [
        "    # why\n\n    return 1  # because",
        "    return '''\n```python\ndef area(r):\n'''",
        "    def area(s):\n        return s\n    return area(r)",
        "    pass",
        "    x = [\n1,\n]\n    return x;",
    ],
)
def test_sound_bodies_with_odd_contents_are_not_touched(body: str) -> None:
    assert extract_answer(body, FUNCTION) == Extracted(body, ())


@pytest.mark.parametrize(
    ("left", "body"),
    [
        ("def f(): ", "return 1"),
        ("def f():", "x = 1; return x;  # why"),
        ('def f(): "Doc."; ', "return 1"),
        ('def f():\n    "Doc."; ', "return 1"),
        ("def f(): \\\n    ", "return 1"),
        ("def f():\r\n", "\tif x:\r\n\t\treturn 1\r\n\treturn 2"),
        ("\tdef f():\n", "\t  return 1"),
    ],
)
def test_bodies_begun_on_a_line_or_oddly_indented_are_not_touched(left: str, body: str) -> None:
    prefix = "class A:\n" if left.startswith("\t") else ""
    assert extract_answer(body, prefix + left) == Extracted(body, ())


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{BODY}\n```",
        f"```py\n{BODY}\n```\n",
        f"~~~\n{BODY}\n~~~",
        f"````python title=x\n{BODY}\n````",
        f"```\n{BODY}\n```",
        f"```python\n{BODY}\n",
        f"Here it is:\n\n```python\n{BODY}\n```\n\nIt returns `0` for an empty ring. Don't worry.",
        f"Install it:\n```bash\npip install x\n```\nThen:\n```python\n{BODY}\n```\nOutput:\n```\n3\n```",
        f"Usage:\n```python\nprint(area(2))\n```\nCode:\n```python\ndef area(r):\n{BODY}\n```",
        "1. First\n\n   ```python\n   " + BODY.replace("\n", "\n   ") + "\n   ```\n2. Done",
        "- ```python\n  " + BODY.replace("\n", "\n  ") + "\n  ```",
        "> ```python\n> " + BODY.replace("\n", "\n> ") + "\n> ```",
    ],
)
def test_fenced_code_is_taken(answer: str) -> None:
    assert body_of(answer) == BODY
    assert "fence" in rules_of(answer)


@pytest.mark.parametrize(
    "answer",
    [
        f"def area(r):\n{BODY}",
        f"def area(r: float) -> float:\n    '''Return the area.'''\n{BODY}\n",
        f'@cache\n@other(\n    1\n)\ndef area(\n    r,\n):\n    """Another text.\n\n    On lines."""\n{BODY}\n',
        f"import math\n\nPI = 3\n\ndef helper():\n    pass\n\ndef area(r):\n{BODY}\n\n\ndef other():\n    pass",
        f"Sure! Here is the code for `area(r)`:\n\ndef area(r):\n{BODY}\n\nThis works, isn't it?",
        "  def area(r):\n  " + BODY.replace("\n", "\n  "),
        f"class Other:\n    def area(self):\n        return 7\n\n\ndef area(r):\n{BODY}\n",
        f"{FUNCTION}{BODY}\n\n\nprint(area(3))\n",
        f"@overload\ndef area(r: int) -> int: ...\n\ndef area(r):\n{BODY}\n\n@overload\ndef area(r: int) -> int: ...\n",
        f"async def area(r):\n{BODY}",
    ],
)
def test_repeated_definition_gives_its_body(answer: str) -> None:
    assert body_of(answer) == BODY
    assert "signature" in rules_of(answer)
    assert body_of(f"```python\n{answer}\n```") == BODY


@pytest.mark.parametrize(
    "answer",
    [
        f"def area(self):\n    {METHOD_BODY.replace('        ', '    ').strip()}",
        f"    def area(self):\n{METHOD_BODY}",
        f"{METHOD}{METHOD_BODY}",
        f"class Disc:\n    def area(self):\n        return 1\n\n{METHOD}{METHOD_BODY}",
        f"{METHOD}{METHOD_BODY}\n\nclass Disc:\n    def area(self):\n        return 1\n",
        METHOD_BODY,
        METHOD_BODY.replace("        ", ""),
        METHOD_BODY.replace("        ", "    "),
        METHOD_BODY.strip(),
        METHOD_BODY.replace("        ", "\t\t"),
        METHOD_BODY + "\n\n    def next(self):\n        return 1",
        METHOD_BODY + "\n\n\nclass Disc:\n    pass",
    ],
)
def test_methods_come_alone_in_their_class_or_in_a_file(answer: str) -> None:
    assert body_of(answer, METHOD) == METHOD_BODY
    assert body_of(f"Here:\n```python\n{answer}\n```", METHOD) == METHOD_BODY


def test_docstring_that_stands_before_the_body_is_left_out() -> None:
    repeated = f'    """Return the area."""\n{BODY}\n\n\nprint(area(1))'
    assert extract_answer(repeated, FUNCTION) == Extracted(BODY, (Rule.DOCSTRING, Rule.TRAILING))
    other = f'    """Another text."""\n{BODY}'
    assert body_of(f"{other}\n") == other


@pytest.mark.parametrize(
    "answer",
    [
        BODY.replace("    ", "", 1),
        "square = r * r\nif square:\n    return math.pi * square\nreturn 0",
        "  square = r * r\n  if square:\n      return math.pi * square\n  return 0",
        "        square = r * r\n        if square:\n            return math.pi * square\n        return 0",
        "      square = r * r\n    if square:\n        return math.pi * square\n    return 0",
        f"\n\n{BODY}\n\n",
        "\n" + BODY.replace("    ", "", 1) + "\n```\nThat is all.",
        BODY.replace("    ", "", 1) + "\n\ndef other():\n    return 1\n",
        BODY.replace("    ", "", 1) + "\n\nThis returns the area, which isn't negative.\nIt's = 3.",
        f"{BODY}\n\n\nif __name__ == '__main__':\n    print(area(1))",
        f"{BODY}<|im_end|>",
        f"<think>\nThey want `area`:\n```python\nreturn 1\n```\n</think>\n\n{BODY}</s>",
        BODY.replace("\n", "\r\n") + "\r\n",
    ],
)
def test_indentation_is_repaired_and_chatter_left_out(answer: str) -> None:
    assert body_of(answer) == BODY


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # Two for four: inner lines keep their distance.
        ("  if r:\n    return 1\n  return 2", "    if r:\n      return 1\n    return 2"),
        ("\tif r:\n\t\treturn 1\n\treturn 2", "    if r:\n    \treturn 1\n    return 2"),
        # The first line lost its indentation and opens a block.
        ("if r:\n        return 1\n    return 2", "    if r:\n        return 1\n    return 2"),
        ("if r:\n    return 1\nreturn 2", "    if r:\n        return 1\n    return 2"),
        ("while r:\n        if r:\n            return", "    while r:\n            if r:\n                return"),
        ("try:\n        x()\n    except E:\n        pass", "    try:\n        x()\n    except E:\n        pass"),
        # Strings and brackets keep their lines, comments move along.
        ("# a\nx = '''\nb\n'''  # c\n# d\nf([\n1])", "    # a\n    x = '''\nb\n'''  # c\n    # d\n    f([\n1])"),
        # A helper inside the body stays, one behind it goes.
        ("def g():\n    return 1\nreturn g()", "    def g():\n        return 1\n    return g()"),
        ("return g()\n\ndef g():\n    return 1", "    return g()"),
        ("def area(s):\n    return 1\nreturn area", "    def area(s):\n        return 1\n    return area"),
        ("x = 1\nif x:\n    y()\n\nclass A:\n    pass\n", "    x = 1\n    if x:\n        y()"),
    ],
)  # fmt: skip
def test_structure_is_kept(answer: str, expected: str) -> None:
    assert body_of(answer) == expected


@pytest.mark.parametrize(
    "answer", ["", "\n", "   ", "# only a comment", "```python\n```", "def area(r):\n    '''Doc.'''\n"]
)
def test_answer_without_a_statement_is_the_empty_body(answer: str) -> None:
    assert body_of(answer) == ""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("return 1 +\n", "    return 1 +"),
        ("    x = = 1\n    return 2", "    x = = 1\n    return 2"),
        ("x = = 1\nreturn 2", "    x = = 1\n    return 2"),
        ("Return = 1 +\nreturn 2", "    Return = 1 +\n    return 2"),
        ("I cannot do that.", ""),
        ("return (1,", "    return (1,"),
        ("```python\nx = = 1\n```\nBetter:\n```python\nreturn 2\n```", "    x = = 1"),
    ],
)
def test_broken_code_stays_broken(answer: str, expected: str) -> None:
    assert body_of(answer) == expected


@pytest.mark.parametrize(
    ("left", "answer", "expected"),
    [
        ("def f(): ", "    return 1\n", "return 1"),
        ("def f(): ", "def f(): return 1", "return 1"),
        ("def f(): ", "x = 1\nreturn x", "\n    x = 1\n    return x"),
        ("def f(): ", "    if a:\n        return 1\n    return 2", "\n    if a:\n        return 1\n    return 2"),
        ('def f(): "Doc."; ', "x = 1\nreturn x", "x = 1; return x"),
        ('def f():\n  "Doc."; ', "x = 1\nreturn x", "\n  x = 1\n  return x"),
        ("class A:\n  def f(self): ", "x = 1\nreturn x", "\n    x = 1\n    return x"),
    ],
)
def test_body_begun_on_a_line_goes_on_below_it(left: str, answer: str, expected: str) -> None:
    assert body_of(answer, left) == expected


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ("class A:\n\tx = 1\n\n\tdef f(self):\n", "\t\treturn 1"),
        ("if x:\n  y()\n\ndef f():\n", "  return 1"),
        ("\tdef f(self):\n", "\t\treturn 1"),
        ("def f():\r\n", "    return 1"),
        ("if a:\n  if b:\n    c()\nif d:\n        e()\ndef f():\n", "  return 1"),
        ('try:\n    def f():\n          """Doc."""\n', "          return 1"),
        ("s = '''\ndef g():\n  x\n'''\ndef f(a={\n  1: 2}):  # c\n", "    return 1"),
    ],
)
def test_indentation_is_that_of_the_file(left: str, expected: str) -> None:
    assert body_of("return 1", left) == expected


def test_line_ends_are_those_of_the_file() -> None:
    assert extract_answer("x = 1\nreturn x", "def f():\r\n").body == "    x = 1\r\n    return x"


@pytest.mark.parametrize("left", ["", "x = 1\n", "def f():\n    x = 1\n    y = 2\n"])
def test_left_context_without_a_definition_is_an_error(left: str) -> None:
    with pytest.raises(DataError) as caught:
        extract_answer("return 1", left)
    assert caught.value.reason == "no_definition"
