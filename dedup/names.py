"""Texts made and sorted column by column: no Python string per row."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_KEY_BYTES = 8  # of an unsigned 64-bit number


def sort_texts(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Return the order of texts by their UTF-8 bytes, equal ones in the order in which they come.

    Numbers made of the first eight bytes are sorted, ten times as fast as texts; only texts that begin alike are
    compared as texts.
    """
    starts, lengths, content = _buffers(texts)
    is_short = lengths.min(initial=_KEY_BYTES) < _KEY_BYTES
    # Zeros behind a shorter text: it comes before all that it begins, as byte order has it.
    padded = np.concatenate([content, np.zeros(_KEY_BYTES, np.uint8)]) if is_short or not len(content) else content
    windows = np.lib.stride_tricks.sliding_window_view(padded, _KEY_BYTES)[starts]
    if is_short:
        windows[lengths[:, np.newaxis] <= np.arange(_KEY_BYTES)] = 0
    keys = windows.view(">u8").reshape(-1).astype(np.uint64)
    order = np.argsort(keys).astype(np.int64, copy=False)
    same = keys[order[1:]] == keys[order[:-1]]
    alike = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
    tied = np.sort(order[alike])
    order[alike] = tied[pc.sort_indices(texts.take(pa.array(tied))).to_numpy()]
    return order


def _buffers(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where each text starts in the bytes of all, its length, and the bytes."""
    _, offsets, content = texts.buffers()
    if offsets is None or content is None or not len(texts):
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64), np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return bounds[:-1], np.diff(bounds), np.frombuffer(content, np.uint8)


def number_texts(values: npt.NDArray[np.float64]) -> pa.Array:
    """Return each number's shortest text that gives the number back, as Python writes it."""
    numbered = pa.array(values, pa.float64()).dictionary_encode()
    return pa.array([repr(value) for value in numbered.dictionary.to_pylist()], pa.string()).take(numbered.indices)


def join_texts(*parts: str | pa.Array) -> pa.Array:
    """Return the parts of each row one behind the other; a plain text stands in every row."""
    return pc.binary_join_element_wise(*parts, "")


def constant(text: str, count: int) -> pa.Array:
    """Return the same text for every row."""
    return pa.repeat(pa.scalar(text, pa.string()), count)
