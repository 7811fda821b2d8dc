"""Made-up Python files and edits of them, for tests that compare a quick way of reading a file with a plain one."""

from codecs import BOM_UTF8

from hypothesis import strategies as st

_SIMPLE = [
    "x = 1", "x = 1; y = 2", "import os", "pass", "'''text'''", "x = (1,\n  2)",
    "x = '''\nclass Q:\n    def no(): pass\n'''",
    "x = 'a' \\\n    'b'", "if x: pass", "print 'old'", "match = case", "lambda: 0", "x = [\n# c\n]", "f'{x:\t>{y}}'",
    "@a\ndef f(): pass", "if x:\n    pass\nelse:\n    pass", "try:\n    pass\nfinally:\n    def f(): pass",
    "class a: pass",
]  # fmt: skip
_BETWEEN = ["", "", "# c", "    # c", "        # c", "\x0c", "   ", "\t# c"]
_INDENTS = st.sampled_from(["    ", "    ", "    ", "\t", "  ", "        "])
_NAMES = st.sampled_from("abcdef")
_HEADERS = ["if x:", "with x:", "for x in y:", "while x: pass\nelse:", "match x:\n    case 1: pass\nif y:"]
_ODD_LINES = st.sampled_from(
    [
        *_SIMPLE, *_BETWEEN, *_HEADERS, "'''", '"""', "(", ")", "]", "}", "x = (", "x = {", "def f(", "class K:",
        "class", "def", "\\", "@a", "else:", "finally:", "try:", "case 1:", "x \\", "x\x0c",
    ]
)  # fmt: skip
_LINE_ENDS = st.sampled_from(["\n"] * 7 + ["\r\n", "\r\n", "\r"])


@st.composite
def _block(draw: st.DrawFn, depth: int) -> list[str]:
    """Draw the lines of a statement, with its indented body where it has one."""
    kind = draw(st.sampled_from(["simple", "simple", "function", "function", "class", "class", "compound", "between"]))
    if kind == "between":
        return [draw(st.sampled_from(_BETWEEN))]
    if kind == "simple" or depth > 2:
        return draw(st.sampled_from(_SIMPLE)).split("\n")
    lines = ["@a(1)"] if kind != "compound" and draw(st.integers(0, 4)) == 0 else []
    name = draw(_NAMES)
    headers = {
        "class": [f"class {name}:", f"class {name}(b,\n  c):  # c", f"class {name}:\n  # c"],
        "function": [f"def {name}(self):", f"async def {name}(a,\nb):  # c"],
        "compound": _HEADERS,
    }
    lines += draw(st.sampled_from(headers[kind])).split("\n")
    indent = draw(_INDENTS)
    body = [
        draw(st.sampled_from(["pass", "'''text'''", "x = 1"])).split("\n"),
        *draw(st.lists(_block(depth + 1), max_size=4)),
    ]
    return lines + [indent + line for block in body for line in block]


def files() -> st.SearchStrategy[list[str]]:
    """Return a strategy of files as lists of lines; most are right, some have syntax errors."""
    return st.lists(_block(0), min_size=1, max_size=6).map(lambda blocks: [line for block in blocks for line in block])


@st.composite
def edited(draw: st.DrawFn, lines: list[str]) -> list[str]:
    """Draw another version of a file: one to four edits of a few lines each."""
    lines = list(lines)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(lines)))
        stop = min(len(lines), start + draw(st.integers(0, 4)))
        some = lines[start:stop]
        edit = draw(st.sampled_from(["cut", "repeat", "move", "indent", "dedent", "odd", "block", "block"]))
        if edit == "repeat":
            some = some + some
        elif edit == "indent":
            some = [draw(_INDENTS) + line for line in some]
        elif edit == "dedent":
            some = [line[draw(st.integers(0, 4)) :] if line[:1] in (" ", "\t") else line for line in some]
        elif edit == "odd":
            some = [*some, draw(st.sampled_from(["", "    "])) + draw(_ODD_LINES)]
        elif edit == "block":
            indent = draw(st.sampled_from(["", "    "]))
            some = [*some, *(indent + line for line in draw(_block(1)))]
        elif edit in ("cut", "move"):
            some = []
        moved = lines[start:stop] if edit == "move" else []
        lines[start:stop] = some
        at = draw(st.integers(0, len(lines)))
        lines[at:at] = moved
    return lines


def _joined(lines: list[str], end: str) -> bytes:
    """Return a file's bytes."""
    return end.join(line.replace("\n", end) for line in lines).encode()


@st.composite
def versions(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Draw two versions of a file, now and then with another kind of line end or a byte order mark."""
    lines = draw(files())
    end = draw(_LINE_ENDS)
    others = draw(st.sampled_from([end] * 9 + ["\n"]))
    tails = [draw(st.sampled_from(["\n", "\n", ""])) for _ in range(2)]
    marks = [draw(st.sampled_from([b""] * 9 + [BOM_UTF8])) for _ in range(2)]
    old = marks[0] + _joined(lines, end) + tails[0].encode()
    return old, marks[1] + _joined(draw(edited(lines)), others) + tails[1].encode()
