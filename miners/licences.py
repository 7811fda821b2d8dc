"""Licences: which SPDX expression holds for a file at a commit, from its header, licence texts and project metadata."""

import codecs
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from miners.changes import display_path
from miners.copyrights import copyright_lines
from miners.licence_headers import header_copyrights, header_licences
from miners.licence_metadata import METADATA_FILES, stated_licence
from miners.licence_texts import recognise
from miners.spdx import NOASSERTION, base, canonical, is_listed, join, licences_in
from miners.trees import Entry, Trees, is_folder
from schemas.errors import DataError

# Names that licensee looks at: https://github.com/licensee/licensee/blob/main/docs/what-we-look-at.md
_LICENCE_FILE = re.compile(
    r"(?:un)?licen[sc]es?(?:[-._ ].*)?|copying(?:[-._ ].*)?|(?:mit|apache|bsd|[al]?gpl|mpl)[-._ ]licen[sc]e(?:\..*)?"
    r"|copyright(?:\.(?:txt|md|rst))?|[al]?gpl(?:[-._ ]?v?[\d.]+)?(?:\.(?:txt|md|rst))?",
    re.IGNORECASE,
)
# What is in all of these names and in those of metadata, in lower case; cheaper to look for first.
_SIGNS = (b"licen", b"copy", b"gpl", b"pyproject", b"setup")
# Notices of other people's code, and programs, archives and data that happen to bear the name.
_NOT_A_TEXT = re.compile(
    r"third.?part|3rd.?part|vendor|bundled|\.(?:pyi?|json|ya?ml|toml|cfg|sh|js|ts|html?|c|h|png|svg|whl|zip|gz)$",
    re.IGNORECASE,
)
# Pages of a documentation and lists of holders: below the root they tell a licence only when it is recognised.
_PAGE = re.compile(r"\.(?:md|rst)$|^copyright", re.IGNORECASE)
# The folder of the REUSE convention, whose files are named after their licences: https://reuse.software/spec/
_REUSE = "LICENSES"
# Licences made for texts, pictures and fonts; beside a licence for software they are not the code's.
_FOR_CONTENT = re.compile(r"CC-|CC0-|OFL-|GFDL-")
# GNU's name for the file with the LGPL, which adds to the GPL's text beside it: https://www.gnu.org/licenses/gpl-howto
_LESSER = re.compile(r"copying[-._]?(?:lesser|lib)", re.IGNORECASE)
# A longer file is no licence: the longest known bundles of notices have a few hundred kilobytes.
_MAX_BYTES = 1_000_000
# Folders kept in mind; a commit's files stand in few.
_MAX_FOLDERS = 512

Match = tuple[str, str]  # where and which licence


@dataclass(frozen=True, slots=True)
class Licence:
    """What is known of the licence of a file at a commit."""

    expression: str | None
    """The SPDX expression that holds, null when unknown."""
    matches: tuple[str, ...]
    """`where: licence` of everything found: the header, then the file's folder and those above it, by path."""
    copyrights: tuple[str, ...] = ()
    """Lines that name holders of the copyright: the header's, then those of the texts in the folder that decides."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder's entries that matter."""

    files: tuple[Match, ...]
    """(name, blob) of the files that can tell the licence, in tree order."""
    entries: Sequence[Entry]
    """All of it."""

    def folder(self, name: bytes) -> str | None:
        """Return the tree of a sub-folder, None without one."""
        return next((tree_id.hex() for mode, other, tree_id in self.entries if other == name and is_folder(mode)), None)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a folder's own files say."""

    decides: bool
    """The folder has a licence of its own, known or not: those above it do not count."""
    expression: str | None
    matches: tuple[Match, ...]
    copyrights: tuple[str, ...] = ()


class LicenceDetector:
    """Finds the licence of a repository's files at any of its commits; every text is recognised once."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._reader = trees.reader
        self._folders: OrderedDict[str, _Folder] = OrderedDict()
        self._by_folders: dict[tuple[tuple[bytes, tuple[Match, ...] | None], ...], Licence] = {}
        self._by_blob: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._stated: dict[Match, str | None] = {}

    def of_file(self, commit_id: str, path: bytes, source: bytes) -> Licence:
        """Return the licence of a file at a commit, given its path and text.

        The file's own header wins. Else the nearest folder decides, from the file's own up to the root, that has a
        licence file or metadata with a clear licence. In a folder the recognised texts are joined by AND; metadata
        counts when no text is recognised, or when it tells more exactly how the texts hold (`GPL-3.0-or-later` for
        GPL's text, `MIT OR Apache-2.0` for both). A GPL text alone does not tell "only" from "or later": it stays
        `GPL-3.0`, as on GitHub. What SPDX has no name for is unknown.
        """
        header, holders = header_licences(source), header_copyrights(source)
        found = self._of_folders(tuple(self._folders_above(commit_id, path)))
        if holders:
            found = replace(found, copyrights=tuple(dict.fromkeys((*holders, *found.copyrights))))
        if not header:
            return found
        matches = (*(f"header: {spdx}" for spdx in header), *found.matches)
        return replace(found, expression=None if NOASSERTION in header else _known(join(list(header))), matches=matches)

    def _folders_above(self, commit_id: str, path: bytes) -> Iterator[tuple[bytes, tuple[Match, ...] | None]]:
        """Yield (path, files that can tell the licence) of the folders above a file, the root first.

        The files are None for a folder that cannot be read.
        """
        names = path.split(b"/")[:-1]
        prefix = b""
        try:
            folder = self._folder(self._reader.root(commit_id))
            for depth in range(len(names) + 1):
                if folder.files:
                    yield prefix, folder.files
                tree_id = folder.folder(names[depth]) if depth < len(names) else None
                if tree_id is None:
                    return
                prefix += names[depth] + b"/"
                folder = self._folder(tree_id)
        except DataError:
            yield prefix, None

    def _of_folders(self, folders: tuple[tuple[bytes, tuple[Match, ...] | None], ...]) -> Licence:
        """Return what folders say together, given the root first; many files and commits share one answer."""
        if folders not in self._by_folders:
            matches: list[str] = []
            deciding: _Verdict | None = None
            for prefix, files in reversed(folders):
                # A missing tree: the licence is unknown, which is all there is to say.
                verdict = _Verdict(True, None, ()) if files is None else self._judge(files)
                matches += [f"{display_path(prefix)}{name}: {spdx}" for name, spdx in verdict.matches]
                deciding = verdict if deciding is None and verdict.decides else deciding
            expression, copyrights = (deciding.expression, deciding.copyrights) if deciding else (None, ())
            self._by_folders[folders] = Licence(expression, tuple(matches), copyrights)
        return self._by_folders[folders]

    def _folder(self, tree_id: str) -> _Folder:
        """Return what matters of a tree; the least recently used ones are forgotten."""
        found = self._folders.get(tree_id)
        if found is None:
            found = self._folders[tree_id] = self._read_folder(tree_id)
            if len(self._folders) > _MAX_FOLDERS:
                self._folders.popitem(last=False)
        self._folders.move_to_end(tree_id)
        return found

    def _read_folder(self, tree_id: str) -> _Folder:
        entries = self._trees.entries(tree_id)
        if not _has_sign(b"/".join([name for _, name, _ in entries])):
            return _Folder((), entries)
        folder = _Folder(
            tuple(
                (name, object_id.hex())
                for mode, raw_name, object_id in entries
                if mode.startswith(b"100") and _may_be_sign(raw_name) and _may_tell(name := display_path(raw_name))
            ),
            entries,
        )
        if (reuse := folder.folder(_REUSE.encode())) is None:
            return folder
        texts = [
            (f"{_REUSE}/{display_path(name)}", object_id.hex())
            for mode, name, object_id in self._trees.entries(reuse)
            if mode.startswith(b"100")
        ]
        return replace(folder, files=(*folder.files, *texts))

    def _judge(self, files: Sequence[Match]) -> _Verdict:
        """Weigh a folder's licence files and metadata."""
        matches: list[Match] = []
        found: list[Match] = []
        stated: list[str] = []
        has_text = False
        holders: dict[str, None] = {}
        for name, blob_id in files:
            if name in METADATA_FILES:
                expression = self._state(name, blob_id)
                matches += [] if expression is None else [(name, expression)]
                stated += [] if expression in (None, NOASSERTION) else [str(expression)]
                continue
            recognised, lines = self._read(blob_id)
            holders |= dict.fromkeys(lines)
            is_reuse = name.startswith(f"{_REUSE}/")
            named = canonical(name.rpartition("/")[2].rpartition(".")[0]) if is_reuse else None
            texts = [(name, spdx) for spdx in ((named,) if named else recognised)]
            matches += texts or [(name, NOASSERTION)]
            if named or not is_reuse:  # others there are of bundled code: the convention's names are SPDX ids
                found += texts
                has_text |= bool(texts) or not _PAGE.search(name)
        expression = _resolve(found, stated)
        return _Verdict(has_text or bool(stated), expression, tuple(sorted(matches)), tuple(holders))

    def _read(self, blob_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the licences that a text is recognised as, and its lines that name holders."""
        if blob_id not in self._by_blob:
            text = self._text(blob_id)
            self._by_blob[blob_id] = recognise(text), copyright_lines(text)
        return self._by_blob[blob_id]

    def _state(self, name: str, blob_id: str) -> str | None:
        key = (name, blob_id)
        if key not in self._stated:
            self._stated[key] = stated_licence(name, self._text(blob_id))
        return self._stated[key]

    def _text(self, blob_id: str) -> str:
        """Return a text, empty when it is missing or too long: it says nothing about the licence then."""
        try:
            if self._reader.size(blob_id) > _MAX_BYTES:
                return ""
            data = self._reader.read(blob_id)[1]
        except DataError:
            return ""
        is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return data.decode("utf-16" if is_utf16 else "utf-8-sig", "replace")


def _resolve(found: Sequence[Match], stated: Sequence[str]) -> str | None:
    """Return the expression that recognised texts (name, id) and metadata make together, None when unknown."""
    ids = sorted({spdx for _, spdx in found})
    if any(spdx.startswith("LGPL-3.0") and _LESSER.match(name) for name, spdx in found):
        ids = [spdx for spdx in ids if not spdx.startswith("GPL-3.0")]
    exact = {spdx for spdx in ids if base(spdx) != spdx}
    ids = [spdx for spdx in ids if spdx in exact or spdx not in set(map(base, exact))]
    texts = frozenset().union(*map(licences_in, ids))
    code = frozenset(spdx for spdx in texts if not _FOR_CONTENT.match(spdx))
    for expression in stated:
        named = licences_in(expression)
        offers_choice = " OR " in expression and " AND " not in expression and texts < named
        if not ids or named == texts or (named == code and code) or offers_choice:
            return _known(expression)
    return _known(join(ids)) if ids else None


def _known(expression: str) -> str | None:
    return expression if is_listed(expression) else None


def may_tell_licence(path: bytes) -> bool:
    """Tell whether a detector may read a file, by its path."""
    folder, _, raw_name = path.rpartition(b"/")
    is_reuse = folder.rpartition(b"/")[2] == _REUSE.encode()
    return is_reuse or (_may_be_sign(raw_name) and _may_tell(display_path(raw_name)))


def _has_sign(text: bytes) -> bool:
    lower = text.lower()
    return any(sign in lower for sign in _SIGNS)


_may_be_sign = lru_cache(maxsize=20_000)(_has_sign)  # commit after commit has the same names


def _may_tell(name: str) -> bool:
    """Tell whether a file's name is that of a licence file or of project metadata."""
    return name in METADATA_FILES or (_LICENCE_FILE.fullmatch(name) is not None and _NOT_A_TEXT.search(name) is None)
