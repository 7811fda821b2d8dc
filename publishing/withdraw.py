"""Withdrawing a published version: its tag and its rows go as far as the Hub permits, a tombstone stays in the card."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from publishing.header import CARD_NAME
from publishing.hub import ATTRIBUTES, Change, HubFile, HubRepository, HubState
from publishing.manifest import MANIFEST_NAME
from publishing.release_files import read_manifest_head, read_manifest_paths
from publishing.withdrawn import empty_card, split_card, tombstone, with_tombstones
from schemas.errors import ConfigError

_MAIN = "main"


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What a withdrawal did, or in a dry run would do."""

    repo: str
    """owner/name."""
    version: str
    """The withdrawn version."""
    commit: str
    """The commit that had its tag; it stays in the history."""
    empties_main: bool
    """Branch main held this version, and holds no data now."""
    deleted: tuple[str, ...]
    """Its files that are deleted from the Hub's storage for good."""
    not_listed: tuple[str, ...]
    """Its files that the Hub's list of stored files has not got: deleted by an earlier attempt, or out of reach."""
    shared: Mapping[str, tuple[str, ...]]
    """Its files that stay because other revisions hold the same bytes, with these revisions."""
    in_git: tuple[str, ...]
    """Its files that stay readable in the history, by the commit's id: git itself holds them."""


@dataclass(frozen=True, slots=True)
class _Main:
    """Branch main before and after."""

    delete: tuple[str, ...]
    """Files of the version to be deleted from it."""
    base: str
    """Card without tombstones, as it will be."""
    card: str
    """Card with tombstones, as it is."""


def withdraw(target: HubRepository, version: str, reason: str, day: date, *, dry_run: bool) -> Withdrawal:
    """Withdraw a version. Idempotent: called again after a failure it goes on, since the tag goes last.

    First the tombstone and the end of the version's files on main, in one commit; then the rows' files in the Hub's
    storage, but for those that other revisions share; then the tag. ConfigError when there is no such version.
    """
    state = target.state()
    if state is None:
        raise ConfigError(f"{target.repo} is not on the Hub, or the token may not see it")
    if version not in state.tags:
        known = ", ".join(sorted(state.tags)) or "none"
        raise ConfigError(f"{target.repo} has no version {version}; it has: {known}")
    there = target.files(state.head)
    main = _look_at_main(target, state, there, version)
    left = {path: file for path, file in there.items() if path not in main.delete}
    result = _account(target, state, version, left, empties_main=bool(main.delete))
    if dry_run:
        return result
    target.require_token()
    _bury(target, state, main, version, reason, day)
    own = target.files(state.tags[version])
    found = target.delete_large_files({str(own[path].sha256) for path in result.deleted})
    target.untag(version)
    deleted = tuple(path for path in result.deleted if own[path].sha256 in found)
    return replace(result, deleted=deleted, not_listed=tuple(sorted(set(result.deleted) - set(deleted))))


def _look_at_main(target: HubRepository, state: HubState, there: Mapping[str, HubFile], version: str) -> _Main:
    """Return what has to become of main."""
    card = (target.read(CARD_NAME, state.head) or b"").decode("utf-8", "replace")
    base = split_card(card)[0]
    manifest = target.read(MANIFEST_NAME, state.head) if MANIFEST_NAME in there else None
    name, held = read_manifest_head(manifest)
    if held != version:
        return _Main((), base, card)
    listed = read_manifest_paths(manifest) - {CARD_NAME}
    return _Main(tuple(sorted(listed & set(there))), empty_card(name), card)


def _account(
    target: HubRepository, state: HubState, version: str, left: Mapping[str, HubFile], *, empties_main: bool
) -> Withdrawal:
    """Return which of a version's files can be deleted, and which other revisions hold."""
    others = {_MAIN: left} | {tag: target.files(commit) for tag, commit in sorted(state.tags.items()) if tag != version}
    holders: dict[str, list[str]] = {}
    for revision, files in others.items():
        for file in files.values():
            if file.sha256 is not None:
                holders.setdefault(file.sha256, []).append(revision)
    own = target.files(state.tags[version])
    large = {path: file.sha256 for path, file in sorted(own.items()) if file.sha256 is not None}
    return Withdrawal(
        repo=target.repo,
        version=version,
        commit=state.tags[version],
        empties_main=empties_main,
        deleted=tuple(path for path, sha256 in large.items() if sha256 not in holders),
        not_listed=(),
        shared={path: tuple(holders[sha256]) for path, sha256 in large.items() if sha256 in holders},
        in_git=tuple(sorted(set(own) - set(large) - {ATTRIBUTES})),
    )


def _bury(target: HubRepository, state: HubState, main: _Main, version: str, reason: str, day: date) -> None:
    """Put the tombstone into main's card and delete the version's files there, unless it is done."""
    stones = split_card(main.card)[1]
    if version not in {stone.version for stone in stones}:
        stones = (*stones, tombstone(version, day, reason))
    card = with_tombstones(main.base, stones)
    if card == main.card and not main.delete:
        return
    change = Change(f"Withdraw {version}", "", {CARD_NAME: card.encode("utf-8")}, main.delete)
    target.commit(change, state.head)
