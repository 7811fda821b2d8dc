"""Licences: which SPDX expression holds at a commit, from licence texts, project metadata and file headers."""

import configparser
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from identify.identify import license_id
from identify.vendor.licenses import LICENSES
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from miners.git_process import ObjectReader
from schemas.errors import DataError

_HEADER_LINES = 30
_HEADER = re.compile(r"^\W*SPDX-License-Identifier:\s*(?P<expression>[^*]+?)\s*(?:\*/|-->)?\s*$")
_LICENCE_FILE = re.compile(r"(?:un)?licen[sc]es?(?:[-._ ].*)?|copying(?:[-._ ].*)?", re.IGNORECASE)
# Notices of other people's code, and programs and data that happen to bear the name.
_NOT_A_TEXT = re.compile(
    r"third.?part|3rd.?part|vendor|bundled|\.(?:pyi?|json|ya?ml|toml|cfg|sh|js|ts|html?|c|h|png|svg)$", re.IGNORECASE
)
# Terms that turn a recognised text into a licence that is not the recognised one.
_OTHER_TERMS = ("commons clause", "server side public license", "business source license", "elastic license")
_METADATA_FILES = ("pyproject.toml", "setup.cfg")

# Trove classifiers that name exactly one SPDX licence: https://pypi.org/classifiers/
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "ISC License (ISCL)": "ISC",
    "zlib/libpng License": "Zlib",
    "Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "Python Software Foundation License": "PSF-2.0",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v2 (LGPLv2)": "LGPL-2.0-only",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
}

# A text counts as a licence when 95% of the words agree, the share that identify asks of characters.
_AGREEMENT = 0.95
_ANCHOR_WORDS = 4
# A line that names a holder; "copyright notice" at the start of a wrapped line is part of the terms.
_COPYRIGHT = re.compile(
    r"^\W*(?:copyright\b(?=.*(?:\d{4}|\(c\)|©|[\[<{]))|\(c\)|all rights reserved).*$", re.IGNORECASE | re.MULTILINE
)
_WORD = re.compile(r"[a-z0-9]+")
# Where the licence proper begins in texts whose first line is a title that many files leave out or word differently.
_BODY_STARTS = {
    "MIT": "permission is hereby granted free of charge",
    "BSD-2-Clause": "redistribution and use in source and binary forms",
    "BSD-3-Clause": "redistribution and use in source and binary forms",
    "ISC": "permission to use copy modify and or distribute",
    "Zlib": "this software is provided as is without any express",
    "BSL-1.0": "permission is hereby granted free of charge",
    "Unlicense": "this is free and unencumbered software released into",
}
# Apache's appendix ("how to apply") is often left out.
_BODY_ENDS = {"Apache-2.0": "end of terms and conditions"}
# Notices that the licences themselves recommend in place of their text.
_NOTICES = (
    (
        "Apache-2.0",
        "licensed under the apache license version 2 0 the license you may not use this file except in compliance "
        "with the license",
    ),
    (
        "MPL-2.0",
        "this source code form is subject to the terms of the mozilla public license v 2 0 if a copy of the mpl was "
        "not distributed with this file you can obtain one at",
    ),
)


class LicenceDetector:
    """Finds the licence of a repository at any of its commits; every text is recognised once."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self._by_files: dict[tuple[tuple[str, str], ...], str | None] = {}
        self._by_blob: dict[str, tuple[str, ...]] = {}

    def at_commit(self, commit_id: str) -> str | None:
        """Return the SPDX expression at a commit, None when unknown.

        Recognised licence files of the root folder and of `LICENSES/` are joined by AND. Project metadata
        (pyproject.toml, setup.cfg) counts when no text is recognised, or when it names the same licences more
        exactly (`GPL-3.0-or-later` for GPL's text, `MIT OR Apache-2.0` for both texts). A GPL text alone does not
        tell "only" from "or later": it stays `GPL-3.0`, as on GitHub.
        """
        try:
            files = tuple(self._relevant(commit_id))
        except DataError:
            return None  # a missing tree: the licence is unknown, which is all there is to say
        if files not in self._by_files:
            self._by_files[files] = self._expression(files)
        return self._by_files[files]

    def _relevant(self, commit_id: str) -> Iterator[tuple[str, str]]:
        """Yield (path, blob) of the files that decide the licence, in tree order."""
        root = self._reader.read(commit_id)[1].split(b"\n", 1)[0].removeprefix(b"tree ").decode()
        for mode, name, object_id in self._entries(root):
            if mode == "40000" and name.upper() == "LICENSES":
                yield from ((f"{name}/{inner}", oid) for kind, inner, oid in self._entries(object_id) if _is_file(kind))
            elif _is_file(mode) and (name in _METADATA_FILES or _is_licence_file(name)):
                yield name, object_id

    def _entries(self, tree_id: str) -> Iterator[tuple[str, str, str]]:
        """Yield (mode, name, id) of a tree object."""
        kind, data = self._reader.read(tree_id)
        if kind != "tree":
            return
        width = len(tree_id) // 2
        position = 0
        while position < len(data):
            end = data.index(b"\0", position)
            mode, _, name = data[position:end].partition(b" ")
            position = end + 1 + width
            yield mode.decode(), name.decode("utf-8", "backslashreplace"), data[end + 1 : position].hex()

    def _expression(self, files: Sequence[tuple[str, str]]) -> str | None:
        texts = [(path, blob_id) for path, blob_id in files if path not in _METADATA_FILES]
        found = sorted({spdx for path, blob_id in texts for spdx in self._recognise(path, blob_id)})
        stated = [_metadata(path, self._text(blob_id)) for path, blob_id in files if path in _METADATA_FILES]
        metadata = next((expression for expression in stated if expression is not None), None)
        if not found or (metadata is not None and _ids(metadata) == {_base(spdx) for spdx in found}):
            return metadata
        return " AND ".join(found)

    def _recognise(self, path: str, blob_id: str) -> tuple[str, ...]:
        if blob_id not in self._by_blob:
            self._by_blob[blob_id] = recognise(self._text(blob_id))
        if not self._by_blob[blob_id] and "/" in path:
            # The REUSE convention names the file after the licence: https://reuse.software/spec/
            named = canonical(Path(path).stem)
            return (named,) if named else ()
        return self._by_blob[blob_id]

    def _text(self, blob_id: str) -> str:
        try:
            return self._reader.read(blob_id)[1].decode("utf-8-sig", "replace")
        except DataError:
            return ""  # a missing blob says nothing about the licence


def header_licence(source: bytes) -> str | None:
    """Return the file's own SPDX expression (`SPDX-License-Identifier:` in its first 30 lines), None without one."""
    lines = source[:20_000].decode("utf-8", "replace").splitlines()[:_HEADER_LINES]
    stated = [canonical(match["expression"]) for match in map(_HEADER.match, lines) if match]
    known = sorted({expression for expression in stated if expression is not None})
    if len(known) > 1:
        known = [f"({expression})" if " OR " in expression else expression for expression in known]
    return " AND ".join(known) or None


def canonical(expression: str) -> str | None:
    """Return a valid SPDX expression in its canonical spelling, None for anything else."""
    try:
        return str(canonicalize_license_expression(expression))
    except InvalidLicenseExpression:
        return None


def recognise(text: str) -> tuple[str, ...]:
    """Return the SPDX ids of the licence texts in a file, sorted; empty when it holds none that is known."""
    lowered = " ".join(text.lower().split())
    if not lowered or any(terms in lowered for terms in _OTHER_TERMS):
        return ()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "LICENSE")
        path.write_text(text, encoding="utf-8", errors="replace")
        whole = license_id(str(path))
    return (whole,) if whole is not None else tuple(sorted(set(_embedded(text))))


def _embedded(text: str) -> Iterator[str]:
    """Yield ids of licences found inside a longer text, or under another title: the best at each place."""
    words = _words(text)
    positions: dict[str, list[int]] = {}
    for index, word in enumerate(words):
        positions.setdefault(word, []).append(index)
    best: dict[int, tuple[float, str]] = {}
    for spdx, body, counts in _bodies():
        for start in positions.get(body[0], ()):
            if words[start : start + _ANCHOR_WORDS] != body[:_ANCHOR_WORDS]:
                continue
            common = (counts & Counter(words[start : start + len(body)])).total() / len(body)
            if common >= _AGREEMENT:
                best[start] = max(best.get(start, (0.0, "")), (common, spdx))
    return (spdx for _, spdx in best.values())


@cache
def _bodies() -> tuple[tuple[str, list[str], Counter[str]], ...]:
    """Return (id, words, word counts) of every known licence, title and appendix cut off where files vary."""
    bodies = []
    for spdx, text in LICENSES:
        joined = " ".join(_words(text))
        start = max(joined.find(_BODY_STARTS.get(spdx, "")), 0)
        end = joined.find(_BODY_ENDS[spdx]) if spdx in _BODY_ENDS else len(joined)
        bodies.append((spdx, joined[start:end].split()))
    bodies.extend((spdx, notice.split()) for spdx, notice in _NOTICES)
    return tuple((spdx, words, Counter(words)) for spdx, words in bodies)


def _words(text: str) -> list[str]:
    return _WORD.findall(_COPYRIGHT.sub("", text).lower())


def _is_file(mode: str) -> bool:
    return mode.startswith("100")


def _is_licence_file(name: str) -> bool:
    return _LICENCE_FILE.fullmatch(name) is not None and _NOT_A_TEXT.search(name) is None


def _ids(expression: str) -> set[str]:
    return {_base(word) for word in re.split(r"[\s()]+", expression) if word and word not in ("AND", "OR", "WITH")}


def _base(spdx: str) -> str:
    return spdx.removesuffix("-only").removesuffix("-or-later")


def _metadata(path: str, text: str) -> str | None:
    """Return the licence that project metadata states, None when it states none or none that SPDX knows."""
    stated, classifiers = _from_pyproject(text) if path == "pyproject.toml" else _from_setup_cfg(text)
    for value in stated:
        expression = canonical(value) if isinstance(value, str) else None
        if expression is not None:
            return expression
    names = [str(item).rpartition("::")[2].strip() for item in classifiers if str(item).startswith("License ::")]
    known = sorted({_CLASSIFIERS[name] for name in names if name in _CLASSIFIERS})
    return known[0] if len(known) == 1 else None


def _from_pyproject(text: str) -> tuple[list[object], list[object]]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return [], []
    project, tool = _table(data, "project"), _table(data, "tool")
    poetry = _table(tool, "poetry")
    stated = [project.get("license"), _table(project, "license").get("text"), poetry.get("license")]
    classifiers = project.get("classifiers", poetry.get("classifiers"))
    return stated, classifiers if isinstance(classifiers, list) else []


def _from_setup_cfg(text: str) -> tuple[list[object], list[object]]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return [], []
    stated: list[object] = [parser.get("metadata", "license", fallback=None)]
    classifiers = parser.get("metadata", "classifiers", fallback=None)
    return stated, list((classifiers or "").split("\n"))


def _table(data: dict[str, object], key: str) -> dict[str, object]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}
