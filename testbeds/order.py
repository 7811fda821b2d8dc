"""The release's total order, and the pseudo-random numbers that sampling and cuts draw from."""

import hashlib
from datetime import datetime

from schemas.records import DataPoint

_DIGEST_BYTES = 16  # 128 bits: taking a remainder of a few thousand is unbiased for any practical purpose


def total_order(point: DataPoint) -> tuple[str, datetime, str, str, int, str]:
    """Return the sort key of a release: repository, committer date, commit, path, start byte, row id."""
    return (point.repo, point.committer_date, point.commit_id, point.path, point.start_byte, point.row_id)


def draw(seed: int, purpose: str, row_id: str) -> int:
    """Return a number in [0, 2**128) that depends on the three arguments alone.

    BLAKE2b-128 of `seed NUL purpose NUL row_id`: the same on every machine, Python version and hash seed.
    """
    key = f"{seed}\0{purpose}\0{row_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest(), "big")
