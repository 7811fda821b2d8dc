"""Source text: a blob's contents as Python reads them (PEP 263), with byte offsets that lead back to the blob."""

import codecs
import io
import re
import tokenize
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field

from miners.git_process import ObjectReader
from miners.syntax import check_comment_runs
from schemas.errors import DataError

# First line of every pointer file: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_LFS = b"version https://git-lfs.github.com/spec/v1\n"
_NEWLINE = re.compile(rb"\r\n|\r|\n")
# Decoders such as UTF-7's decode a shift sequence anew with each byte until it ends, so that long ones take hours.
_MAX_SILENT_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Python file's contents."""

    blob_id: str
    """Its blob."""
    raw: bytes
    """The blob's bytes."""
    utf8: bytes
    """The same text in UTF-8, what is parsed; equal to `raw` for UTF-8 files, byte order mark included."""
    encoding: str
    """The encoding's name as `tokenize.detect_encoding` gives it, such as `utf-8`, `utf-8-sig`, `iso-8859-1`."""

    decoded: "array[int] | None" = field(default=None, compare=False, repr=False)
    """For each offset in `raw` the length of what is decoded before it, in UTF-8 bytes; null if `raw` is `utf8`."""

    def raw_offset(self, utf8_offset: int) -> int:
        """Return the offset in the blob of an offset in `utf8` (a character's first byte, or the end)."""
        return utf8_offset if self.decoded is None else bisect_left(self.decoded, utf8_offset)


def load_source(reader: ObjectReader, blob_id: str, max_bytes: int) -> SourceFile:
    """Read a blob as Python source.

    Raises DataError `blob_missing`, `object_corrupt`, `file_too_large` (it is not kept in memory) or as
    `decode_source` and `check_comment_runs` do.
    """
    try:
        kind, raw = reader.read(blob_id, max_bytes)
    except DataError as error:
        if error.reason == "object_missing":
            raise DataError("blob_missing", error.detail) from None
        raise
    if kind != "blob":
        raise DataError("object_corrupt", f"{blob_id} is a {kind}, not a blob")
    source = decode_source(blob_id, raw)
    check_comment_runs(source.utf8)
    return source


def decode_source(blob_id: str, raw: bytes) -> SourceFile:
    """Decode a blob as CPython decodes a file: byte order mark, then coding cookie, then UTF-8.

    Raises DataError `lfs_pointer`, `binary` (it holds a NUL byte, which no Python source may) or `undecodable` (also
    when a text cannot be decoded piece by piece, without which its offsets would not lead back to the blob).
    """
    if raw.startswith(_LFS):
        raise DataError("lfs_pointer", "the contents are in Git LFS, not in the repository")
    if b"\0" in raw:
        raise DataError("binary", "the file holds a NUL byte")
    try:
        encoding = _encoding(raw)
        text = raw.decode("utf-8" if encoding == "utf-8-sig" else encoding)
        utf8 = raw if encoding in ("utf-8", "utf-8-sig") else text.encode("utf-8")
        decoded = None if raw == utf8 else _decoded_lengths(raw, encoding, len(utf8))
    except (SyntaxError, LookupError, ValueError) as error:
        raise DataError("undecodable", str(error)) from None
    return SourceFile(blob_id, raw, utf8, encoding, decoded)


def _encoding(raw: bytes) -> str:
    """Return the encoding that PEP 263 gives the file; CR alone ends a line too, as in CPython's tokenizer."""
    first, _, rest = _split_line(raw)
    head = first + b"\n" + _split_line(rest)[0] + b"\n"
    if head.isascii() and b"coding" not in head:  # neither mark nor cookie
        return "utf-8"
    # Only the first two lines may hold the cookie; the other ones are checked when the whole file is decoded.
    return tokenize.detect_encoding(io.BytesIO(head).readline)[0]


def _split_line(data: bytes) -> tuple[bytes, bytes, bytes]:
    found = _NEWLINE.search(data)
    return (data[: found.start()], found.group(), data[found.end() :]) if found else (data, b"", b"")


def _decoded_lengths(raw: bytes, encoding: str, n_utf8: int) -> "array[int]":
    """Return, for each offset in `raw` and its end, how long the text decoded so far is in UTF-8.

    One pass, byte by byte, whatever the encoding (shift states included). Raises ValueError where that does not give
    the whole text.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    lengths = array("L", [0])
    length = last = 0
    for offset in range(len(raw)):
        piece = decoder.decode(raw[offset : offset + 1])
        if piece:
            length += len(piece.encode("utf-8"))
            last = offset
        elif offset - last > _MAX_SILENT_BYTES:
            raise ValueError(f"{encoding}: no character in {_MAX_SILENT_BYTES} bytes from offset {last}")
        lengths.append(length)
    lengths[-1] += len(decoder.decode(b"", final=True).encode("utf-8"))
    if lengths[-1] != n_utf8:
        raise ValueError(f"{encoding} cannot be decoded piece by piece")
    return lengths
