"""Old methods as brand-new ones are compared with them: each text once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from features.docstrings import code_without_docstring
from miners.cutoff import OldDefinition, OldTree
from schemas.comparisons import OldMethod
from schemas.errors import DataError
from schemas.records import Exclusion


@dataclass(frozen=True, slots=True)
class OldMethods:
    """What a tree at the cutoff, or a share of it, holds."""

    methods: list[OldMethod]
    """The methods with different texts, by path and place."""
    excluded: list[Exclusion]
    """Files that could not be read, by path."""
    n_files: int
    """Files read."""
    n_methods: int
    """Methods found in them."""


def read_old_methods(tree: OldTree) -> OldMethods:
    """Read a tree at the cutoff, or a share of it."""
    methods = distinct_old_methods(tree.repo, tree.commit_id, tree.definitions())
    return OldMethods(methods, tree.excluded, tree.n_files, tree.n_methods)


def joined(shares: Sequence[OldMethods]) -> OldMethods:
    """Return what all shares of a tree, in their order, hold together."""
    return OldMethods(
        _first_of_each(item for share in shares for item in share.methods),
        [item for share in shares for item in share.excluded],
        sum(share.n_files for share in shares),
        sum(share.n_methods for share in shares),
    )


def distinct_old_methods(repo: str, commit_id: str, definitions: Iterable[OldDefinition]) -> list[OldMethod]:
    """Return the methods with different texts, docstring apart, the first of each in the given order.

    A definition that is not one on its own is compared as it stands.
    """
    return _first_of_each(_old_methods(repo, commit_id, definitions))


def _old_methods(repo: str, commit_id: str, definitions: Iterable[OldDefinition]) -> Iterator[OldMethod]:
    for item in definitions:
        try:
            text = code_without_docstring(item.code)
        except DataError:
            text = item.code
        yield OldMethod(
            repo, commit_id, item.path, item.fun_name, item.blob_id, item.start_byte, item.end_byte,
            item.start_line, text,
        )  # fmt: skip


def _first_of_each(methods: Iterable[OldMethod]) -> list[OldMethod]:
    found: dict[str, OldMethod] = {}
    for item in methods:
        found.setdefault(item.text, item)
    return list(found.values())
