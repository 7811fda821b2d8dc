"""Publishing a release: one commit, one tag, nothing when nothing changed; what was interrupted goes on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from publishing.header import CARD_NAME
from publishing.hub import ATTRIBUTES, Change, HubFile, HubRepository, HubState
from publishing.manifest import MANIFEST_NAME
from publishing.release_files import ReleaseFiles, git_blob_id, read_manifest_paths
from publishing.withdrawn import split_card, with_tombstones
from schemas.errors import ConfigError, PipelineError


class PushStatus(StrEnum):
    """What a push did."""

    PUSHED = "pushed"
    """A commit and its tag."""
    TAGGED = "tagged"
    """A tag for a commit of an earlier push that did not get that far."""
    UNCHANGED = "unchanged"
    """The tag was there with the same contents."""
    PLANNED = "planned"
    """Nothing: a dry run."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """What a push did, or in a dry run would do."""

    status: PushStatus
    """What was done."""
    repo: str
    """owner/name."""
    version: str
    """The version, which is the tag."""
    commit: str | None = None
    """The tagged commit; null in a dry run."""
    creates: bool = False
    """The repository is new."""
    added: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the files that are new or changed, by path."""
    deleted: tuple[str, ...] = ()
    """Files of earlier versions that this one has not got, removed from branch main."""
    kept: tuple[str, ...] = ()
    """Files on the Hub that no release put there, left alone."""
    tags: bool = True
    """The version gets its tag."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A release as a revision should hold it."""

    release: ReleaseFiles
    """The folder."""
    card: bytes
    """The card, with the tombstones of withdrawn versions."""

    def same(self, path: str, found: HubFile) -> bool:
        """Tell whether a file on the Hub has the bytes of the release's."""
        entry = next(entry for entry in self.release.files if entry.path == path)
        if path != CARD_NAME and found.sha256 is not None:
            return found.sha256 == entry.sha256
        return found.blob_id == git_blob_id(self.content(path))

    def content(self, path: str) -> bytes:
        """Return the bytes of a file."""
        return self.card if path == CARD_NAME else (self.release.folder / path).read_bytes()

    def source(self, path: str) -> Path | bytes:
        """Return a file as the client takes it, which reads large ones piece by piece."""
        return self.card if path == CARD_NAME else self.release.folder / path


def push(release: ReleaseFiles, target: HubRepository, *, private: bool, dry_run: bool) -> PushResult:
    """Make the Hub hold a release under its version's tag. Idempotent: to be called again after any failure.

    ConfigError when the tag is there with other contents, the version was withdrawn, or the repository is public
    though `private` is asked for; PipelineError when somebody else changed the repository meanwhile.
    """
    state = target.state()
    if state is None:
        every = {entry.path: len(_plain(release).content(entry.path)) for entry in release.files}
        plan = PushResult(PushStatus.PLANNED, target.repo, release.version, creates=True, added=every)
        if dry_run:
            return plan
        target.require_token()
        target.create(private=private)
        state = target.state()
        if state is None:
            raise PipelineError(f"{target.repo} was made but cannot be seen; look at it on the Hub and push again")
        return replace(_publish(release, target, state, dry_run=False), creates=True)
    if private and not state.private:
        raise ConfigError(f"{target.repo} is public; make it private in its settings, or leave --private out")
    return _publish(release, target, state, dry_run=dry_run)


def _publish(release: ReleaseFiles, target: HubRepository, state: HubState, *, dry_run: bool) -> PushResult:
    """Commit what differs from main and tag it."""
    if release.version in state.tags:
        return _compare(release, target, state.tags[release.version])
    wanted = _wanted(release, target, state.head, refuse_withdrawn=True)
    there = target.files(state.head)
    result = _plan(wanted, target, state.head, there)
    if result.kept and MANIFEST_NAME not in there:
        raise ConfigError(
            f"{target.repo} holds something else than releases ({', '.join(result.kept[:3])}); "
            "push to a repository of its own"
        )
    if dry_run:
        return result
    target.require_token()
    commit = state.head
    if result.added or result.deleted:
        change = Change(
            title=f"Release {release.version}",
            text=f"Made with Postquem {release.code_version}; configuration {release.config_digest}.",
            add={path: wanted.source(path) for path in result.added},
            delete=result.deleted,
        )
        commit = target.commit(change, state.head)
    if not target.tag(release.version, commit):
        _compare(release, target, release.version)  # somebody was faster: with the same contents all is well
    status = PushStatus.PUSHED if result.added or result.deleted else PushStatus.TAGGED
    return replace(result, status=status, commit=commit)


def _compare(release: ReleaseFiles, target: HubRepository, commit: str) -> PushResult:
    """Return that nothing is to do; ConfigError when the tagged commit does not hold this very release."""
    result = _plan(_wanted(release, target, commit), target, commit, target.files(commit))
    if result.added or result.deleted:
        differing = [*result.added, *result.deleted]
        raise ConfigError(
            f"{target.repo} has a version {release.version} with other contents ({', '.join(differing[:3])}"
            f"{' ...' if len(differing) > 3 else ''}); give the release a new version"
        )
    return replace(result, status=PushStatus.UNCHANGED, commit=commit, tags=False)


def _plan(wanted: _Wanted, target: HubRepository, revision: str, there: Mapping[str, HubFile]) -> PushResult:
    """Return what has to change for a revision with these files to hold the release and nothing of other versions.

    Files that no release put there stay, but for data that would be loaded with the release's.
    """
    paths = {entry.path for entry in wanted.release.files}
    added = {
        path: len(wanted.card) if path == CARD_NAME else (wanted.release.folder / path).stat().st_size
        for path in sorted(paths)
        if path not in there or not wanted.same(path, there[path])
    }
    manifest = target.read(MANIFEST_NAME, revision) if MANIFEST_NAME in there else None
    earlier = read_manifest_paths(manifest)
    data = tuple(f"{config}/" for config in wanted.release.rows)
    rest = sorted(set(there) - paths - {ATTRIBUTES})
    gone = [path for path in rest if path in earlier or path.startswith(data)]
    return PushResult(
        PushStatus.PLANNED,
        target.repo,
        wanted.release.version,
        added=added,
        deleted=tuple(gone),
        kept=tuple(path for path in rest if path not in gone),
    )


def _wanted(release: ReleaseFiles, target: HubRepository, revision: str, *, refuse_withdrawn: bool = False) -> _Wanted:
    """Return the release with the tombstones that stand in the card of a revision."""
    card = target.read(CARD_NAME, revision)
    _, stones = split_card("" if card is None else card.decode("utf-8", "replace"))
    if refuse_withdrawn and any(stone.version == release.version for stone in stones):
        raise ConfigError(f"version {release.version} was withdrawn from {target.repo}; give the release a new version")
    return _Wanted(release, with_tombstones(release.card(), stones).encode("utf-8"))


def _plain(release: ReleaseFiles) -> _Wanted:
    return _Wanted(release, release.card().encode("utf-8"))
