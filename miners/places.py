"""Where a location of the configuration leads, and under which name its clone is kept."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from miners.git_process import check_branch
from schemas.config import SourceConfig
from schemas.errors import SourceError
from schemas.records import LOCAL, make_repository_key

_DEFAULT_PORT = 443
_ALLOWED = "a location is a local path, a file:// or an https:// URL"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|:)|[\w.-]+@[\w.-]+:")
_URL_NAME = re.compile(r"[A-Za-z0-9._~+-]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one repository comes from and under which name its clone is kept."""

    kind: str
    """`path`, `https` or `fast_import`."""
    url: str
    """What git is given: an absolute path or an https URL."""
    host: str
    """Host with its port unless that is the default, `local` for paths and imported streams."""
    owner: str
    """Owner (for nested groups all of them, slash-separated)."""
    name: str
    """Name without `.git`."""
    web_url: str | None
    """Base of permalinks, null without one."""
    branch: str | None
    """Branch to walk, null for the source's HEAD."""
    repo_id: int | None
    """The host's numeric id, null when there is none."""
    aliases: tuple[str, ...] = ()
    """Other names of the repository, sorted."""

    @property
    def repo(self) -> str:
        """Return owner/name."""
        return f"{self.owner}/{self.name}"

    @property
    def key(self) -> str:
        """Return what identifies the repository: `host:id` with a numeric id, else owner/name."""
        return make_repository_key(self.repo, self.host, self.repo_id, self.web_url)

    def git_dir(self, repos: Path, name: str | None = None) -> Path:
        """Return the folder of the clone below `repos`, also under another owner/name of the repository."""
        return clone_folder(repos, self.host, name or self.repo)


def clone_folder(repos: Path, host: str, repo: str) -> Path:
    """Return the folder of a repository's clone below `repos`, by its host and owner/name."""
    return repos / host.replace(":", "_") / f"{repo}.git"


def identify(source: SourceConfig, location: str, base: Path) -> Place:
    """Parse one location of a source; a relative path starts at `base`, the configuration's folder.

    Raises SourceError that says what is allowed for every other protocol, for options in disguise, for
    credentials in the URL and for a path that does not exist.
    """
    if source.branch is not None:
        check_branch(source.branch)
    if not location or location.startswith("-") or any(ord(char) < 32 for char in location):
        raise SourceError(f"{location!r} is no location; {_ALLOWED}")
    if source.fast_import:
        path = _existing(location, base)
        return _local_place(source, "fast_import", path, ("samples", path.stem))
    if location.lower().startswith("https://"):
        return _https_place(source, location)
    if location.lower().startswith("file://"):
        parts = urlsplit(location)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise SourceError(f"{location!r} names another machine; write file:///absolute/path")
        location = unquote(parts.path)
    elif _SCHEME.match(location):
        raise SourceError(f"{location!r} is not allowed: {_ALLOWED}")
    path = _existing(location, base)
    folders = [part for part in path.parts[1:] if part != ".git"]
    return _local_place(source, "path", path, (folders[-2] if len(folders) > 1 else LOCAL, folders[-1]))


def _existing(location: str, base: Path) -> Path:
    """Return the absolute path of a location, `..` resolved but symbolic links kept for the name's sake."""
    path = Path(os.path.abspath(base / Path(location).expanduser()))  # noqa: PTH100 - resolve() follows links
    if not path.exists():
        raise SourceError(f"{path} does not exist; correct it in [[sources]] or set optional = true there")
    if not path.is_dir() and not path.is_file():
        raise SourceError(f"{path} is neither a folder nor a file; correct it in [[sources]]")
    if len(path.parts) < 2:
        raise SourceError(f'{path} has no name; set repo = "owner/name" and give the repository\'s folder')
    return path


def _local_place(source: SourceConfig, kind: str, path: Path, derived: tuple[str, str]) -> Place:
    owner, name = _stated(source) or (_file_name(derived[0]), _file_name(derived[1].removesuffix(".git")))
    return Place(
        kind,
        str(path),
        LOCAL,
        owner,
        name,
        source.web_url,
        source.branch,
        source.repo_id,
        _aliases(source, owner, name),
    )


def _aliases(source: SourceConfig, owner: str, name: str) -> tuple[str, ...]:
    return tuple(sorted(set(source.aliases) - {f"{owner}/{name}"}))


def _stated(source: SourceConfig) -> tuple[str, str] | None:
    """Return the owner and name that the configuration gives; both become folders of the workspace."""
    if source.repo is None:
        return None
    owner, _, name = source.repo.partition("/")
    if not all(re.fullmatch(r"[\w+~][\w.+~-]*", part) for part in (owner, name)):
        raise SourceError(f"repo = {source.repo!r} must be owner/name of letters, digits, '.', '-', '_', '+' and '~'")
    return owner, name


def _file_name(text: str) -> str:
    """Return a name that is safe as one folder and readable in row ids."""
    name = re.sub(r"[^\w.+~-]", "-", text).lstrip(".-")
    if not name:
        raise SourceError(f'{text!r} cannot be part of a repository\'s name; set repo = "owner/name"')
    return name


def _https_place(source: SourceConfig, location: str) -> Place:
    try:
        parts = urlsplit(location)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SourceError(f"{location!r} is no valid URL: {error}") from None
    if "@" in parts.netloc:
        raise SourceError(
            f"the URL for {host} holds credentials, which would be stored with the clone; "
            "private repositories are not fetched: clone it by hand and give the path"
        )
    path = parts.path.rstrip("/").removesuffix(".git")
    names = path.strip("/").split("/")
    safe = all(_URL_NAME.fullmatch(name) and not name.startswith((".", "-")) for name in names)
    if not host or len(names) < 2 or not safe or parts.query or parts.fragment:
        raise SourceError(f"{location!r} is no repository URL; write https://host/owner/name")
    host = host if port in (None, _DEFAULT_PORT) else f"{host}:{port}"
    owner, name = _stated(source) or ("/".join(names[:-1]), names[-1])
    web = f"https://{parts.netloc.lower()}{path}"
    url = f"https://{parts.netloc.lower()}{parts.path.rstrip('/')}"
    aliases = _aliases(source, owner, name)
    return Place("https", url, host, owner, name, source.web_url or web, source.branch, source.repo_id, aliases)
