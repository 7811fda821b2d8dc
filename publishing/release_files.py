"""A finished release folder, as its manifest lists it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from publishing.header import CARD_NAME
from schemas.errors import ConfigError
from warehouse.manifests import MANIFEST_NAME, read_values
from warehouse.tables import FileEntry, file_entry

# What git (git-check-ref-format) and the Hub admit as a tag, of what versions may hold.
_TAG = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]*")
_COMMIT_ID = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class ReleaseFiles:
    """A release folder whose files are those of its manifest, byte for byte."""

    folder: Path
    """The folder."""
    name: str
    """Title of the data set."""
    version: str
    """Version, fit for a tag."""
    config_digest: str
    """Digest of the configuration."""
    code_version: str
    """Version of Postquem that made it."""
    rows: Mapping[str, int]
    """Rows of every config."""
    files: tuple[FileEntry, ...]
    """Every file, the manifest included, sorted by path."""
    others: tuple[str, ...]
    """Files in the folder that the manifest does not list, sorted; they are no part of the release."""

    def card(self) -> str:
        """Return the text of the data set card."""
        return (self.folder / CARD_NAME).read_bytes().decode("utf-8")


def read_release_files(folder: Path) -> ReleaseFiles:
    """Read a release folder. ConfigError when it is none, is damaged, or has a version that cannot be a tag."""
    path = folder / MANIFEST_NAME
    manifest = read_values(path)
    try:
        listed = [FileEntry(**entry) for entry in manifest["files"]]
        version, name = str(manifest["version"]), str(manifest["name"])
        digest, code_version = str(manifest["config_digest"]), str(manifest["code_version"])
        rows = {str(config): int(count) for config, count in manifest["rows"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is damaged or of another version of Postquem ({error})") from error
    check_tag(version)
    for entry in listed:
        _check_file(folder, entry)
    files = sorted([*listed, file_entry(path, folder)], key=lambda entry: entry.path)
    known = {entry.path for entry in files}
    found = {item.relative_to(folder).as_posix() for item in folder.rglob("*") if item.is_file()}
    return ReleaseFiles(folder, name, version, digest, code_version, rows, tuple(files), tuple(sorted(found - known)))


def read_manifest_head(manifest: bytes | None) -> tuple[str, str | None]:
    """Return a manifest's title and version; an empty title and null when it is no manifest of ours."""
    try:
        values = json.loads(manifest or b"")
        return str(values["name"]), str(values["version"])
    except (ValueError, KeyError, TypeError):
        return "", None


def read_manifest_paths(manifest: bytes | None) -> frozenset[str]:
    """Return the files that a manifest lists, itself included; none when it is no manifest of ours."""
    try:
        paths = [str(entry["path"]) for entry in json.loads(manifest or b"")["files"]]
    except (ValueError, KeyError, TypeError):
        return frozenset()
    return frozenset([*paths, MANIFEST_NAME])


def check_tag(version: str) -> None:
    """Raise ConfigError for a version that could not be, or would be mistaken as, the Hub's name of a revision."""
    usable = _TAG.fullmatch(version) and ".." not in version and not version.endswith((".", ".lock"))
    if not usable or version == "main" or _COMMIT_ID.fullmatch(version):
        raise ConfigError(
            f"the version {version!r} cannot be a tag on the Hub: use letters of ASCII, digits, '.', '-', '_' and '+', "
            "beginning with a letter or digit, such as 2026.11"
        )


def git_blob_id(content: bytes) -> str:
    """Return the id that git gives a file with these bytes (a hash of its length and content)."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _check_file(folder: Path, entry: FileEntry) -> None:
    """Refuse a file that is not the one of the manifest: what is pushed is what was checked."""
    path = folder / entry.path
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{folder / MANIFEST_NAME} names a file outside its folder: {entry.path}")
    if not path.is_file():
        raise ConfigError(f"{path} is missing, though {MANIFEST_NAME} lists it; build the release again")
    found = file_entry(path, folder)
    if (found.sha256, found.bytes) != (entry.sha256, entry.bytes):
        raise ConfigError(f"{path} is not the file that {MANIFEST_NAME} lists; build the release again")
