"""A data set repository on the Hub: what it holds, how it is changed, and the Hub's errors in our words.

The only module that knows huggingface_hub, which is an optional extra and imported when it is needed. The address of
the Hub is `HF_ENDPOINT`'s, the token that of `HF_TOKEN` or of `hf auth login`.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from schemas.errors import ConfigError, PipelineError, TransientError

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

ATTRIBUTES = ".gitattributes"  # which files the Hub stores as large ones; made by the Hub itself
_KIND = "dataset"
_BRANCH = "main"
_LOGIN = "set HF_TOKEN to a token that may write (Settings > Access Tokens on the Hub), or log in with `hf auth login`"
# As the client itself does (huggingface_hub.utils.http_backoff), which retries uploads but neither commits nor tags.
_PASSING = (408, 429, 500, 502, 503, 504)
# Nothing of a release has been lost when an attempt fails, so few and patient ones.
_WAITS = (2.0, 8.0, 30.0)
_NO_SPACE = (402, 413, 507)
_UNAUTHORISED, _FORBIDDEN, _CONFLICT, _MOVED = 401, 403, 409, 412
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a revision."""

    path: str
    """Path in the repository."""
    bytes: int
    """Size."""
    blob_id: str
    """Git's id of the file, or of the pointer to it."""
    sha256: str | None
    """SHA-256 of a file in large-file storage, null for one that git holds."""


@dataclass(frozen=True, slots=True)
class HubState:
    """What a repository looks like."""

    private: bool
    """Only its owner and who is let in can see it."""
    head: str
    """Newest commit of branch main."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Commits by tag."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit does."""

    title: str
    """First line of its message."""
    text: str
    """The rest of it."""
    add: Mapping[str, Path | bytes]
    """Files to write, by path in the repository."""
    delete: Sequence[str] = ()
    """Files to remove."""


class HubRepository:
    """A data set repository `owner/name`; its methods raise errors of our tree, TransientError for a passing fault."""

    def __init__(self, repo: str) -> None:
        self.repo = repo
        self.api = _open_api()

    def require_token(self) -> None:
        """Raise ConfigError when there is no token in any of the usual places."""
        from huggingface_hub import get_token

        if get_token() is None:
            raise ConfigError(f"the Hub wants to know who pushes: {_LOGIN}")

    def state(self) -> HubState | None:
        """Return what the repository looks like; None when there is none, or none that the token may see."""
        from huggingface_hub.errors import RepositoryNotFoundError

        with _explained(self.repo):
            try:
                private = bool(self.api.dataset_info(self.repo).private)
                refs = self.api.list_repo_refs(self.repo, repo_type=_KIND)
            except RepositoryNotFoundError:
                return None
        heads = [ref.target_commit for ref in refs.branches if ref.name == _BRANCH]
        if not heads:
            raise PipelineError(f"{self.repo} has no branch {_BRANCH}; make one on the Hub, or take another repository")
        return HubState(private, heads[0], {ref.name: ref.target_commit for ref in refs.tags})

    def files(self, revision: str) -> dict[str, HubFile]:
        """Return the files of a revision by path."""
        from huggingface_hub.hf_api import RepoFile

        with _explained(self.repo):
            items = list(self.api.list_repo_tree(self.repo, recursive=True, revision=revision, repo_type=_KIND))
        return {
            item.path: HubFile(item.path, item.size, item.blob_id, item.lfs.sha256 if item.lfs else None)
            for item in items
            if isinstance(item, RepoFile)
        }

    def read(self, path: str, revision: str) -> bytes | None:
        """Return the bytes of a small file of a revision, None when it is not there."""
        from huggingface_hub.errors import RemoteEntryNotFoundError

        with _explained(self.repo), TemporaryDirectory() as folder:
            try:
                found = self.api.hf_hub_download(self.repo, path, revision=revision, repo_type=_KIND, local_dir=folder)
            except RemoteEntryNotFoundError:
                return None
            return Path(found).read_bytes()

    def create(self, *, private: bool) -> None:
        """Make the repository, unless there is one."""
        with _explained(self.repo):
            self.api.create_repo(self.repo, repo_type=_KIND, private=private, exist_ok=True)

    def commit(self, change: Change, parent: str) -> str:
        """Upload files and make one commit on main, if its head is still `parent`; return the commit.

        What is uploaded stays with the Hub when the commit fails, and is not sent again.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        add = [
            CommitOperationAdd(path, str(source) if isinstance(source, Path) else source)
            for path, source in change.add.items()
        ]
        delete = [CommitOperationDelete(path) for path in change.delete]
        with _explained(self.repo):
            made = self.api.create_commit(
                self.repo,
                [*add, *delete],
                commit_message=change.title,
                commit_description=change.text,
                repo_type=_KIND,
                parent_commit=parent,
            )
        return made.oid

    def tag(self, name: str, commit: str) -> bool:
        """Tag a commit; False when there is such a tag already."""
        from huggingface_hub.errors import HfHubHTTPError

        with _explained(self.repo):
            try:
                self.api.create_tag(self.repo, tag=name, revision=commit, repo_type=_KIND)
            except HfHubHTTPError as error:
                if error.response.status_code != _CONFLICT:
                    raise
                return False
        return True

    def untag(self, name: str) -> None:
        """Remove a tag."""
        with _explained(self.repo):
            self.api.delete_tag(self.repo, tag=name, repo_type=_KIND)

    def delete_large_files(self, hashes: set[str]) -> set[str]:
        """Delete files from large-file storage for good, by SHA-256; return those that were there.

        The history is not rewritten: commits keep their ids and the pointers, which lead nowhere then.
        """
        with _explained(self.repo):
            found = [item for item in self.api.list_lfs_files(self.repo, repo_type=_KIND) if item.file_oid in hashes]
            self.api.permanently_delete_lfs_files(self.repo, found, rewrite_history=False, repo_type=_KIND)
        return {item.file_oid for item in found}


def patiently(
    attempt: Callable[[], Result], note: Callable[[str], None], wait: Callable[[float], None] = time.sleep
) -> Result:
    """Return what an idempotent attempt returns; after a passing fault say so, wait and try again, thrice at most."""
    for seconds in _WAITS:
        try:
            return attempt()
        except TransientError as error:
            note(f"{error}; trying again in {seconds:.0f} s")
            wait(seconds)
    return attempt()


def _open_api() -> "HfApi":
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError as error:
        raise ConfigError(f"{error}; the Hub needs the extra hub: pip install -e '.[hub]'") from error
    if not sys.stderr.isatty():
        disable_progress_bars()
    return HfApi(library_name="postquem")


@contextmanager
def _explained(repo: str) -> Iterator[None]:
    """Raise what the client raises as an error of our tree that says what to do."""
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        LocalTokenNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    # The transport's own base class (httpx's or httpx2's, by the client's version) is the first base of its errors.
    transport: type[BaseException] = HfHubHTTPError.__bases__[0]
    try:
        yield
    except RepositoryNotFoundError as error:
        raise ConfigError(f"{repo} is not on the Hub, or the token may not see it: {_LOGIN}") from error
    except HfHubHTTPError as error:
        raise _http_error(repo, error) from error
    except LocalTokenNotFoundError as error:
        raise ConfigError(f"the Hub wants to know who asks: {_LOGIN}") from error
    except OfflineModeIsEnabled as error:
        raise ConfigError("HF_HUB_OFFLINE forbids to reach the Hub; unset it") from error
    except HFValidationError as error:
        raise ConfigError(f"{repo!r} cannot name a repository, which is owner/name: {error}") from error
    except (transport, LocalEntryNotFoundError, ConnectionError, TimeoutError) as error:
        raise TransientError(f"the Hub could not be reached ({error or type(error).__name__})") from error
    except RuntimeError as error:  # around any fault of an upload to LFS, and by the Rust code behind Xet
        if isinstance(error.__cause__, HfHubHTTPError):
            raise _http_error(repo, error.__cause__) from error
        raise TransientError(f"an upload to the Hub's storage failed ({error.__cause__ or error})") from error
    except ValueError as error:  # the client's own word about a card or an upload that the Hub refused
        raise PipelineError(f"the Hub does not take the release: {error}") from error


def _http_error(repo: str, error: "HfHubHTTPError") -> PipelineError:
    """Return an answer of the Hub as an error."""
    status = error.response.status_code
    said = error.response.headers.get("X-Error-Message") or error.server_message or error.response.reason_phrase
    if status in _PASSING:
        return TransientError(f"the Hub is not well (status {status}: {said})")
    if status in _NO_SPACE or (status == _FORBIDDEN and "storage" in said.lower()):
        return ConfigError(f"the Hub has no space for {repo}: {said}; delete what is not needed there, or buy more")
    if status == _UNAUTHORISED:
        return ConfigError(f"the Hub does not know the token ({said}): {_LOGIN}")
    if status == _FORBIDDEN:
        return ConfigError(f"the token may not do this to {repo} ({said}): take one with write access to it")
    if status == _MOVED:
        return PipelineError(
            f"somebody else committed to {repo} meanwhile; nothing of this push is visible there. "
            "Look at what they did and push again"
        )
    return PipelineError(f"the Hub refused what was asked of {repo} (status {status}: {said})")
