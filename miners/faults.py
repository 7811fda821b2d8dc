"""What the faults of a repository's source are to those who read its clone, in one place."""

from collections.abc import Iterator
from contextlib import contextmanager

from schemas.errors import DataError, RefusedError, SourceError, UnreachableError


@contextmanager
def reading_clone(*, optional: bool = True) -> Iterator[None]:
    """Make a fault of the source, met while its clone is made or read, the repository's own: a DataError.

    A partial clone is read from its source at any time (`miners.partial`). The reasons are `source_missing` (no
    repository there any more, or none for us), `repository_refused`, and `repository_unreachable` (a network that
    failed at every one of `miners.remote`'s tries, or a host's limit that held on). A source that is not `optional`
    keeps its error. Other errors pass: a full disk or a missing git is the machine's.
    """
    try:
        yield
    except SourceError as error:
        if not optional:
            raise
        reason = "repository_refused" if isinstance(error, RefusedError) else "source_missing"
        raise DataError(reason, str(error)) from error
    except UnreachableError as error:
        if not optional:
            raise
        raise DataError("repository_unreachable", str(error)) from error
