"""Old methods as brand-new ones are compared with them: each text once."""

from collections.abc import Iterable

from features.docstrings import code_without_docstring
from miners.cutoff import OldDefinition
from schemas.comparisons import OldMethod
from schemas.errors import DataError


def distinct_old_methods(repo: str, commit_id: str, definitions: Iterable[OldDefinition]) -> list[OldMethod]:
    """Return the methods with different texts, docstring apart, the first of each in the given order.

    A definition that is not one on its own is compared as it stands.
    """
    found: dict[str, OldMethod] = {}
    for item in definitions:
        try:
            text = code_without_docstring(item.code)
        except DataError:
            text = item.code
        if text not in found:
            found[text] = OldMethod(
                repo, commit_id, item.path, item.fun_name, item.blob_id, item.start_byte, item.end_byte,
                item.start_line, text,
            )  # fmt: skip
    return list(found.values())
