"""Small functions that are awkward to cut, written for these tests."""

AWKWARD = {
    "plain": ("def f(a, b):\n    return a + b\n"),
    "decorators": ("@first\n@second(1, key=lambda x: (x, {1: 2}))\ndef f(a):\n    value = a * 2\n    return value\n"),
    "annotated signature": (
        "def f(\n"
        "    a: dict[str, int] = {'x': 1},  # a: comment\n"
        "    *rest: 'a:b',\n"
        "    key=lambda: {1: 2},\n"
        ") -> Callable[[int], str]:\n"
        "    x = a['x']\n"
        "    return x\n"
    ),
    "async": ("async def f(items):\n    async with lock:\n        async for item in items:\n            await item\n"),
    "one-liner": "def f(x): return x + 1",
    "one-liner with several statements": "def f(x): y = x; z = y; return z;",
    "one-liner with docstring": 'def f(x): "The next integer of x."; return x + 1',
    "nested function": ("def f(x):\n    @wrap\n    def inner(y):\n        return x + y\n\n    return inner\n"),
    "nested class": ("def f():\n    class Local:\n        x = 1\n    return Local\n"),
    "tabs": ('def f(x):\n\t"""Four words stand here."""\n\tif x:\n\t\treturn 1\n\treturn 2\n'),
    "crlf": ('def f(x):\r\n    """Four words stand here.\r\n\r\n    More.\r\n    """\r\n    y = x\r\n    return y\r\n'),
    "form feed": ("def f(x):\n    y = x\n\f\n    z = y\n    return z\n"),
    "non-ascii": (
        'def größe(высота, 幅="é€😀"):\n'
        '    """Vier Wörter stehen hier."""\n'
        "    面積 = высота * 幅\n"
        '    return "ü" + 面積  # ñ\n'
    ),
    "f-strings": (
        "def f(x, w):\n    y = f\"{x!r:>{w}} {{literal}} {'a' if x else 'b'}\" f'{x:{w}.{w}}' 'tail'\n    return y\n"
    ),
    "triple f-string": ('def f(x):\n    return g(f"""{x}\n  {x:\n>10}\n""", rb"\\x00", Rf"\\d{x}")\n'),
    "match": (
        "def f(command):\n"
        "    match command:\n"
        "        case {'x': int(x), **rest} if x > 0:\n"
        "            return rest\n"
        "        case [1, 2, *_] | (3 | 4):\n"
        "            return 2\n"
        "        case _:\n"
        "            pass\n"
    ),
    "backslash": ("def f(a, b):\n    total = a + \\\n        b\n    assert total, \\\n  'x'\n    return total\n"),
    "semicolons": ("def f(a):\n    a += 1; a *= 2;\n    return a;\n"),
    "trailing comments": ("def f(a):\n    b = a  # one\n    return b  # two\n    # three\n"),
    "comments only tail": ("def f(a):\n    # before\n    b = a\n    # between\n    return b\n    # tail\n    # tail\n"),
    "string statements": (
        "def f(a):\n    'Four words stand here.'\n    'not a docstring'\n    b = a\n    '''nor this'''\n"
    ),
    "else branches": (
        "def f(a):\n"
        "    for i in a:\n"
        "        break\n"
        "    else:\n"
        "        try:\n"
        "            x = 1\n"
        "        except (A, B) as e:\n"
        "            raise C from e\n"
        "        else:\n"
        "            x = 2\n"
        "        finally:\n"
        "            del x\n"
        "    while a: a -= 1\n"
    ),
    "docstring and comments": (
        'def f(a):\n    # first\n    """Four words stand here."""  # same line\n    # next\n\n    b = a\n    return b\n'
    ),
    "docstring and semicolon": ('def f(a):\n    """Four words stand here."""; b = a\n    return b\n'),
    "docstring and lone semicolon": ('def f(a):\n    """Four words stand here.""";  # why\n    b = a\n    return b\n'),
    "concatenated docstring": ("def f(a):\n    ('Four words '\n     'stand here.')\n    b = a\n    return b\n"),
    "continued docstring": ('def f(a):\n    "Four words " \\\n    "stand here."\n    b = a\n    return b\n'),
    "continuation behind docstring": ('def f(a):\n    "Four words stand here."; \\\n    b = a\n    return b\n'),
    "indented by one": ("def f(a):\n b = a\n return b"),
    "no final newline": ("def f(a):\n    b = a\n    return b"),
    "walrus and stars": (
        "def f(*a, **k):\n    if (n := len(a)) > 1: print(*a, **k)\n    return [*a, n][::-1], {**k}, a[1:2, ...]\n"
    ),
    "comparison words": ("def f(a, b):\n    return a is not b and a not in b or not a\n"),
    "numbers": ("def f():\n    return 0x_ff + 1_000.5e-3j + 0b1 + .5 + 1.\n"),
    "lambda and yield": (
        "def f():\n    x = yield lambda *a, b=1: (yield)\n    yield from x\n    return (await_ for await_ in x)\n"
    ),
    "global and del": ("def f():\n    global a, b\n    del a, b[0]\n    nonlocal_ = print\n"),
    "type hints in body": (
        "def f():\n    x: int = 1\n    y: 'list[str]'\n    z: dict[str, int] = {}\n    return x @ y, x // z, ~x\n"
    ),
    "except star": ("def f():\n    try:\n        g()\n    except* ValueError as e:\n        h(e)\n"),
    "parenthesised with": ("def f():\n    with (open('a') as a, open('b') as b):\n        return a, b\n"),
}

# Syntax that Python 3.11 does not know; `ast` is asked only where it does.
NEWER = {
    "generics": (
        "def f[T: (int, str), *Ts, **P](x: T, *a: *Ts) -> dict[T, P]:\n    type Alias[U] = list[U]\n    return {x: a}\n"
    ),
    "nested quotes": ("def f(x):\n    y = f'{x['a']} {f'{x!r}'}'\n    return y\n"),
    "generic default": ("async def f[T](x: T) -> T:\n    await x\n    return x\n"),
}
