"""Texts in Arrow's columns, taken by their places."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MAX_BYTES = 2**31 - 1  # of the texts of one Arrow array


class TextRows:
    """Texts without null to take from; those of one length, as row ids are, in less than half of Arrow's time."""

    def __init__(self, texts: pa.Array) -> None:
        self.texts = texts
        self._rows = _rows_of_bytes(texts)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, places: npt.NDArray[np.integer]) -> pa.Array:
        """Return the texts at the given places, in their order."""
        count, rows = len(places), self._rows
        if rows is None or count * rows.itemsize > _MAX_BYTES:
            return self.texts.take(pa.array(places))
        content = rows.take(places)
        bounds = np.arange(count + 1, dtype=np.int32) * np.int32(rows.itemsize)
        return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(bounds), pa.py_buffer(content)])


def text_buffers(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where each text starts in the bytes of all, its length, and the bytes."""
    _, offsets, content = texts.buffers()
    if offsets is None or content is None or not len(texts):
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64), np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return bounds[:-1], np.diff(bounds), np.frombuffer(content, np.uint8)


def _rows_of_bytes(texts: pa.Array) -> npt.NDArray[np.void] | None:
    """Return the texts as values of one width, None when their lengths differ or there are no bytes."""
    starts, lengths, content = text_buffers(texts)
    width = int(lengths[0]) if len(lengths) else 0
    if not width or texts.type != pa.string() or texts.null_count or (lengths != width).any():
        return None
    return content[starts[0] :][: len(texts) * width].view(np.dtype((np.void, width)))
