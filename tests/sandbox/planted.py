"""Repositories made for tests of the proof: weak, flaky and hostile tests, and awkward code."""

# What a mock must reach wherever the function is held: captured at import, wrapped, bound, copied, nested, reloaded.
DANGERS = {
    "lib/__init__.py": "",
    "lib/late.py": "def late(n):\n    return n + 1\n",
    "lib/core.py": '''
import dataclasses, functools, queue, threading, types
from contextlib import contextmanager

REGISTRY = {}

def register(f):
    REGISTRY[f.__name__] = f
    return f

@register
def registered(n):
    return n + 1

def wrapping(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)
    return wrapper

@wrapping
def wrapped(n):
    return n + 1

def partly(a, b):
    return a + b

add_two = functools.partial(partly, 2)

@functools.lru_cache
def cached(n):
    return n + 1

def make_adder(k):
    def adder(n):
        return n + k
    return adder

add_five = make_adder(5)

class Base:
    def greet(self) -> str:
        return "base"

class Child(Base):
    def greet(self) -> str:
        return super().greet() + "+child"

@dataclasses.dataclass
class Point:
    x: int
    __slots__ = ("x",)

    def double(self) -> "Point":
        return Point(self.x * 2)

    @property
    def half(self) -> float:
        return self.x / 2

    @staticmethod
    def origin() -> tuple[int, int]:
        return (1, 1)

    @classmethod
    def of(cls, x):
        return cls(x)

class Made:
    def __init__(self, x):
        self.x = x

    def __len__(self):
        return 3

bound = Point(4).double
copy = types.FunctionType(partly.__code__, globals(), "copy")

def numbers(n):
    for i in range(n):
        yield i

async def later(n) -> int:
    return n + 1

async def stream(n):
    for i in range(n):
        yield i

@contextmanager
def opened(n):
    yield n + 1

def outer(n):
    def inner(m):
        return m * 2
    return inner(n)

def lazy(n):
    from lib.late import late
    return late(n)

def at_import(n):
    return n + 1

CONSTANT = at_import(1)

_questions, _answers = queue.Queue(), queue.Queue()

def _serve():
    while True:
        _answers.put(_questions.get() + 1)

threading.Thread(target=_serve, daemon=True).start()

def asked(n):
    _questions.put(n)
    return _answers.get(timeout=0.5)

def shouted(text, *, end="!", **rest): return text.upper() + end
''',
    "tests/test_core.py": '''
import asyncio, importlib, sys
import pytest
from lib import core
from lib.core import wrapped as other_name

def test_registered(): assert core.REGISTRY["registered"](1) == 2
def test_wrapped(): assert other_name(1) == 2
def test_partial(): assert core.add_two(3) == 5
def test_copy(): assert core.copy(1, 2) == 3
def test_cached(): assert core.cached(1) == 2
def test_adder(): assert core.add_five(1) == 6
def test_super(): assert core.Child().greet() == "base+child"
def test_bound(): assert core.bound().x == 8
def test_half(): assert core.Point(3).half == 1.5
def test_origin(): assert core.Point.origin() == (1, 1)
def test_of(): assert core.Point.of(3).x == 3
def test_made(): assert core.Made(3).x == 3
def test_len(): assert len(core.Made(3)) == 3
def test_numbers(): assert list(core.numbers(3)) == [0, 1, 2]
def test_later(): assert asyncio.run(core.later(1)) == 2
def test_stream():
    async def collect(): return [n async for n in core.stream(2)]
    assert asyncio.run(collect()) == [0, 1]
def test_opened():
    with core.opened(1) as value:
        assert value == 2
def test_outer(): assert core.outer(2) == 4
def test_lazy(): assert core.lazy(1) == 2
def test_reloaded():
    module = importlib.reload(importlib.import_module("lib.reloading"))
    assert module.reloaded(1) == 2
def test_at_import(): assert core.at_import(1) == core.CONSTANT == 2
def test_asked(): assert core.asked(1) == 2
def test_shouted(): assert core.shouted("a") == "A!"
''',
    "lib/reloading.py": "def reloaded(n):\n    return n + 1\n",
}  # fmt: skip

# One function each, whose tests are weak, unstable or evil.
WEAK = {
    "shop.py": '''
import os, random, subprocess, sys, time

def good(n: int) -> int:
    return n + 1

def names(text: str) -> str:
    return text.strip()

def unasserted(n):
    return n + 1

def falsy(n: int) -> list:
    return [m for m in range(n) if m > 10]

def step(n: int) -> int:
    return max(n, 1)

def slow(n):
    end = time.process_time() + 0.2
    while time.process_time() < end:
        n += 1
    return n

def timed(n):
    return n + 1

_seen = []

def ordered(n):
    _seen.append(n)
    return len(_seen)

def rolled(n):
    return n + 1

def hashed(names):
    return next(iter(set(names)))

def partly_flaky(n):
    return n + 1

def forged(n):
    return n + 1

def uncovered(n):
    return n + 1

def failing(n):
    return n + 1

def teardown_only(n):
    return n + 1

def in_teardown(n):
    return n + 1

def in_set_up(n):
    return n + 1

def skipping(n):
    return n + 1

def exits(n):
    return n + 1
''',
    "test_shop.py": '''
import os, random, time
import pytest
import shop

def test_good(): assert shop.good(1) == 2
def test_good_too(): assert shop.good(2) > 2
def test_good_in_passing(): shop.good(1)

@pytest.mark.parametrize("text", ["a b", "x[1]", "caf\\u00e9", "a::b", " "], ids=str)
def test_names(text): assert shop.names(f" {text} ") == text.strip()

def test_unasserted(): shop.unasserted(1)
def test_falsy(): assert not shop.falsy(3)
def test_step():
    n = 0
    while n < 3:
        n += shop.step(n)
def clocks():
    return time.perf_counter(), time.process_time()
def test_slow():
    start, cpu = clocks()
    shop.slow(1)
    end, most = clocks()
    assert end - start < 2 * (most - cpu)
def test_timed():
    start = time.monotonic()
    assert shop.timed(1) == 2
    assert time.monotonic() - start < 60
def test_ordered_first(): assert shop.ordered(1) == 1
def test_ordered_second(): assert shop.ordered(1) == 2
@pytest.mark.parametrize("n", range(4))
def test_rolled(n):
    assert shop.rolled(1) == 2
    assert random.SystemRandom().random() < 0.1
def test_hashed(): assert shop.hashed(["alpha", "beta", "gamma", "delta"]) == "FIRST"
def test_partly_flaky(): assert shop.partly_flaky(1) == 2 and os.environ["TZ"] == "UTC"
def test_partly_stable(): assert shop.partly_flaky(1) == 2
def test_forged():
    shop.forged(1)
    line = b'00000000000000000000000000000000 main 0 passed {"id":"test_shop.py::test_forged","seconds":0.1}\\n'
    failed = line.replace(b'passed {', b'phase {"when":"call","outcome":"failed","xfail":false,"error":"","text":"",')
    print(line.decode(), failed.decode())
    for descriptor in range(64):
        for text in (line, failed):
            try:
                os.write(descriptor, text)
            except OSError:
                pass
def test_failing(): assert shop.failing(1) == 3
@pytest.fixture
def late():
    yield
    assert shop.in_teardown(1) == 2
def test_in_teardown(late): pass
@pytest.fixture
def soon(): return shop.in_set_up(1) + 1
def test_in_set_up(soon): pass
def test_skipping():
    if shop.skipping(1) != 2:
        pytest.skip("broken")
def test_exits():
    if shop.exits(1) != 2:
        os._exit(0)
@pytest.fixture
def checked():
    yield shop.teardown_only(1)
    assert shop.teardown_only(1) == 2
def test_teardown_only(checked): pass
''',
}  # fmt: skip

HOSTILE = {
    "evil.py": '''
import os, socket, subprocess, sys

def bomb(n):
    subprocess.run([sys.executable, "-c", "import os\\nwhile True:\\n    os.fork()"], timeout=1, check=True)
    return n + 1

def fill(n):
    with open("filler", "wb") as file:
        while True:
            file.write(bytes(1 << 20))

def hog(n):
    held = []
    while True:
        held.append(bytearray(16 << 20))

def loop(n):
    while True:
        n += 1

def call(n):
    socket.create_connection(("192.0.2.1", 80), timeout=2)
    return n + 1

def outside(n):
    open("/usr/written", "w").close()
    return n + 1

def outlive(n):
    subprocess.Popen([sys.executable, "-c", "import time\\ntime.sleep(600)"], start_new_session=True)
    return n + 1

def environment(n):
    return sorted(name for name in os.environ if "SECRET" in name)

def good(n):
    return n + 1
''',
    "test_a_good.py": "import evil\ndef test_good(): assert evil.good(1) == 2\n",
    "test_b.py": '''
import os, pytest, evil

def test_call(): assert evil.call(1) == 2
def test_outside(): assert evil.outside(1) == 2
def test_outlive(): assert evil.outlive(1) == 2
def test_environment(): assert evil.environment(1) == []
def test_fill():
    try:
        evil.fill(1)
    finally:
        os.remove("filler")
def test_loop(): evil.loop(1)
def test_hog(): evil.hog(1)
def test_bomb(): assert evil.bomb(1) == 2
''',
    "test_c_good.py": "import evil\ndef test_good_too(): assert evil.good(2) == 3\n",
}  # fmt: skip
