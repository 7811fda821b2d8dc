import subprocess
import sys
from pathlib import Path

import numba
import numba.core.caching
import numpy as np
import pytest

from dedup.compiled import compiled, popcount


def double(number: int) -> int:
    return 2 * number


def test_function_is_compiled_and_its_code_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    function = compiled(double)
    assert function(21) == 42
    assert [path.suffix for path in sorted(tmp_path.rglob("*.nb*"))] == [".nbc", ".nbi"]


def test_function_works_where_no_cache_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(double)
    assert compiled(double)(21) == 42


def test_bits_of_a_word_are_counted() -> None:
    count = numba.njit(lambda word: popcount(word))
    assert [count(np.uint64(word)) for word in (0, 1, 0b1011, 2**63, 2**64 - 1)] == [0, 1, 3, 1, 64]


def test_joining_loads_no_linear_algebra_and_hides_it_from_nobody() -> None:
    code = """
import sys
from fractions import Fraction
import numpy as np
from dedup.jaccard import TokenSets
from dedup.partitions import join_sides
sets = TokenSets(np.array([0, 3, 6]), np.array([1, 2, 3, 1, 2, 3], np.uint16), 10)
blocks = join_sides(sets, sets, Fraction(7, 10), 1, 1)
print([common for pairs in blocks for common in pairs.common.tolist()])
print([name for name in ("scipy.linalg", "cffi") if name in sys.modules])
import scipy.linalg
print(round(scipy.linalg.det(np.eye(2) * 3)))
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.splitlines() == ["[3, 3, 3, 3]", "[]", "9"]
