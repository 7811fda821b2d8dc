"""The examples of docs/scoring.md, and what holds of every body: unchanged as it is, found again in every disguise."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miners.methods import scan
from miners.syntax import parse
from sandbox.splice import split_body
from schemas.errors import DataError
from scoring.extract_answer import Extracted, Rule, extract_answer
from scoring.lines import NEWLINE, logical_lines
from tests.builders import git
from tests.miners.python_files import files
from tests.samples.support import SAMPLES, import_stream

DOCUMENT = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text(encoding="utf-8")


def block(kind: str, text: str) -> str:
    found = re.search(rf"^(`{{3,}}|~{{3,}})\w+ {kind}\n(.*?)^\1$", text, re.DOTALL | re.MULTILINE)
    assert found is not None, kind
    return found[2]


EXAMPLES = {
    name: text
    for name, text in re.findall(r"^### `(\w+)`\n(.*?)(?=^##)", DOCUMENT, re.DOTALL | re.MULTILINE)
    if "text answer" in text
}


def test_every_rule_is_documented_in_order() -> None:
    assert re.findall(r"^### `(\w+)`$", DOCUMENT, re.MULTILINE) == [rule.value for rule in Rule]
    assert list(EXAMPLES) == [rule.value for rule in Rule if rule is not Rule.LINE_ENDS]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_of_the_document_gives_the_body_by_its_rule(name: str) -> None:
    found = extract_answer(block("answer", EXAMPLES[name]), block("left", DOCUMENT))
    assert found.body == block("body", DOCUMENT).removesuffix("\n")
    assert name in found.rules


def bodies(raw: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield left context, body and right context of every method of a file in UTF-8."""
    for span in scan(raw, parse(raw), {}):
        try:
            cut = split_body(raw, span.start_byte)
        except DataError:
            continue
        yield cut.left.decode(), cut.body.decode(), cut.right.decode()


@given(files())
def test_bodies_of_generated_files_come_back_unchanged(lines: list[str]) -> None:
    for newline in ("\n", "\r\n", "\r"):
        raw = newline.join(lines).encode()
        try:
            ast.parse(raw)
        except (SyntaxError, ValueError):
            continue
        for left, body, _ in bodies(raw):
            assert extract_answer(body, left) == Extracted(body, ())


def test_bodies_of_the_samples_come_back_unchanged(tmp_path: Path) -> None:
    seen = 0
    for stream in sorted(SAMPLES.glob("*.fi")):
        git_dir = tmp_path / stream.stem
        import_stream(stream.read_bytes(), git_dir)
        listed = git(git_dir, "rev-list", "--all", "--objects").decode("utf-8", "replace").splitlines()
        for object_id in [line[:40] for line in listed if line.endswith(".py")]:
            raw = git(git_dir, "cat-file", "blob", object_id)
            try:
                ast.parse(raw)
                raw.decode()
            except (SyntaxError, ValueError):
                continue
            for left, body, _ in bodies(raw):
                assert extract_answer(body, left) == Extracted(body, ())
                seen += 1
    assert seen > 300


def shifted(body: str, indent: str) -> str:
    """Move the statements of a body from their indentation to another, as a model would write it."""
    lines = logical_lines(body)
    pieces, position = [], 0
    for line in lines:
        inner = line.indent.removeprefix(lines[0].indent)
        pieces += [body[position : line.start], indent, inner, body[line.start + len(line.indent) : line.end]]
        position = line.end
    return "".join(pieces)


def signature(left: str) -> str:
    name = re.findall(r"def (\w+)", left)[-1]
    return f"def {name}(*args):\n    '''Another text.'''\n"


CHATTER = "\n\nThis doesn't need more. It's done.\n"
DISGUISES: dict[str, Callable[[str, str], str]] = {
    "fence": lambda left, body: f"Here you go:\n\n```python\n{body}\n```{CHATTER}",
    "margin": lambda left, body: shifted(body, ""),
    "margin in fence": lambda left, body: f"```\n{shifted(body, '')}\n```",
    "margin and chatter": lambda left, body: shifted(body, "") + CHATTER,
    "two": lambda left, body: shifted(body, "  "),
    "twelve": lambda left, body: shifted(body, " " * 12),
    "tab": lambda left, body: shifted(body, "\t"),
    "first line": lambda left, body: body.lstrip(" "),
    "first line and fence": lambda left, body: body.lstrip(" ") + "\n```\nThat is all.",
    "trailing definitions": lambda left, body: body + "\n\n\ndef other(x):\n    return x\n\n\nclass B:\n    pass\n",
    "chatter": lambda left, body: body + CHATTER,
    "signature": lambda left, body: signature(left) + shifted(body, "    "),
    "file": lambda left, body: f"Sure:\n```python\n{left}{body}\n\n\nprint('hello')\n```\n",
    "plain file": lambda left, body: f"{left}{body}\n\n",
}


@pytest.fixture(scope="module")
def library() -> list[tuple[str, str, str]]:
    """Return the bodies of a package of the standard library."""
    paths = sorted(Path(json.__file__).parent.glob("*.py"))
    return [parts for path in paths for parts in bodies(path.read_bytes())]


@pytest.mark.parametrize("name", DISGUISES)
def test_bodies_of_a_library_are_found_in_every_disguise(name: str, library: list[tuple[str, str, str]]) -> None:
    assert len(library) > 20
    for left, body, right in library:
        found = extract_answer(DISGUISES[name](left, body), left)
        assert extract_answer(found.body, left) == Extracted(found.body, ())
        assert ast.dump(ast.parse(left + found.body + right)) == ast.dump(ast.parse(left + body + right))


PIECES = [
    "```python\n", "```\n", "~~~\n", "def area(r):\n", "class A:\n", "    return 1\n", "return 1\n", "  x = (\n",
    "\tif r:\n", "\t\tpass\n", "        y = '''\n", "'''\n", "# c\n", "\n", "Here is the code:\n", "@overload\n",
    "    def area(self): ...\n", "if x:\n", "else:\n", "    else:\n", "x = 1; y = 2\n", '    """Return the area."""\n',
    "<think>", "</think>\n", "<|im_end|>", "\r\n", "\x0c", "\\\n", "    async def area(r): return 2\n", "1. ```py\n",
    "   x\n", "> a\n", "lambda: 0\n", "f'{", "\u2028", "é = 'ж'\n", "\x00", "    ",
]  # fmt: skip
CONTEXTS = [
    "def area(r):\n", 'def area(r):\n    """Return the area."""\n', "class A:\n\tdef area(self):\n", "def area(r): ",
    'def area(r): "Doc."; ', "class A:\r\n  def area(self):\r\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join) | st.text(max_size=30), st.sampled_from(CONTEXTS))
def test_nothing_is_invented_whatever_the_answer(answer: str, left: str) -> None:
    def words(text: str) -> list[str]:
        return [word for line in NEWLINE.split(text) for word in line.replace(";", " ").split()]

    given_words = iter(words(answer))
    # What is left stands in the answer in the same order: `in` consumes the iterator.
    assert all(any(word in other for other in given_words) for word in words(extract_answer(answer, left).body))


def test_answer_that_never_ends_takes_no_minutes() -> None:
    answer = "```python\n" + "    # the same line over and over again\n" * 20_000
    assert extract_answer(answer, CONTEXTS[0]).body == ""
    assert extract_answer("def area(r):\n    return 1\n" * 1_000, CONTEXTS[0]).body == "    return 1"
