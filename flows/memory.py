"""How worker processes take memory from the kernel, which is a quarter of a large search's cost (docs/adr/0006).

The fork server of the pool imports this module first: NumPy reads the variable when it is imported.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

# A huge page is filled with zeros whole, and the kernel may first have to move others to make room for it.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt(3), malloc.h of glibc
_NEVER = 2**31 - 1
_HIGHEST = 32 * 2**20  # to which glibc raises the second by itself, and the first to twice as much


@contextmanager
def kept_memory() -> Iterator[None]:
    """Let malloc keep what is freed for what is asked for next, and give all back to the kernel in the end.

    Only with glibc; elsewhere nothing is changed.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(_MMAP_THRESHOLD, _NEVER)
    libc.mallopt(_TRIM_THRESHOLD, _NEVER)
    try:
        yield
    finally:
        libc.mallopt(_MMAP_THRESHOLD, _HIGHEST)
        libc.mallopt(_TRIM_THRESHOLD, 2 * _HIGHEST)
        libc.malloc_trim(0)
