import pytest

from features.compute import compute_features
from features.licences import is_allowed
from schemas.config import FeaturesConfig, LicencesConfig, UnknownLicence
from schemas.records import Exclusion, Novelty
from tests.builders import make_method

FEATURES = FeaturesConfig()
DEFAULT = LicencesConfig()


def outcome(licences: LicencesConfig, license: str | None, *matches: str) -> tuple[str, str] | None:
    """Return the reason and detail with which a method of a licence is left out, None when it goes on."""
    method = make_method(license=license, license_matches=matches)
    kept = compute_features([method], FEATURES, licences=licences)
    if kept.rows:
        assert (kept.rows[0].license, kept.rows[0].license_matches, kept.excluded) == (license, matches, [])
        return None
    assert [(item.row_id, item.stage) for item in kept.excluded] == [(method.row_id, "features")]
    return kept.excluded[0].reason, kept.excluded[0].detail


def test_the_default_list_is_that_of_mera_unittests() -> None:
    names = [
        "MIT", "Apache-2.0", "Unlicense", "MPL-2.0", "BSD-2-Clause", "BSD-3-Clause", "EPL-1.0", "EPL-2.0", "MPL-2.0",
        "Unlicense", "0BSD",
    ]  # fmt: skip
    assert len(names) == 11
    assert DEFAULT.allow == tuple(sorted(set(names)))


@pytest.mark.parametrize(
    "license",
    [
        "GPL-3.0", "GPL-2.0-only", "GPL-3.0-or-later", "LGPL-2.1-or-later", "AGPL-3.0-only", "SSPL-1.0", "BUSL-1.1",
        "CC-BY-4.0", "CC-BY-NC-4.0", "JSON", "ISC", "MIT AND GPL-3.0-only", "Apache-2.0 WITH LLVM-exception",
        "MPL-2.0-no-copyleft-exception", "MPL-1.1",
    ],
)  # fmt: skip
def test_not_allowed_by_default(license: str) -> None:
    assert outcome(DEFAULT, license) == ("license_not_allowed", license)


@pytest.mark.parametrize(
    "license",
    [*DEFAULT.allow, "MIT OR GPL-3.0-only", "GPL-3.0-only OR MIT", "BSD-3-Clause AND MIT", "MPL-1.1+", "EPL-1.0+"],
)
def test_allowed_by_default(license: str) -> None:
    assert outcome(DEFAULT, license) is None


def test_unknown_is_not_forbidden() -> None:
    assert outcome(DEFAULT, None) is None
    assert outcome(DEFAULT, None, "LICENSE: NOASSERTION", "header: LicenseRef-Own") is None


def test_unknown_can_be_excluded() -> None:
    strict = LicencesConfig(unknown=UnknownLicence.EXCLUDE)
    assert outcome(strict, None) == ("license_unknown", "")
    assert outcome(strict, None, "LICENSE: NOASSERTION", "pyproject.toml: NOASSERTION") == (
        "license_unknown",
        "LICENSE: NOASSERTION; pyproject.toml: NOASSERTION",
    )
    assert outcome(strict, "MIT") is None
    assert outcome(strict, "GPL-3.0") == ("license_not_allowed", "GPL-3.0")


def test_terms_known_to_forbid_some_use_are_not_merely_unknown() -> None:
    matches = ("LICENSE: Apache-2.0", "LICENSE: LicenseRef-Commons-Clause")
    assert outcome(DEFAULT, None, *matches) == (
        "license_not_allowed",
        "LICENSE: Apache-2.0; LICENSE: LicenseRef-Commons-Clause",
    )
    assert outcome(LicencesConfig(allow=("*",)), None, *matches) is None


def test_a_known_licence_of_the_file_counts_whatever_else_was_found() -> None:
    assert outcome(DEFAULT, "MIT", "header: MIT", "LICENSE: LicenseRef-RSAL") is None


def test_every_licence_is_let_through_on_request() -> None:
    everything = LicencesConfig(allow=("*",))
    assert outcome(everything, "GPL-3.0-or-later") is None
    assert outcome(everything, None) is None
    assert outcome(LicencesConfig(allow=("*",), unknown=UnknownLicence.EXCLUDE), None) == ("license_unknown", "")


def test_the_novelty_class_is_looked_at_first() -> None:
    method = make_method(license="GPL-3.0", novelty=Novelty.MODIFIED)
    kept = compute_features([method], FEATURES)
    assert kept.excluded == [Exclusion(method.row_id, "features", "novelty_modified", "")]


@pytest.mark.parametrize(
    ("expression", "allow", "allowed"),
    [
        ("MIT", "MIT", True),
        ("MIT", "ISC", False),
        ("MIT+", "MIT", True),
        ("MIT OR ISC", "ISC", True),
        ("MIT AND ISC", "ISC", False),
        ("MIT AND ISC", "ISC MIT", True),
        ("MIT OR ISC AND Zlib", "ISC", False),
        ("MIT OR ISC AND Zlib", "ISC Zlib", True),
        ("MIT OR ISC AND Zlib", "MIT", True),
        ("(MIT OR ISC) AND Zlib", "MIT", False),
        ("(MIT OR ISC) AND Zlib", "Zlib ISC", True),
        ("Zlib AND (0BSD OR (MIT AND ISC))", "Zlib MIT ISC", True),
        ("Zlib AND (0BSD OR (MIT AND ISC))", "Zlib MIT", False),
        ("GPL-3.0-only", "GPL-3.0-only", True),
        ("GPL-3.0", "GPL-3.0-only", True),
        ("GPL-3.0", "GPL-3.0-or-later", True),
        ("GPL-3.0-only", "GPL-3.0-or-later", True),
        ("GPL-3.0-or-later", "GPL-3.0-only", True),
        ("GPL-2.0-or-later", "GPL-3.0-only", True),
        ("GPL-2.0+", "GPL-3.0-only", True),
        ("GPL-2.0-only", "GPL-3.0-or-later", False),
        ("GPL-2.0-only", "GPL-3.0-only", False),
        ("GPL-3.0-or-later", "GPL-2.0-only", False),
        ("GPL-3.0-only", "GPL-2.0-or-later", True),
        ("LGPL-3.0-only", "GPL-3.0-only", False),
        ("AGPL-3.0-or-later", "GPL-3.0-or-later", False),
        ("LGPL-2.1-or-later", "LGPL-3.0-only", True),
        ("Apache-1.1", "Apache-2.0", False),
        ("Apache-1.1+", "Apache-2.0", True),
        ("CC-BY-SA-4.0", "CC-BY-4.0", False),
        ("BSD-3-Clause", "BSD-2-Clause", False),
        ("BSD-3-Clause-Clear", "BSD-3-Clause", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", "GPL-2.0-only", False),
        ("GPL-2.0-only", "GPL-2.0-only+Classpath-exception-2.0", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", "GPL-2.0-only+Classpath-exception-2.0", True),
        ("MIT OR GPL-2.0-only WITH Classpath-exception-2.0", "MIT", True),
    ],
)
def test_expressions(expression: str, allow: str, allowed: bool) -> None:
    listed = tuple(name.replace("+Class", " WITH Class") for name in allow.split())
    assert is_allowed(expression, listed) is allowed
