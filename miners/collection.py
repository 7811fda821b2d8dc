"""Python's cycle collector, which mining has no use for."""

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def without_collection(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return the function with the cycle collector off while it runs.

    Rows, spans and digests hold no cycles, and looking for some among millions of them took 6% of the time of sympy.
    """

    @wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return run
