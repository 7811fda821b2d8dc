"""Finds mined methods again in a later tree of their repository, where they stand as their commit brought them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from miners.caches import list_python
from miners.git_process import ObjectReader
from miners.methods import dedent, scan
from miners.partial import fetch_files
from miners.sources import SourceFile, load_source
from miners.syntax import parse
from schemas.errors import DataError
from schemas.records import DataPoint


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a method stands in a tree."""

    source: SourceFile
    """Its file there."""
    start_byte: int
    """Offset of its first decorator or `def` in `source.raw`."""
    end_byte: int
    """Offset just behind its last statement."""


def find_standing(
    git_dir: Path, commit_id: str, points: Iterable[DataPoint], max_bytes: int
) -> Iterator[tuple[DataPoint, Standing | DataError]]:
    """Yield each point with its place in the tree of `commit_id`, or the DataError that says why it has none.

    A method stands there when its path holds one definition of its qualified name with exactly its code
    (`not_at_head` otherwise); where the file itself has not changed its offsets are those of the point. Files are
    read as the miner reads them, with its reasons.
    """
    fetch_files(git_dir, commit_id, b".py")
    blobs = {path: blob_id for blob_id, paths in list_python(git_dir, commit_id).items() for path in paths}
    by_path: dict[str, list[DataPoint]] = {}
    for point in points:
        by_path.setdefault(point.path, []).append(point)
    with ObjectReader(git_dir) as reader:
        for path, group in by_path.items():
            try:
                source = _load(reader, blobs, path, max_bytes)
            except DataError as error:
                yield from ((point, error) for point in group)
                continue
            codes: dict[tuple[str, str], Standing | None] | None = None
            for point in group:
                if point.blob_id == source.blob_id:
                    yield point, Standing(source, point.start_byte, point.end_byte)
                    continue
                codes = _definitions(source) if codes is None else codes
                found = codes.get((point.fun_name, point.code))
                yield point, found or DataError("not_at_head", f"{path} has changed there since {point.commit_id}")


def _load(reader: ObjectReader, blobs: Mapping[str, str], path: str, max_bytes: int) -> SourceFile:
    if path not in blobs:
        raise DataError("not_at_head", f"the tree has no file {path}")
    return load_source(reader, blobs[path], max_bytes)


def _definitions(source: SourceFile) -> dict[tuple[str, str], Standing | None]:
    """Return every method of a file by qualified name and code; None where two have the same."""
    found: dict[tuple[str, str], Standing | None] = {}
    for span in scan(source.utf8, parse(source.utf8), {}):
        if span.nested or not span.scope_known:
            continue
        try:
            key = span.fun_name, dedent(source.utf8, span)
        except DataError:
            continue  # such a definition was excluded when it was mined
        place = Standing(source, source.raw_offset(span.start_byte), source.raw_offset(span.end_byte))
        found[key] = None if key in found else place
    return found
