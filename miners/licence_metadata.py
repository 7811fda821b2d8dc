"""The licence that project metadata states: pyproject.toml, setup.cfg and what is literal in setup.py."""

import ast
import configparser
import re
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from miners.licence_texts import recognise
from miners.spdx import NOASSERTION, canonical, join

METADATA_FILES = ("pyproject.toml", "setup.cfg", "setup.py")

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
    "Other/Proprietary License": "LicenseRef-Proprietary",
}
# The classifier above all others of its kind names no licence.
_NO_LICENCE = "OSI Approved"

# Common spellings of one licence, in the words that `_spelling` leaves. "GPLv3" does not tell "only" from "or later".
_SPELLINGS = {
    "mit": "MIT",
    "apache 2": "Apache-2.0",
    "apache software 2": "Apache-2.0",
    "apache2": "Apache-2.0",
    "asl 2": "Apache-2.0",
    "bsd 2 clause": "BSD-2-Clause",
    "2 clause bsd": "BSD-2-Clause",
    "simplified bsd": "BSD-2-Clause",
    "bsd 3 clause": "BSD-3-Clause",
    "3 clause bsd": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "modified bsd": "BSD-3-Clause",
    "isc": "ISC",
    "mpl 2": "MPL-2.0",
    "mozilla public 2": "MPL-2.0",
    "unlicense": "Unlicense",
    "proprietary": "LicenseRef-Proprietary",
}
_GNU = re.compile(
    r"(?:gnu )?(?P<kind>a|l|lesser |affero )?(?:gpl|general public) ?v?(?P<major>[23])(?: (?P<minor>[01]))?"
    r"(?P<rest> only| or later| or any later)?"
)
_GNU_KINDS = {None: "GPL", "l": "LGPL", "lesser ": "LGPL", "a": "AGPL", "affero ": "AGPL"}
# A setup.py that is longer holds data; bounds what parsing can cost.
_MAX_SETUP_PY = 200_000


@dataclass(frozen=True, slots=True)
class Statement:
    """What one metadata file says of the licence."""

    values: Sequence[object] = ()
    """Values of licence fields, in the order in which they count."""
    classifiers: Sequence[object] = ()
    """Trove classifiers of any kind."""


def stated_licence(name: str, text: str) -> str | None:
    """Return the SPDX expression of a metadata file, `NOASSERTION` for an unclear one, None when it states nothing."""
    statement = _READERS[name](text)
    values = [value for value in statement.values if isinstance(value, str) and value.strip()]
    names = [str(item).rpartition("::")[2].strip() for item in statement.classifiers if _is_licence(item)]
    for value in values:
        if (expression := _expression(value)) is not None:
            return expression
    known = {_CLASSIFIERS.get(name) for name in names if name != _NO_LICENCE}
    if len(known) == 1 and (only := known.pop()) is not None:
        return only
    return NOASSERTION if values or names else None


def _is_licence(classifier: object) -> bool:
    return isinstance(classifier, str) and classifier.strip().startswith("License ::")


def _expression(value: str) -> str | None:
    """Return the expression that a licence field means, None when that is unclear."""
    expression = canonical(value) or _CLASSIFIERS.get(value.strip())
    if expression is None:
        spelling = _spelling(value)
        expression = _SPELLINGS.get(spelling) or _gnu(spelling)
    if expression is None and (found := recognise(value) if "\n" in value.strip() else ()):
        return join(list(found))
    return expression


def _spelling(value: str) -> str:
    """Return the telling words of a licence's name: `Apache License, Version 2.0` is `apache 2`."""
    words = re.findall(r"[a-z0-9.]+", re.sub(r"\bv(?=\d)", "", value.lower().replace("+", " or later ")))
    kept = [word for word in words if word not in ("the", "license", "licence", "version", "v")]
    return " ".join(" ".join(kept).replace(".0", "").replace(".", " ").split())


def _gnu(spelling: str) -> str | None:
    match = _GNU.fullmatch(spelling)
    if match is None:
        return None
    rest = match["rest"]
    suffix = "" if rest is None else "-only" if rest == " only" else "-or-later"
    return canonical(f"{_GNU_KINDS[match['kind']]}-{match['major']}.{match['minor'] or 0}{suffix}")


def _from_pyproject(text: str) -> Statement:
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):  # the latter for deeply nested arrays
        return Statement()
    project, tool = _table(data, "project"), _table(data, "tool")
    poetry, flit = _table(tool, "poetry"), _table(_table(tool, "flit"), "metadata")
    values = [
        project.get("license"), _table(project, "license").get("text"), poetry.get("license"), flit.get("license"),
    ]  # fmt: skip
    classifiers = project.get("classifiers", poetry.get("classifiers", flit.get("classifiers")))
    return Statement(values, classifiers if isinstance(classifiers, list) else ())


def _from_setup_cfg(text: str) -> Statement:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return Statement()
    values = [parser.get("metadata", key, fallback=None) for key in ("license_expression", "license")]
    classifiers = parser.get("metadata", "classifiers", fallback=None)
    return Statement(values, (classifiers or "").split("\n"))


def _from_setup_py(text: str) -> Statement:
    """Return the literal arguments of the call of `setup`; the file is parsed and never run."""
    if len(text) > _MAX_SETUP_PY or "licen" not in text.lower():
        return Statement()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" in mined code is no business of the user's terminal
        try:
            nodes = list(ast.walk(ast.parse(text)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # NUL before 3.12; limits of depth
            return Statement()
    values: list[object] = []
    classifiers: list[object] = []
    for node in nodes:
        if isinstance(node, ast.Call) and _called(node.func) == "setup":
            arguments = {item.arg: item.value for item in node.keywords}
            values += [_constant(arguments.get(key)) for key in ("license_expression", "license")]
            listed = arguments.get("classifiers")
            classifiers += [_constant(item) for item in listed.elts] if isinstance(listed, ast.List | ast.Tuple) else []
    return Statement(values, classifiers)


def _called(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _table(data: dict[str, object], key: str) -> dict[str, object]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


_READERS = {"pyproject.toml": _from_pyproject, "setup.cfg": _from_setup_cfg, "setup.py": _from_setup_py}
