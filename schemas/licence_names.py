"""Which names of licences a configuration may list."""

import re
from collections.abc import Sequence

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from schemas.errors import ConfigError


def check_licence_names(allow: Sequence[str]) -> None:
    """Refuse names that no licence expression could have."""
    if tuple(allow) == ("*",):
        return
    for name in allow:
        try:
            spelling = canonicalize_license_expression(name)
        except InvalidLicenseExpression:
            spelling = None
        if spelling != name or re.search(r" (?:AND|OR) |[()]|LicenseRef-", name):
            known = f"did you mean {spelling!r}?" if spelling and spelling != name else "as 'MIT', or ['*'] for all"
            raise ConfigError(
                f"licences.allow must list single SPDX ids (https://spdx.org/licenses/), {known}: {name!r}"
            )
