import pytest

from miners.spdx import canonical, is_listed, join, licences_in


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("mit", "MIT"),
        ("apache-2.0 or mit", "Apache-2.0 OR MIT"),
        ("GPL-2.0-only with classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("BSD", None),
        ("MIT License", None),
        ("", None),
        ("MIT AND", None),
        ("(MIT", None),
        ("(MIT OR Apache-2.0)", "MIT OR Apache-2.0"),
        ("((MIT OR Apache-2.0))", "MIT OR Apache-2.0"),
        ("(MIT OR ISC) AND (Zlib OR 0BSD)", "(MIT OR ISC) AND (Zlib OR 0BSD)"),
        ("licenseref-Own", "LicenseRef-Own"),
        ("NOASSERTION", None),
        ("NONE", None),
        ("(" * 60 + "MIT" + ")" * 60, None),
        (" OR ".join(["MIT"] * 200), None),
        ("__import__('os')", None),
    ],
)
def test_canonical(given: str, expected: str | None) -> None:
    assert canonical(given) == expected


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("MIT", {"MIT"}),
        ("GPL-3.0-or-later OR (Apache-2.0 AND GPL-2.0+)", {"GPL-3.0", "Apache-2.0", "GPL-2.0"}),
        ("GPL-2.0-only WITH Classpath-exception-2.0", {"GPL-2.0"}),
    ],
)
def test_names(expression: str, names: set[str]) -> None:
    assert licences_in(expression) == names


def test_joined() -> None:
    assert join(["MIT"]) == "MIT"
    assert join(["MIT OR ISC"]) == "MIT OR ISC"
    assert join(["Zlib", "MIT OR ISC", "0BSD", "Zlib"]) == "0BSD AND (MIT OR ISC) AND Zlib"


def test_own_references_are_not_listed() -> None:
    assert is_listed("MIT AND ISC")
    assert not is_listed("MIT AND LicenseRef-Own")
