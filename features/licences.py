"""Which licences let a method go on: SPDX expressions against a list of allowed licences."""

import re
from dataclasses import dataclass
from functools import cache

from miners.licence_texts import NOT_OPEN
from schemas.config import LicencesConfig, UnknownLicence
from schemas.errors import DataError
from schemas.records import Method

_ANY = "*"
_TOKEN = re.compile(r"[()]|[^\s()]+")
_VERSIONED = re.compile(r"(?P<family>.+)-(?P<version>\d+(?:\.\d+)*)")


def require_allowed(method: Method, config: LicencesConfig) -> None:
    """Raise DataError unless a method's licence lets it go on.

    `license_not_allowed` for an expression that the list does not allow and for terms that are known not to be open
    although SPDX has no name for them; `license_unknown` for no licence at all when the configuration asks for one.
    """
    if config.allow == (_ANY,):
        allowed = True
    elif method.license is not None:
        allowed = is_allowed(method.license, config.allow)
    else:
        allowed = not any(match.rpartition(": ")[2] in NOT_OPEN for match in method.license_matches)
    if not allowed:
        raise DataError("license_not_allowed", method.license or "; ".join(method.license_matches))
    if method.license is None and config.unknown is UnknownLicence.EXCLUDE:
        raise DataError("license_unknown", "; ".join(method.license_matches))


@cache
def is_allowed(expression: str, allow: tuple[str, ...]) -> bool:
    """Tell whether a canonical SPDX expression lets its reader act under allowed licences alone.

    Of `A OR B` one must be allowed, of `A AND B` both. A licence with an exception (`WITH`) is another than the one
    without. `GPL-2.0-or-later` offers version 2.0 and every later one; in the list it allows each of them.
    """
    return _Expression(_TOKEN.findall(expression), tuple(map(_read_licence, allow))).value()


@dataclass(frozen=True, slots=True)
class _Licences:
    """One version of a licence, or one and all later ones."""

    family: str
    version: tuple[int, ...] | None
    """None for a licence without versions."""
    or_later: bool
    exception: str

    def meets(self, other: "_Licences") -> bool:
        """Tell whether both have a licence in common."""
        if (self.family, self.exception) != (other.family, other.exception):
            return False
        if self.version is None or other.version is None or self.version == other.version:
            return self.version == other.version
        return self.or_later if self.version < other.version else other.or_later


class _Expression:
    """Reads a canonical expression by SPDX's precedence: WITH, AND, OR."""

    def __init__(self, tokens: list[str], allowed: tuple[_Licences, ...]) -> None:
        self._tokens = tokens[::-1]
        self._allowed = allowed

    def value(self) -> bool:
        """Return whether what comes next, up to a closing parenthesis, is allowed."""
        result = self._all_of()
        while self._next_is("OR"):
            result = self._all_of() or result
        return result

    def _all_of(self) -> bool:
        result = self._one()
        while self._next_is("AND"):
            result = self._one() and result
        return result

    def _one(self) -> bool:
        if self._next_is("("):
            result = self.value()
            self._next_is(")")
            return result
        name = self._tokens.pop()
        if self._next_is("WITH"):
            name = f"{name} WITH {self._tokens.pop()}"
        licence = _read_licence(name)
        return any(licence.meets(item) for item in self._allowed)

    def _next_is(self, token: str) -> bool:
        """Take the next token when it is the given one."""
        if not self._tokens or self._tokens[-1] != token:
            return False
        self._tokens.pop()
        return True


def _read_licence(text: str) -> _Licences:
    """Return the licences that an SPDX id stands for; the old `GPL-3.0` without a suffix is version 3.0 only."""
    spdx, _, exception = text.partition(" WITH ")
    or_later = spdx.endswith(("+", "-or-later"))
    spdx = spdx.removesuffix("+").removesuffix("-or-later").removesuffix("-only")
    match = _VERSIONED.fullmatch(spdx)
    if match is None:
        return _Licences(spdx, None, False, exception)
    return _Licences(match["family"], _version(match["version"]), or_later, exception)


def _version(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in text.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
