"""Pairs of definitions with equal tokens that are written differently: a sketch finds the one by the other."""

import pytest

from miners.methods import token_hashes
from miners.rescan import scan_file
from miners.sketch import SketchIndex

PAIRS = {
    "a string at the margin": '''
def f():
    text = """
low
"""
    return text
---
class A:
    def f():
        text = """
low
"""
        return text
x = 1
''',
    "brackets closed at the margin": """
def f():
    return g(
1,
)
---
class A:
    def f():
        return g(1,
  )
x = 1
""",
    "a line that goes on": """
def f(): return 1 + \\
2
---
def f():  return 1 + 2
x = 1
""",
    "comments in the header": """
def f(a, b,):
    return a
---
def f(
    a,  # it's the (first
    b,
    # and "second
):
    return a
""",
    "a comment behind the docstring": """
def f(a):
    return a
---
def f(a):
    'Doc'  # it's one
    # and here is more

    return a
""",
    "a docstring in parentheses": """
def f(a):
    return a
---
def f(a):
    ("Doc")
    return a
""",
    "a docstring in two parts": """
def f(a):
    return a
---
def f(a):
    "Doc " "and more"
    return a
""",
    "a raw docstring": """
def f(a):
    return a
---
def f(a):
    r'''Doc \\d
    def g(a): pass
    '''
    return a
""",
    "two strings, of which the first is the docstring": """
def f(a):
    'Doc'
    'more'
    return a
---
def f(a):
    '''Another doc'''
    'more'  # no doc
    return a
""",
    "a string with a hash sign": """
def f(a='#', *b):
    print("# no comment")
    return a
---
def f(a='#', *b):
    print("# no comment")  # but this is
    return a
""",
    "annotations with brackets and strings": """
def f(a: 'x[y]', b: dict[str, tuple[int, ...]] = {1: 2}) -> "list[(a)]":
    return a
---
def f(
    a: 'x[y]', b: dict[str, tuple[int, ...]] = {1: 2}
) -> "list[(a)]":
    '''Doc'''
    return a
""",
    "a nested definition": """
def f(a):
    def g(b):
        return a + b
    return g
---
class A:
    def f(a):
        '''Doc'''
        def g(b):
            return a + b
        # what follows
        return g
    def h(self): pass
""",
    "decorated with a call that holds a definition": """
@d("def g(): pass")
def f(a):
    return a
---
class A:
    @d("def g(): pass")
    # here
    def f(a):
        return a
""",
    "asynchronous": """
async def f(a):
    await a
---
async   def f(a):
        await a
x = 1
""",
    "type parameters": """
def f[T](a: T) -> T:
    return a
---
class A:
    def f[T](a: T) -> T:
        '''Doc'''
        return a
""",
    "a name that is not ASCII": """
def größe(a):
    return größe(a)
---
class A:
    def größe(a):
        # again
        return größe(a)
""",
    "nothing but a docstring": """
def f(a):
    '''One'''
---
def f(a):
    '''Another'''
    # and no code
x = 1
""",
}


@pytest.mark.parametrize("name", PAIRS)
def test_each_is_found_by_the_other(name: str) -> None:
    files = [text.lstrip("\n").encode() for text in PAIRS[name].split("---\n")]
    index = SketchIndex()
    for number, file in enumerate(files):
        index.add(str(number), file)
    tokens = []
    for file in files:
        span = scan_file(file, {}).spans[0]
        text = file[span.start_byte : span.end_byte]
        line = file.rfind(b"\n", 0, span.start_byte) + 1
        tokens.append(token_hashes(text, file[line : span.start_byte]))
        assert index.find(text, sound=True) == {"0": True, "1": True}
    assert tokens[0] == tokens[1]
