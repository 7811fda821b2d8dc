"""Texts made column by column: no Python string per row."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def number_texts(values: npt.NDArray[np.float64]) -> pa.Array:
    """Return each number's shortest text that gives the number back, as Python writes it."""
    distinct, place = np.unique(values, return_inverse=True)
    return pa.array([repr(value) for value in distinct.tolist()], pa.string()).take(pa.array(place.reshape(-1)))


def join_texts(*parts: str | pa.Array) -> pa.Array:
    """Return the parts of each row one behind the other; a plain text stands in every row."""
    return pc.binary_join_element_wise(*parts, "")


def constant(text: str, count: int) -> pa.Array:
    """Return the same text for every row."""
    return pa.repeat(pa.scalar(text, pa.string()), count)
