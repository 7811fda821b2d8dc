"""SPDX licence expressions: the canonical spelling and the names in them (https://spdx.github.io/spdx-spec/v2.3/)."""

import re

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

NOASSERTION = "NOASSERTION"
"""SPDX's word for a licence that something was found about, but not which one it is."""

_REFERENCE = "LicenseRef-"
# More than any expression that people write; bounds what a hostile header can cost.
_MAX_LENGTH = 1_000
_MAX_GROUPS = 50
_NAME = re.compile(r"[^\s()]+")


def canonical(expression: str) -> str | None:
    """Return a valid SPDX expression in its canonical spelling, None for anything else."""
    if len(expression) > _MAX_LENGTH or expression.count("(") > _MAX_GROUPS:
        return None
    try:
        return _without_outer(str(canonicalize_license_expression(expression)))
    except InvalidLicenseExpression:
        return None


def is_listed(expression: str) -> bool:
    """Tell whether every part of a canonical expression is on the SPDX list: no `LicenseRef-` of somebody's own."""
    return _REFERENCE not in expression


def licences_in(expression: str) -> frozenset[str]:
    """Return the licences of a canonical expression without exceptions, `+`, `-only` and `-or-later`."""
    words = _NAME.findall(re.sub(r" WITH \S+", "", expression))
    return frozenset(base(word) for word in words if word not in ("AND", "OR"))


def base(spdx: str) -> str:
    """Return a licence id without what it says about other versions."""
    return spdx.removesuffix("+").removesuffix("-only").removesuffix("-or-later")


def join(expressions: list[str]) -> str:
    """Return the expression under which all of the given ones hold."""
    parts = sorted(set(expressions))
    return " AND ".join(f"({part})" if " OR " in part and len(parts) > 1 else part for part in parts)


def _without_outer(expression: str) -> str:
    """Return an expression without parentheses around the whole of it."""
    while expression.startswith("(") and _closes(expression) == len(expression) - 1:
        expression = expression[1:-1].strip()
    return expression


def _closes(expression: str) -> int:
    """Return where the parenthesis that an expression begins with is closed."""
    depth = 0
    for index, character in enumerate(expression):
        depth += (character == "(") - (character == ")")
        if not depth:
            return index
    return -1
