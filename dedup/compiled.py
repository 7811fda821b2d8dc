"""Functions compiled to machine code by numba, and where their compiled form is kept."""

import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# What numba imports to see whether it is there; nothing compiled here uses it (docs/adr/0006 has what that saves).
_UNUSED = ("scipy.linalg.cython_blas", "cffi")


def _load_registries() -> None:
    """Load what numba needs to compile, without linear algebra and cffi."""
    hidden = [name for name in _UNUSED if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's own word for "cannot be imported"
    try:
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    finally:
        for name in hidden:
            del sys.modules[name]


class _Kept(FunctionCache):
    """The compiled forms of a function on disk, loaded without what only compiling needs (docs/adr/0006)."""

    def load_overload(self, sig: object, target_context: Any) -> Any:  # noqa: ANN401 - numba has no types
        """Return the compiled form for a signature, None when it is not there and has to be made."""
        rtsys.initialize(target_context)  # what compiled code calls to count references to arrays
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            _load_registries()
        return found


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return the function compiled at its first call, without Python's lock, so that threads run it side by side.

    The compiled form is kept for later processes where numba may write: NUMBA_CACHE_DIR, beside the module, or the
    user's cache folder. Where none of them can be written (a read-only installation without a home) every process
    compiles for itself, which takes a few seconds.
    """
    decorated = njit(nogil=True)(function)
    try:
        decorated._cache = _Kept(function)  # type: ignore[attr-defined,no-untyped-call]  # as `cache=True` does
    except RuntimeError:  # numba's word for "no folder for the cache can be written"
        _load_registries()
    kept: Callable[Parameters, Result] = decorated
    return kept


@intrinsic
def popcount(_context, _word):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """Return the number of bits set in an unsigned 64-bit word, by the processor's instruction."""

    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate
