"""The cycle collector is off while a function runs, and as before behind it."""

import gc

import pytest

from miners.collection import without_collection


@without_collection
def state(error: Exception | None = None) -> bool:
    if error is not None:
        raise error
    return gc.isenabled()


@without_collection
def nested() -> tuple[bool, bool]:
    return state(), gc.isenabled()


def test_off_inside_and_on_behind() -> None:
    assert (state(), gc.isenabled()) == (False, True)
    assert (nested(), gc.isenabled()) == ((False, False), True)


def test_on_behind_an_error() -> None:
    with pytest.raises(ValueError, match="broken"):
        state(ValueError("broken"))
    assert gc.isenabled()


def test_stays_off_where_it_was_off() -> None:
    gc.disable()
    try:
        assert (state(), gc.isenabled()) == (False, False)
    finally:
        gc.enable()
