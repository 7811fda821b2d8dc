"""Origins: methods that no parent has and that are no new code all the same, because the history brought them before.

A method that was deleted and comes back, as by a revert, is `restored`; one that another branch's commit brought
too, as by a cherry-pick or back-port, is `repeated` and counts once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from miners.alike import similarity
from miners.commits import CommitHeader
from miners.methods import token_hashes
from miners.novelty import Earlier
from schemas.records import Method, Novelty

_RESOLVED = (Novelty.RESTORED, Novelty.REPEATED)


def resolve_origins(methods: Sequence[Method], headers: Sequence[CommitHeader]) -> list[Method]:
    """Return the methods of a repository with `restored` and `repeated` told from `added`, in the given order.

    The given order says which of two is the earlier one. An `added` method is `restored` when a commit that its own
    descends from brought a method with the same tokens, under whatever path; `repeated` when a commit of another
    branch brought one with the same tokens and qualified name earlier. The earliest one is named. What a former call
    said of a method is decided anew.
    """
    rows = [_unresolved(row) for row in methods]
    groups = list(_groups(rows))
    lineage = Lineage(headers, {rows[index].commit_id for group in groups for index in group})
    for group in groups:
        texts = {rows[index].code: _bytes(rows[index]) for index in group}
        by_text = {code: token_hashes(text, b"").exact if len(texts) > 1 else b"" for code, text in texts.items()}
        tokens = [by_text[rows[index].code] for index in group]
        for place, index in enumerate(group):
            if rows[index].novelty is Novelty.ADDED:
                same = [other for other, exact in zip(group, tokens, strict=True) if exact == tokens[place]]
                rows[index] = _resolve(rows[index], [methods[other] for other in same], lineage)
    return rows


def with_origin(row: Method, earlier: Earlier) -> Method:
    """Return a method that turned out to be no new code, with the evidence."""
    return replace(
        row,
        novelty=earlier.novelty,
        earlier_path=earlier.path,
        earlier_fun_name=earlier.fun_name,
        earlier_commit_id=earlier.commit_id,
        similarity=earlier.similarity,
    )


def _unresolved(row: Method) -> Method:
    if row.novelty not in _RESOLVED:
        return row
    return replace(
        row,
        novelty=Novelty.ADDED,
        earlier_path=None,
        earlier_fun_name=None,
        earlier_commit_id=None,
        similarity=None,
    )


def _groups(rows: Sequence[Method]) -> Iterable[list[int]]:
    """Yield the positions of methods that may have the same tokens, in several commits, one of them `added`."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        groups[row.token_key, row.fun_name.rpartition(".")[2]].append(index)
    for group in groups.values():
        several = len({rows[index].commit_id for index in group}) > 1
        if several and any(rows[index].novelty is Novelty.ADDED for index in group):
            yield group


def _resolve(row: Method, same: Sequence[Method], lineage: "Lineage") -> Method:
    """Return a row with its class in view of the rows with the same tokens, itself among them, earliest first."""
    for other in same:
        if lineage.descends(row.commit_id, other.commit_id):
            return with_origin(row, _evidence(row, Novelty.RESTORED, other))
    for other in same:
        if other.row_id == row.row_id:
            break
        apart = other.commit_id != row.commit_id and not lineage.descends(other.commit_id, row.commit_id)
        if apart and other.fun_name == row.fun_name:
            return with_origin(row, _evidence(row, Novelty.REPEATED, other))
    return row


def _evidence(row: Method, novelty: Novelty, origin: Method) -> Earlier:
    like = similarity(_bytes(row), _bytes(origin))
    return Earlier(novelty, origin.path, origin.fun_name, like, origin.commit_id)


class Lineage:
    """Which of some commits descend from which of others, or of themselves."""

    def __init__(
        self, headers: Sequence[CommitHeader], commit_ids: set[str], earlier_ids: set[str] | None = None
    ) -> None:
        earlier = commit_ids if earlier_ids is None else earlier_ids
        bits = {commit_id: 1 << index for index, commit_id in enumerate(sorted(earlier))}
        self._bits = bits
        self._reached = dict.fromkeys(commit_ids, 0)
        n_children = Counter(parent_id for header in headers for parent_id in header.parent_ids) if bits else Counter()
        reached: dict[str, int] = {}  # of commits with children that are still to come
        for header in headers if bits else ():  # parents first
            commit_id = header.commit_id
            mask = bits.get(commit_id, 0)
            for parent_id in header.parent_ids:
                mask |= reached.get(parent_id, 0)
                n_children[parent_id] -= 1
                if not n_children[parent_id]:
                    reached.pop(parent_id, None)
            if n_children[commit_id]:
                reached[commit_id] = mask
            if commit_id in self._reached:
                self._reached[commit_id] = mask

    def descends(self, commit_id: str, earlier_id: str) -> bool:
        """Return whether a commit descends from another one."""
        return commit_id != earlier_id and bool(self._reached[commit_id] & self._bits[earlier_id])


def _bytes(row: Method) -> bytes:
    return row.code.encode("utf-8", "surrogatepass")
