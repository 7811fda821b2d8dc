from collections.abc import Iterator
from pathlib import Path

import pytest
from identify.vendor.licenses import LICENSES

from miners.git_process import ObjectReader
from miners.licences import LicenceDetector, canonical, header_licence, recognise
from tests.builders import FileChange, RepoBuilder, symlink

TEXTS = dict(LICENSES)
MIT, BSD3, APACHE, GPL3 = (TEXTS[spdx] for spdx in ("MIT", "BSD-3-Clause", "Apache-2.0", "GPL-3.0"))
APACHE_NOTICE = """Copyright 2014-2019 Ada

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
"""


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


@pytest.fixture
def reader(repo: RepoBuilder) -> Iterator[ObjectReader]:
    with ObjectReader(repo.git_dir) as objects:
        yield objects


def rewrapped(text: str, width: int) -> str:
    """Return the text with its lines broken elsewhere."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


class TestTexts:
    @pytest.mark.parametrize("spdx", sorted(TEXTS))
    def test_every_known_text_is_itself(self, spdx: str) -> None:
        assert recognise(TEXTS[spdx]) == (spdx,)

    @pytest.mark.parametrize(
        "spdx", ["MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Apache-2.0", "GPL-3.0", "LGPL-2.1"]
    )
    @pytest.mark.parametrize("width", [40, 72, 10_000])
    def test_line_breaks_do_not_matter(self, spdx: str, width: int) -> None:
        body = (
            TEXTS[spdx].split("\n\n", 2)[2] if spdx in ("MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC") else TEXTS[spdx]
        )
        assert recognise(rewrapped(body, width)) == (spdx,)

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", ()),
            ("Public Domain.\n", ()),
            ("All rights reserved.", ()),
            ("Ask me.\n" * 400, ()),
            (MIT.replace("MIT License", "The MIT License (MIT)\n\nCopyright (c) 2018 Ada, Bob and Carl"), ("MIT",)),
            (MIT[MIT.index("Permission") :], ("MIT",)),
            (APACHE[: APACHE.index("END OF TERMS")] + "END OF TERMS AND CONDITIONS", ("Apache-2.0",)),
            (APACHE_NOTICE, ("Apache-2.0",)),
            (BSD3 + "\n\n=====\n\nParts are under another licence:\n\n" + MIT, ("BSD-3-Clause", "MIT")),
            ("Preface. " * 100 + MIT, ("MIT",)),
            (MIT.replace("The above copyright notice", "THE SOFTWARE SHALL BE USED FOR GOOD, NOT EVIL. " * 2), ()),
            ("Commons Clause License Condition v1.0\n\n" + APACHE, ()),
            ("Server Side Public License\n\n" + TEXTS["AGPL-3.0"], ()),
        ],
    )
    def test_other_forms(self, text: str, found: tuple[str, ...]) -> None:
        assert recognise(text) == found

    def test_gpl_is_not_affero_although_it_names_it(self) -> None:
        assert "Affero" in GPL3
        assert recognise(GPL3) == ("GPL-3.0",)
        assert recognise("A library.\n\n" + GPL3) == ("GPL-3.0",)


class TestAtCommit:
    @pytest.mark.parametrize(
        "name",
        ["LICENSE", "LICENCE", "license", "LICENSE.txt", "LICENSE.md", "License.rst", "COPYING", "COPYING.LESSER",
         "UNLICENSE", "LICENSE-MIT", "LICENSE.MIT", "licenses.txt"],
    )  # fmt: skip
    def test_names_of_licence_files(self, repo: RepoBuilder, reader: ObjectReader, name: str) -> None:
        commit = repo.commit({name: MIT.encode()})
        assert LicenceDetector(reader).at_commit(commit) == "MIT"

    @pytest.mark.parametrize(
        "name",
        ["license.py", "LICENSE-THIRD-PARTY", "LICENSE-3RD-PARTY.txt", "licenses.json", "licensing.md", "README.md",
         "docs/LICENSE", "vendor/LICENSE", "my-license"],
    )  # fmt: skip
    def test_names_of_other_files(self, repo: RepoBuilder, reader: ObjectReader, name: str) -> None:
        commit = repo.commit({name: MIT.encode()})
        assert LicenceDetector(reader).at_commit(commit) is None

    @pytest.mark.parametrize(
        ("files", "expression"),
        [
            ({"a.py": b""}, None),
            ({"LICENSE": b"Public Domain.\n"}, None),
            ({"LICENSE-APACHE": APACHE.encode(), "LICENSE-MIT": MIT.encode()}, "Apache-2.0 AND MIT"),
            ({"LICENSE": MIT.encode(), "COPYING": b"see the web site"}, "MIT"),
            ({"LICENSES/MIT.txt": MIT.encode(), "LICENSES/CC0-1.0.txt": b"short"}, "CC0-1.0 AND MIT"),
            ({"LICENSES/Odd-1.0.txt": b"short"}, None),
            ({"LICENSE": symlink("../LICENSE")}, None),
            ({"LICENSE/readme.txt": MIT.encode()}, None),
            ({"LICENSE": MIT.replace("(c)", "©").encode("latin-1")}, "MIT"),
            ({"LICENSE": b"\xef\xbb\xbf" + MIT.encode()}, "MIT"),
            ({"pyproject.toml": b'[project]\nlicense = "mit OR apache-2.0"\n'}, "MIT OR Apache-2.0"),
            ({"pyproject.toml": b'[project]\nlicense = {text = "BSD-3-Clause"}\n'}, "BSD-3-Clause"),
            ({"pyproject.toml": b'[project]\nlicense = {text = "Do what you like"}\n'}, None),
            ({"pyproject.toml": b'[project]\nlicense = {file = "COPYRIGHT"}\n'}, None),
            ({"pyproject.toml": b'[tool.poetry]\nlicense = "ISC"\n'}, "ISC"),
            ({"pyproject.toml": b'[project]\nclassifiers = ["License :: OSI Approved :: MIT License"]\n'}, "MIT"),
            ({"pyproject.toml": b'[project]\nclassifiers = ["License :: OSI Approved :: BSD License"]\n'}, None),
            (
                {"pyproject.toml": b'[project]\nclassifiers = ["License :: OSI Approved :: MIT License", '
                 b'"License :: OSI Approved :: ISC License (ISCL)"]\n'},
                None,
            ),
            ({"pyproject.toml": b"not [ toml"}, None),
            ({"pyproject.toml": b"project = 3\ntool = []\n"}, None),
            ({"pyproject.toml": b"[project]\nclassifiers = 3\nlicense = 4\n"}, None),
            ({"setup.cfg": b"[metadata]\nlicense = Apache-2.0\n"}, "Apache-2.0"),
            (
                {"setup.cfg": b"[metadata]\nlicense = Apache\nclassifiers =\n    Topic :: X\n"
                 b"    License :: OSI Approved :: Apache Software License\n"},
                "Apache-2.0",
            ),
            ({"setup.cfg": b"no section\n"}, None),
            ({"setup.cfg": b"[metadata]\nversion = %(x)s\nlicense = MIT\n"}, "MIT"),
            ({"LICENSE": MIT.encode(), "pyproject.toml": b'[project]\nlicense = "ISC"\n'}, "MIT"),
            (
                {"LICENSE": GPL3.encode(), "pyproject.toml": b'[project]\nlicense = "GPL-3.0-or-later"\n'},
                "GPL-3.0-or-later",
            ),
            ({"LICENSE": GPL3.encode()}, "GPL-3.0"),
            (
                {"LICENSE-APACHE": APACHE.encode(), "LICENSE-MIT": MIT.encode(),
                 "pyproject.toml": b'[project]\nlicense = "MIT OR Apache-2.0"\n'},
                "MIT OR Apache-2.0",
            ),
        ],
    )  # fmt: skip
    def test_what_the_files_say(
        self, repo: RepoBuilder, reader: ObjectReader, files: dict[str, FileChange], expression: str | None
    ) -> None:
        commit = repo.commit(dict(files.items()))
        assert LicenceDetector(reader).at_commit(commit) == expression

    def test_each_commit_has_the_licence_of_its_time(self, repo: RepoBuilder, reader: ObjectReader) -> None:
        commits = [
            repo.commit({"a.py": b"1"}),
            repo.commit({"LICENSE": BSD3.encode()}),
            repo.commit({"a.py": b"2"}),
            repo.commit({"LICENSE": b"Redis Source Available License 2.0, our own terms"}),
            repo.commit({"LICENSE": MIT.encode()}),
        ]
        detector = LicenceDetector(reader)
        assert [detector.at_commit(commit) for commit in commits] == [
            None,
            "BSD-3-Clause",
            "BSD-3-Clause",
            None,
            "MIT",
        ]

    def test_missing_objects_leave_it_unknown(self, repo: RepoBuilder, reader: ObjectReader) -> None:
        first = repo.commit({"LICENSE": MIT.encode()})
        second = repo.commit({"LICENSE": BSD3.encode()})
        repo.remove(repo.blob_of(first, "LICENSE"))
        repo.remove(repo.root_tree(second))
        detector = LicenceDetector(reader)
        assert [detector.at_commit(first), detector.at_commit(second)] == [None, None]

    def test_sha256_repositories(self, tmp_path: Path) -> None:
        repo = RepoBuilder(tmp_path / "sha256.git", object_format="sha256")
        commit = repo.commit({"LICENSE": MIT.encode(), "LICENSES/ISC.txt": TEXTS["ISC"].encode()})
        with ObjectReader(repo.git_dir) as reader:
            assert LicenceDetector(reader).at_commit(commit) == "ISC AND MIT"


class TestHeaders:
    @pytest.mark.parametrize(
        ("source", "expression"),
        [
            (b"", None),
            (b"x = 1\n", None),
            (b"# SPDX-License-Identifier: MIT\n", "MIT"),
            (b"#!/usr/bin/python\r\n#  SPDX-License-Identifier:apache-2.0  \r\n", "Apache-2.0"),
            (b'"""A module.\n\nSPDX-License-Identifier: GPL-3.0-or-later\n"""\n', "GPL-3.0-or-later"),
            (b"# SPDX-License-Identifier: (MIT OR Apache-2.0)\n", "(MIT OR Apache-2.0)"),
            (b"/* SPDX-License-Identifier: MIT */\n", "MIT"),
            (b"# SPDX-License-Identifier: MIT OR ISC\n# SPDX-License-Identifier: Zlib\n", "(MIT OR ISC) AND Zlib"),
            (b"# SPDX-License-Identifier: MIT\n# SPDX-License-Identifier: MIT\n", "MIT"),
            (b"# SPDX-License-Identifier: LicenseRef-Own\n", "LicenseRef-Own"),
            (b"# SPDX-License-Identifier: whatever I like\n", None),
            (b"TAG = 'SPDX-License-Identifier: MIT'\n", None),
            (b"\n" * 29 + b"# SPDX-License-Identifier: MIT\n", "MIT"),
            (b"\n" * 30 + b"# SPDX-License-Identifier: MIT\n", None),
            (b"# \xff\xfe\n# SPDX-License-Identifier: MIT\n", "MIT"),
        ],
    )
    def test_headers(self, source: bytes, expression: str | None) -> None:
        assert header_licence(source) == expression


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
        ("__import__('os')", None),
    ],
)
def test_canonical(given: str, expected: str | None) -> None:
    assert canonical(given) == expected
