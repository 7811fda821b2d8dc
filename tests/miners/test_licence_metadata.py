import pytest

from miners.licence_metadata import stated_licence
from tests.miners.test_licence_texts import BSD3


def pyproject(*lines: str) -> str:
    return "\n".join(["[project]", *lines]) + "\n"


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("", None),
        ("not [ toml", None),
        ("project = 3\ntool = []\n", None),
        ("x = " + "[" * 10_000, None),
        (pyproject("classifiers = 3", "license = 4"), None),
        (pyproject('name = "x"'), None),
        (pyproject('license = ""'), None),
        (pyproject('license = "mit OR apache-2.0"'), "MIT OR Apache-2.0"),
        (pyproject('license = "LicenseRef-Own"'), "LicenseRef-Own"),
        (pyproject('license = "Proprietary"'), "LicenseRef-Proprietary"),
        (pyproject('license = "NOASSERTION"'), "NOASSERTION"),
        (pyproject('license = {text = "BSD-3-Clause"}'), "BSD-3-Clause"),
        (pyproject('license = {text = "Do what you like"}'), "NOASSERTION"),
        (pyproject(f"license = {{text = '''{BSD3}'''}}"), "BSD-3-Clause"),
        (pyproject('license = {file = "COPYRIGHT"}'), None),
        ('[tool.poetry]\nlicense = "ISC"\n', "ISC"),
        ('[tool.flit.metadata]\nlicense = "ISC"\n', "ISC"),
        (pyproject('classifiers = ["License :: OSI Approved :: MIT License"]'), "MIT"),
        (pyproject('classifiers = ["License :: OSI Approved", "License :: OSI Approved :: MIT License"]'), "MIT"),
        (pyproject('classifiers = ["License :: OSI Approved :: BSD License"]'), "NOASSERTION"),
        (pyproject('classifiers = ["Topic :: Software Development", 7]'), None),
        (
            pyproject(
                'classifiers = ["License :: OSI Approved :: MIT License", '
                '"License :: OSI Approved :: ISC License (ISCL)"]'
            ),
            "NOASSERTION",
        ),
        (
            pyproject(
                'classifiers = ["License :: OSI Approved :: MIT License", "License :: OSI Approved :: BSD License"]'
            ),
            "NOASSERTION",
        ),
        (
            pyproject('license = "Apache"', 'classifiers = ["License :: OSI Approved :: Apache Software License"]'),
            "Apache-2.0",
        ),
    ],
)
def test_pyproject(text: str, expression: str | None) -> None:
    assert stated_licence("pyproject.toml", text) == expression


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("", None),
        ("no section\n", None),
        ("[metadata]\nlicense = Apache-2.0\n", "Apache-2.0"),
        ("[metadata]\nlicense_expression = MIT OR ISC\nlicense = MIT\n", "MIT OR ISC"),
        ("[metadata]\nlicense = BSD\n", "NOASSERTION"),
        ("[metadata]\nversion = %(x)s\nlicense = MIT\n", "MIT"),
        ("[metadata]\nlicense = MIT\nlicense = ISC\n", "ISC"),
        (
            "[metadata]\nlicense = Apache\nclassifiers =\n    Topic :: X\n"
            "    License :: OSI Approved :: Apache Software License\n",
            "Apache-2.0",
        ),
    ],
)
def test_setup_cfg(text: str, expression: str | None) -> None:
    assert stated_licence("setup.cfg", text) == expression


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("", None),
        ("from setuptools import setup\nsetup(name='x')\n", None),
        ("from setuptools import setup\nsetup(license='MIT')\n", "MIT"),
        ("import setuptools\nsetuptools.setup(license='MIT')\n", "MIT"),
        ("if True:\n    setup(\n        license='Apache License, Version 2.0',\n    )\n", "Apache-2.0"),
        ("setup(classifiers=('License :: OSI Approved :: MIT License',))\n", "MIT"),
        ("setup(license='BSD')\n", "NOASSERTION"),
        ("LICENSE = 'MIT'\nsetup(license=LICENSE)\n", None),
        ("setup(license=open('LICENSE').read())\n", None),
        ("setup(license=b'MIT', classifiers=LIST)\n", None),
        ("other(license='MIT')\n", None),
        ("setup(license='MIT'", None),
        ("setup(license='MIT', pattern='\\d')\n", "MIT"),
        ("print 'Python 2'\nsetup(license='MIT')\n", None),
        ("setup(license='MIT')\0\n", None),
        ("setup(license='MIT', x=" + "(" * 5_000 + ")" * 5_000 + ")", None),
        ("setup(license='MIT')\n" + "#" * 200_000, None),
    ],
)
def test_setup_py_is_read_but_never_run(text: str, expression: str | None) -> None:
    assert stated_licence("setup.py", text) == expression


@pytest.mark.parametrize(
    ("spelling", "expression"),
    [
        ("MIT License", "MIT"),
        ("The MIT License", "MIT"),
        ("Apache License 2.0", "Apache-2.0"),
        ("Apache Software License 2.0", "Apache-2.0"),
        ("Apache Software License", "Apache-2.0"),
        ("Apache License v2.0", "Apache-2.0"),
        ("Apache", "NOASSERTION"),
        ("3-Clause BSD License", "BSD-3-Clause"),
        ("New BSD License", "BSD-3-Clause"),
        ("BSD License", "NOASSERTION"),
        ("Mozilla Public License 2.0 (MPL 2.0)", "MPL-2.0"),
        ("MPL 2.0", "MPL-2.0"),
        ("GPLv3", "GPL-3.0"),
        ("GPL v2", "GPL-2.0"),
        ("GNU GPLv3+", "GPL-3.0-or-later"),
        ("GPL-2.0+", "GPL-2.0+"),
        ("GNU General Public License v3.0 only", "GPL-3.0-only"),
        ("GNU Lesser General Public License v2.1 or later", "LGPL-2.1-or-later"),
        ("LGPLv2.1+", "LGPL-2.1-or-later"),
        ("AGPLv3", "AGPL-3.0"),
        ("GPL", "NOASSERTION"),
        ("GPLv9", "NOASSERTION"),
        ("LGPL", "NOASSERTION"),
        ("Other/Proprietary License", "LicenseRef-Proprietary"),
        ("Public Domain", "NOASSERTION"),
    ],
)
def test_common_spellings(spelling: str, expression: str) -> None:
    assert stated_licence("setup.cfg", f"[metadata]\nlicense = {spelling}\n") == expression
