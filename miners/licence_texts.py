"""Recognises licences by their texts and by the notices that stand in for a text."""

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from identify.identify import license_id
from identify.vendor.licenses import LICENSES

from miners.spdx import canonical

NOT_OPEN = frozenset({
    "LicenseRef-Commons-Clause", "LicenseRef-Elastic", "LicenseRef-NonCommercial", "LicenseRef-Proprietary",
    "LicenseRef-RSAL",
})  # fmt: skip
"""Terms without an SPDX id that forbid some use or sale: known, though no expression can name them."""

# A text counts as a licence when 95% of the words agree, the share that identify asks of characters.
_AGREEMENT = 0.95
# The clause on endorsement names the holders in many ways, all of which SPDX takes for one licence
# (https://spdx.org/licenses/BSD-3-Clause.html); with one on advertising (BSD-4-Clause) 89% agree, without it 86%.
_BSD3_AGREEMENT = 0.93
_ANCHOR_WORDS = 4
# Nobody repeats a licence that often in one file; bounds what a hostile file can cost.
_MAX_PLACES = 50
# A line that names a holder; "copyright notice" at the start of a wrapped line is part of the terms.
_COPYRIGHT = re.compile(
    r"^[^\w\n]*(?:copyright\b(?=.*(?:\d{4}|\(c\)|©|[\[<{]))|\(c\)|all rights reserved).*$", re.IGNORECASE | re.MULTILINE
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

# Licences that a phrase gives away although their text is no known one, or nearly that of the licence they drop
# (by the beginning of its id): SSPL is AGPL with another section 13, CPL became EPL, JSON is MIT and a sentence more.
_PHRASES = (
    (r"server side public license", "SSPL-1.0", "AGPL-"),
    (r"business source license", "BUSL-1.1", None),
    (r"elastic license 2 0", "Elastic-2.0", None),
    (r"elastic license(?! 2 0)", "LicenseRef-Elastic", None),
    (r"redis source available license", "LicenseRef-RSAL", None),
    (r"commons clause", "LicenseRef-Commons-Clause", None),
    (r"polyform noncommercial license", "PolyForm-Noncommercial-1.0.0", None),
    (r"polyform small business license", "PolyForm-Small-Business-1.0.0", None),
    (r"common public license version 1 0", "CPL-1.0", "EPL-"),
    (r"shall be used for good not evil", "JSON", "MIT"),
    (r"this license agreement is between the python software foundation psf", "PSF-2.0", None),
    (r"this license agreement is between beopen com", "Python-2.0", "PSF-2.0"),  # CPython's stack of four licences
)
_CREATIVE_COMMONS = re.compile(
    r"attribution (?P<nc>non ?commercial )?(?P<more>no ?deriv(?:ative)?s |share ?alike )?"
    r"(?P<version>\d \d) (?:international|unported|generic)"
)
# Not "commercial or non-commercial", which allows both.
_NON_COMMERCIAL = re.compile(
    r"(?<!commercial or )(?<!commercial and )(?:non ?commercial (?:use|purposes?|research)|not for commercial use)"
    r"|commercial use is (?:strictly |expressly )?(?:prohibited|forbidden|not (?:permitted|allowed))"
)

# Notices that the licences themselves recommend: the end of Apache-2.0, exhibit A of MPL-2.0, the end of the GNU texts.
_APACHE_NOTICE = re.compile(r"licensed under the apache license version 2 0 (?:the license )?you may not use")
_MPL_NOTICE = re.compile(
    r"this source code form is subject to the terms of the mozilla public license v(?:ersion)? 2 0"
)
_LATER = r"(?P<later> or (?:at your option )?(?:any )?later)?"
_GNU_NOTICES = tuple(
    re.compile(pattern)
    for pattern in (
        r"modify (?:it |them )?under the terms of the gnu (?P<kind>lesser |library |affero )?general public license "
        r"(?:l?gpl )?(?:as published by the free software foundation )?(?:either )?"
        r"version (?P<major>\d)(?: (?P<minor>\d)\b)?(?: of the license)?(?: only)?" + _LATER,
        r"modify (?:it |them )?under the terms of (?:the )?version (?P<major>\d)(?: (?P<minor>\d)\b)? of the gnu "
        r"(?P<kind>lesser |library |affero )?general public license"
        r"(?: as published by the free software foundation)?" + _LATER,
    )
)
_GNU_NAMES = {None: "GPL", "lesser ": "LGPL", "library ": "LGPL", "affero ": "AGPL"}


def recognise(text: str) -> tuple[str, ...]:
    """Return the licences of a licence file as sorted SPDX ids; empty when it holds none that is known.

    Terms without an SPDX id that forbid some use are `LicenseRef-` names, those of `NOT_OPEN`.
    """
    words = licence_words(text)
    if not words:
        return ()
    found = set(_by_text(text, words)) or set(notices(words))
    if not found and (stated := canonical(text.strip())) is not None:
        return (stated,)
    for spdx, drops in _by_phrase(" ".join(words)):
        found = {item for item in found if drops is None or not item.startswith(drops)} | {spdx}
    return tuple(sorted(found))


def notices(words: list[str]) -> Iterator[str]:
    """Yield the SPDX ids that a file's standard notices name ("Licensed under the Apache License, Version 2.0 ...")."""
    text = " ".join(words)
    if _APACHE_NOTICE.search(text):
        yield "Apache-2.0"
    if _MPL_NOTICE.search(text):
        yield "MPL-2.0"
    for pattern in _GNU_NOTICES:
        for match in pattern.finditer(text):
            suffix = "or-later" if match["later"] else "only"
            name = f"{_GNU_NAMES[match['kind']]}-{match['major']}.{match['minor'] or 0}-{suffix}"
            if (spdx := canonical(name)) is not None:
                yield spdx


def embedded(words: list[str]) -> Iterator[str]:
    """Yield ids of licences found inside a longer text, or under another title: the best at each place."""
    positions: dict[str, list[int]] = {}
    for index, word in enumerate(words):
        positions.setdefault(word, []).append(index)
    best: dict[int, tuple[float, str]] = {}
    for spdx, body, counts in _bodies():
        anchored = (
            start
            for start in positions.get(body[0], ())
            if words[start : start + _ANCHOR_WORDS] == body[:_ANCHOR_WORDS]
        )
        for start in islice(anchored, _MAX_PLACES):
            common = (counts & Counter(words[start : start + len(body)])).total() / len(body)
            if common >= (_BSD3_AGREEMENT if spdx == "BSD-3-Clause" else _AGREEMENT):
                best[start] = max(best.get(start, (0.0, "")), (common, spdx))
    return (spdx for _, spdx in best.values())


def licence_words(text: str) -> list[str]:
    """Return the words of a text, lower case, without the lines that name holders of a copyright."""
    return _WORD.findall(_COPYRIGHT.sub("", text).lower())


def _by_text(text: str, words: list[str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "LICENSE")
        path.write_text(text, encoding="utf-8", errors="replace")
        whole = license_id(str(path))
    return iter((whole,)) if whole is not None else embedded(words)


def _by_phrase(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield (id, beginning of the ids that it replaces) of everything a phrase gives away."""
    for phrase, spdx, drops in _PHRASES:
        if re.search(rf"\b{phrase}\b", text):
            yield spdx, drops
    restricted = False
    for match in _CREATIVE_COMMONS.finditer(text):
        more = (match["more"] or "").replace(" ", "")
        kind = ("-NC" if match["nc"] else "") + ("-ND" if more.startswith("noderiv") else "-SA" if more else "")
        spdx_id = canonical(f"CC-BY{kind}-{match['version'].replace(' ', '.')}")
        if kind not in ("", "-SA") and spdx_id is not None:
            restricted = True
            yield spdx_id, "CC-BY-"
    if not restricted and _NON_COMMERCIAL.search(text):
        yield "LicenseRef-NonCommercial", None


@cache
def _bodies() -> tuple[tuple[str, list[str], Counter[str]], ...]:
    """Return (id, words, word counts) of every known licence, title and appendix cut off where files vary."""
    bodies = []
    for spdx, text in LICENSES:
        joined = " ".join(licence_words(text))
        start = max(joined.find(_BODY_STARTS.get(spdx, "")), 0)
        end = joined.find(_BODY_ENDS[spdx]) if spdx in _BODY_ENDS else len(joined)
        bodies.append((spdx, joined[start:end].split()))
    return tuple((spdx, words, Counter(words)) for spdx, words in bodies)
