from collections.abc import Iterator
from pathlib import Path

import pytest

from miners.git_process import ObjectReader
from miners.licences import Licence, LicenceDetector
from miners.trees import Trees
from tests.builders import FileChange, RepoBuilder, git, symlink
from tests.miners.test_licence_texts import APACHE, BSD3, CHOICE_OF_CLOSED, GNU_NOTICE, GPL3, MIT, TEXTS

ISC, LGPL3, CC_BY, CC0 = (TEXTS[spdx] for spdx in ("ISC", "LGPL-3.0", "CC-BY-4.0", "CC0-1.0"))
MIT_TAG = b"# SPDX-License-Identifier: MIT\n"
Files = dict[str, str | bytes]


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


@pytest.fixture
def reader(repo: RepoBuilder) -> Iterator[ObjectReader]:
    with ObjectReader(repo.git_dir) as objects:
        yield objects


def commit(repo: RepoBuilder, files: Files) -> str:
    return repo.commit({name: data.encode() if isinstance(data, str) else data for name, data in files.items()})


def pyproject(licence: str) -> str:
    return f'[project]\nlicense = "{licence}"\n'


class TestNames:
    @pytest.mark.parametrize(
        "name",
        ["LICENSE", "LICENCE", "license", "LICENSE.txt", "LICENSE.md", "License.rst", "COPYING", "COPYING.LESSER",
         "UNLICENSE", "LICENSE-MIT", "LICENSE.MIT", "licenses.txt", "MIT-LICENSE", "mit-license.txt", "COPYRIGHT",
         "lgpl.txt", "GPL-3.0.md", "agpl"],
    )  # fmt: skip
    def test_names_of_licence_files(self, repo: RepoBuilder, reader: ObjectReader, name: str) -> None:
        found = LicenceDetector(Trees(reader)).of_file(commit(repo, {name: MIT}), b"a.py", b"")
        assert found == Licence("MIT", (f"{name}: MIT",))

    @pytest.mark.parametrize(
        "name",
        ["license.py", "LICENSE-THIRD-PARTY", "LICENSE-3RD-PARTY.txt", "licenses.json", "licensing.md", "README.md",
         "docs/LICENSE", "vendor/LICENSE", "my-license", "copyright.py", "copyingfiles.md", "licenses/MIT.txt",
         "license.dist-0.1-py2.py3-none-any.whl"],
    )  # fmt: skip
    def test_names_of_other_files(self, repo: RepoBuilder, reader: ObjectReader, name: str) -> None:
        assert LicenceDetector(Trees(reader)).of_file(commit(repo, {name: MIT}), b"a.py", b"") == Licence(None, ())


class TestOneFolder:
    @pytest.mark.parametrize(
        ("files", "expression", "matches"),
        [
            ({"a.py": ""}, None, ()),
            ({"LICENSE": "Public Domain.\n"}, None, ("LICENSE: NOASSERTION",)),
            ({"LICENSE": ""}, None, ("LICENSE: NOASSERTION",)),
            ({"LICENSE": "x" * 1_000_001}, None, ("LICENSE: NOASSERTION",)),
            (
                {"LICENSE-MIT": MIT, "LICENSE-APACHE": APACHE},
                "Apache-2.0 AND MIT",
                ("LICENSE-APACHE: Apache-2.0", "LICENSE-MIT: MIT"),
            ),
            ({"LICENSE": MIT, "COPYING": "see the web site"}, "MIT", ("COPYING: NOASSERTION", "LICENSE: MIT")),
            ({"LICENSE": BSD3 + "\n\n" + MIT}, "BSD-3-Clause AND MIT", ("LICENSE: BSD-3-Clause", "LICENSE: MIT")),
            ({"LICENSE": MIT.replace("(c)", "©").encode("latin-1")}, "MIT", ("LICENSE: MIT",)),
            ({"LICENSE": b"\xef\xbb\xbf" + MIT.encode()}, "MIT", ("LICENSE: MIT",)),
            ({"LICENSE": MIT.encode("utf-16")}, "MIT", ("LICENSE: MIT",)),
            ({"LICENSE": GPL3}, "GPL-3.0", ("LICENSE: GPL-3.0",)),
            (
                {"LICENSE": GNU_NOTICE.format(kind="", version="3"), "COPYING": GPL3},
                "GPL-3.0-or-later",
                ("COPYING: GPL-3.0", "LICENSE: GPL-3.0-or-later"),
            ),
            (
                {"COPYING": GPL3, "COPYING.LESSER": LGPL3},
                "LGPL-3.0",
                ("COPYING: GPL-3.0", "COPYING.LESSER: LGPL-3.0"),
            ),
            ({"LICENSE": LGPL3, "COPYING": GPL3}, "GPL-3.0 AND LGPL-3.0", ("COPYING: GPL-3.0", "LICENSE: LGPL-3.0")),
            (
                {"LICENSE": "Commons Clause\n\n" + APACHE, "setup.cfg": "[metadata]\nlicense = Apache-2.0\n"},
                None,
                ("LICENSE: Apache-2.0", "LICENSE: LicenseRef-Commons-Clause", "setup.cfg: Apache-2.0"),
            ),
            ({"LICENSE": CC_BY}, "CC-BY-4.0", ("LICENSE: CC-BY-4.0",)),
        ],
    )  # fmt: skip
    def test_texts(
        self, repo: RepoBuilder, reader: ObjectReader, files: Files, expression: str | None, matches: tuple[str, ...]
    ) -> None:
        found = LicenceDetector(Trees(reader)).of_file(commit(repo, files), b"a.py", b"x = 1\n")
        assert (found.expression, found.matches) == (expression, matches)

    @pytest.mark.parametrize(
        ("files", "expression", "matches"),
        [
            ({"pyproject.toml": pyproject("MIT OR ISC")}, "MIT OR ISC", ("pyproject.toml: MIT OR ISC",)),
            ({"pyproject.toml": pyproject("BSD")}, None, ("pyproject.toml: NOASSERTION",)),
            ({"pyproject.toml": pyproject("LicenseRef-Own")}, None, ("pyproject.toml: LicenseRef-Own",)),
            ({"setup.py": "setup(license='MIT')\n"}, "MIT", ("setup.py: MIT",)),
            (
                {"pyproject.toml": pyproject("BSD"), "setup.cfg": "[metadata]\nlicense = ISC\n"},
                "ISC",
                ("pyproject.toml: NOASSERTION", "setup.cfg: ISC"),
            ),
            (
                {"LICENSE": "see the metadata", "pyproject.toml": pyproject("MIT")},
                "MIT",
                ("LICENSE: NOASSERTION", "pyproject.toml: MIT"),
            ),
            ({"LICENSE": MIT, "pyproject.toml": pyproject("ISC")}, "MIT", ("LICENSE: MIT", "pyproject.toml: ISC")),
            (
                {"LICENSE": GPL3, "pyproject.toml": pyproject("GPL-3.0-or-later")},
                "GPL-3.0-or-later",
                ("LICENSE: GPL-3.0", "pyproject.toml: GPL-3.0-or-later"),
            ),
            (
                {"LICENSE": GPL3, "pyproject.toml": pyproject("MIT"), "setup.py": "setup(license='GPLv3+')"},
                "GPL-3.0-or-later",
                ("LICENSE: GPL-3.0", "pyproject.toml: MIT", "setup.py: GPL-3.0-or-later"),
            ),
            (
                {"LICENSE-APACHE": APACHE, "LICENSE-MIT": MIT, "pyproject.toml": pyproject("MIT OR Apache-2.0")},
                "MIT OR Apache-2.0",
                ("LICENSE-APACHE: Apache-2.0", "LICENSE-MIT: MIT", "pyproject.toml: MIT OR Apache-2.0"),
            ),
            (
                {"LICENSE": APACHE, "pyproject.toml": pyproject("MIT OR Apache-2.0")},
                "MIT OR Apache-2.0",
                ("LICENSE: Apache-2.0", "pyproject.toml: MIT OR Apache-2.0"),
            ),
            (
                {"LICENSE": APACHE, "pyproject.toml": pyproject("MIT AND Apache-2.0")},
                "Apache-2.0",
                ("LICENSE: Apache-2.0", "pyproject.toml: MIT AND Apache-2.0"),
            ),
            (
                {"LICENSE": MIT, "LICENSE-DOCS": CC_BY, "pyproject.toml": pyproject("MIT")},
                "MIT",
                ("LICENSE: MIT", "LICENSE-DOCS: CC-BY-4.0", "pyproject.toml: MIT"),
            ),
            (
                {"LICENSE": MIT, "LICENSE-DOCS": CC_BY},
                "CC-BY-4.0 AND MIT",
                ("LICENSE: MIT", "LICENSE-DOCS: CC-BY-4.0"),
            ),
        ],
    )
    def test_metadata(
        self, repo: RepoBuilder, reader: ObjectReader, files: Files, expression: str | None, matches: tuple[str, ...]
    ) -> None:
        found = LicenceDetector(Trees(reader)).of_file(commit(repo, files), b"a.py", b"")
        assert (found.expression, found.matches) == (expression, matches)

    @pytest.mark.parametrize(
        ("files", "expression", "matches"),
        [
            (
                {"LICENSES/MIT.txt": MIT, "LICENSES/CC0-1.0.txt": "short"},
                "CC0-1.0 AND MIT",
                ("LICENSES/CC0-1.0.txt: CC0-1.0", "LICENSES/MIT.txt: MIT"),
            ),
            (
                {"LICENSES/MIT.txt": MIT, "LICENSES/LicenseRef-Own.txt": "mine"},
                None,
                ("LICENSES/LicenseRef-Own.txt: LicenseRef-Own", "LICENSES/MIT.txt: MIT"),
            ),
            (
                {"LICENSE": BSD3, "LICENSES/MUSL_LICENSE": MIT, "LICENSES/Odd-1.0.txt": "short"},
                "BSD-3-Clause",
                ("LICENSE: BSD-3-Clause", "LICENSES/MUSL_LICENSE: MIT", "LICENSES/Odd-1.0.txt: NOASSERTION"),
            ),
        ],
    )
    def test_the_folder_of_the_reuse_convention(
        self, repo: RepoBuilder, reader: ObjectReader, files: Files, expression: str | None, matches: tuple[str, ...]
    ) -> None:
        found = LicenceDetector(Trees(reader)).of_file(commit(repo, files), b"a.py", b"")
        assert (found.expression, found.matches) == (expression, matches)

    @pytest.mark.parametrize("change", [{"LICENSE": symlink("../LICENSE")}, {"LICENSE/readme.txt": MIT.encode()}])
    def test_links_and_folders_are_no_texts(
        self, repo: RepoBuilder, reader: ObjectReader, change: dict[str, FileChange]
    ) -> None:
        assert LicenceDetector(Trees(reader)).of_file(repo.commit(change), b"a.py", b"") == Licence(None, ())


class TestFolders:
    @pytest.mark.parametrize(
        ("files", "path", "expression", "matches"),
        [
            ({"LICENSE": MIT, "a/b/c.py": ""}, b"a/b/c.py", "MIT", ("LICENSE: MIT",)),
            (
                {"LICENSE": MIT, "a/LICENSE": ISC, "a/b/c.py": ""},
                b"a/b/c.py",
                "ISC",
                ("a/LICENSE: ISC", "LICENSE: MIT"),
            ),
            ({"LICENSE": MIT, "a/LICENSE": ISC, "b/c.py": ""}, b"b/c.py", "MIT", ("LICENSE: MIT",)),
            (
                {"LICENSE": GPL3, "packages/core/pyproject.toml": pyproject("MIT"), "packages/core/src/c.py": ""},
                b"packages/core/src/c.py",
                "MIT",
                ("packages/core/pyproject.toml: MIT", "LICENSE: GPL-3.0"),
            ),
            (
                {"LICENSE": MIT, "a/pyproject.toml": pyproject("BSD"), "a/c.py": ""},
                b"a/c.py",
                "MIT",
                ("a/pyproject.toml: NOASSERTION", "LICENSE: MIT"),
            ),
            (
                {"LICENSE": MIT, "a/pyproject.toml": "[project]\n", "a/c.py": ""},
                b"a/c.py",
                "MIT",
                ("LICENSE: MIT",),
            ),
            (
                {"LICENSE": MIT, "a/pyproject.toml": pyproject("Proprietary"), "a/c.py": ""},
                b"a/c.py",
                None,
                ("a/pyproject.toml: LicenseRef-Proprietary", "LICENSE: MIT"),
            ),
            (
                {"LICENSE": MIT, "a/LICENSE": "our own terms", "a/c.py": ""},
                b"a/c.py",
                None,
                ("a/LICENSE: NOASSERTION", "LICENSE: MIT"),
            ),
            (
                {"LICENSE": MIT, "docs/license.rst": "This project is under the MIT license.", "docs/conf.py": ""},
                b"docs/conf.py",
                "MIT",
                ("docs/license.rst: NOASSERTION", "LICENSE: MIT"),
            ),
            (
                {"LICENSE": MIT, "a/COPYRIGHT": "Copyright 2024 Ada", "a/license.md": ISC, "a/c.py": ""},
                b"a/c.py",
                "ISC",
                ("a/COPYRIGHT: NOASSERTION", "a/license.md: ISC", "LICENSE: MIT"),
            ),
            (
                {"LICENSE": MIT, "a/LICENSES/ISC.txt": ISC, "a/c.py": ""},
                b"a/c.py",
                "ISC",
                ("a/LICENSES/ISC.txt: ISC", "LICENSE: MIT"),
            ),
            ({"LICENSE": MIT, "a/licenses/ISC.txt": ISC, "a/c.py": ""}, b"a/c.py", "MIT", ("LICENSE: MIT",)),
            ({"LICENSE": MIT}, b"gone/c.py", "MIT", ("LICENSE: MIT",)),
        ],
    )
    def test_the_nearest_licence_governs(
        self,
        repo: RepoBuilder,
        reader: ObjectReader,
        files: Files,
        path: bytes,
        expression: str | None,
        matches: tuple[str, ...],
    ) -> None:
        found = LicenceDetector(Trees(reader)).of_file(commit(repo, files), path, b"")
        assert (found.expression, found.matches) == (expression, matches)

    def test_equal_folders_at_several_places_keep_their_own_paths(
        self, repo: RepoBuilder, reader: ObjectReader
    ) -> None:
        made = repo.commit({"a/LICENSE": MIT.encode(), b"\xe9/LICENSE": MIT.encode()})
        detector = LicenceDetector(Trees(reader))
        assert detector.of_file(made, b"a/c.py", b"") == Licence("MIT", ("a/LICENSE: MIT",))
        assert detector.of_file(made, b"\xe9/c.py", b"") == Licence("MIT", (r"\xe9/LICENSE: MIT",))


class TestHeaders:
    @pytest.mark.parametrize(
        ("source", "expression", "matches"),
        [
            (MIT_TAG, "MIT", ("header: MIT", "LICENSE: GPL-3.0")),
            (MIT_TAG + b"# SPDX-License-Identifier: 0BSD OR ISC\n", "(0BSD OR ISC) AND MIT",
             ("header: 0BSD OR ISC", "header: MIT", "LICENSE: GPL-3.0")),
            (b"# SPDX-License-Identifier: LicenseRef-Own\n", None, ("header: LicenseRef-Own", "LICENSE: GPL-3.0")),
            (b"# SPDX-License-Identifier: see below\n", None, ("header: NOASSERTION", "LICENSE: GPL-3.0")),
            (b"x = 1\n", "GPL-3.0", ("LICENSE: GPL-3.0",)),
        ],
    )  # fmt: skip
    def test_headers_win(
        self, repo: RepoBuilder, reader: ObjectReader, source: bytes, expression: str | None, matches: tuple[str, ...]
    ) -> None:
        found = LicenceDetector(Trees(reader)).of_file(commit(repo, {"LICENSE": GPL3}), b"a.py", source)
        assert (found.expression, found.matches) == (expression, matches)


class TestHistory:
    def test_holders_are_those_of_the_head_and_of_the_folder_that_decides(
        self, repo: RepoBuilder, reader: ObjectReader
    ) -> None:
        files: Files = {
            "LICENSE": "Copyright (c) 2020 Root\n" + MIT,
            "COPYRIGHT": "Copyright 2019 Others\nCopyright (c) 2020 Root\n",
            "sub/LICENSE": "Copyright (c) 2021 Sub\n" + ISC,
            "sub/deep/x.py": "",
        }
        commit_id = commit(repo, files)
        detector = LicenceDetector(Trees(reader))
        head = b"# Copyright 2022 File\n" + MIT_TAG + b"x = '(c) 2023 not the head'\n"
        found = {
            path: (licence.expression, licence.copyrights)
            for path, source in ((b"a.py", b""), (b"a/b.py", head), (b"sub/deep/x.py", b""), (b"sub/y.py", head))
            for licence in (detector.of_file(commit_id, path, source),)
        }
        root = ("Copyright 2019 Others", "Copyright (c) 2020 Root")
        assert found == {
            b"a.py": ("MIT", root),
            b"a/b.py": ("MIT", ("Copyright 2022 File", *root)),
            b"sub/deep/x.py": ("ISC", ("Copyright (c) 2021 Sub",)),
            b"sub/y.py": ("MIT", ("Copyright 2022 File", "Copyright (c) 2021 Sub")),
        }

    def test_a_text_of_many_commits_is_read_once(
        self, repo: RepoBuilder, reader: ObjectReader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commits = [commit(repo, {"LICENSE": MIT}), commit(repo, {"COPYING": GPL3}), commit(repo, {"x/LICENSE": MIT})]
        blobs = [repo.blob_of(commits[-1], name) for name in ("LICENSE", "COPYING")]
        asked = []
        read = ObjectReader.read

        def watched(self: ObjectReader, object_id: str) -> tuple[str, bytes]:
            asked.append(object_id)
            return read(self, object_id)

        monkeypatch.setattr(ObjectReader, "read", watched)
        detector = LicenceDetector(Trees(reader))
        for commit_id in commits:
            detector.of_file(commit_id, b"x/a.py", b"")
        assert [asked.count(blob_id) for blob_id in blobs] == [1, 1]

    def test_each_commit_has_the_licence_of_its_time(self, repo: RepoBuilder, reader: ObjectReader) -> None:
        commits = [
            commit(repo, {"a.py": "1"}),
            commit(repo, {"LICENSE": BSD3}),
            commit(repo, {"a.py": "2"}),
            commit(repo, {"LICENSE": CHOICE_OF_CLOSED}),
            commit(repo, {"LICENSE": "Our own terms."}),
            commit(repo, {"LICENSE": MIT}),
        ]
        detector = LicenceDetector(Trees(reader))
        in_turn = [detector.of_file(made, b"a.py", b"") for made in commits]
        assert in_turn == [
            Licence(None, ()),
            Licence("BSD-3-Clause", ("LICENSE: BSD-3-Clause",)),
            Licence("BSD-3-Clause", ("LICENSE: BSD-3-Clause",)),
            Licence(None, ("LICENSE: LicenseRef-RSAL", "LICENSE: SSPL-1.0")),
            Licence(None, ("LICENSE: NOASSERTION",)),
            Licence("MIT", ("LICENSE: MIT",)),
        ]
        backwards = [detector.of_file(made, b"a.py", b"") for made in reversed(commits)]
        assert backwards == in_turn[::-1]

    def test_missing_objects_leave_it_unknown(self, repo: RepoBuilder, reader: ObjectReader) -> None:
        first = commit(repo, {"LICENSE": MIT})
        second = commit(repo, {"LICENSE": BSD3})
        repo.remove(repo.blob_of(first, "LICENSE"))
        repo.remove(repo.root_tree(second))
        detector = LicenceDetector(Trees(reader))
        assert detector.of_file(first, b"a.py", b"") == Licence(None, ("LICENSE: NOASSERTION",))
        assert detector.of_file(second, b"a.py", b"") == Licence(None, ())
        assert detector.of_file(second, b"a.py", MIT_TAG) == Licence("MIT", ("header: MIT",))

    def test_a_missing_folder_leaves_it_unknown(self, repo: RepoBuilder, reader: ObjectReader) -> None:
        made = commit(repo, {"LICENSE": MIT, "a/LICENSE": ISC, "b/c.py": ""})
        repo.remove(git(repo.git_dir, "rev-parse", f"{made}:a").decode().strip())
        detector = LicenceDetector(Trees(reader))
        assert detector.of_file(made, b"a/c.py", b"") == Licence(None, ("LICENSE: MIT",))
        assert detector.of_file(made, b"b/c.py", b"") == Licence("MIT", ("LICENSE: MIT",))

    def test_sha256_repositories(self, tmp_path: Path) -> None:
        repo = RepoBuilder(tmp_path / "sha256.git", object_format="sha256")
        made = commit(repo, {"LICENSE": MIT, "a/LICENSES/ISC.txt": ISC, "a/c.py": ""})
        with ObjectReader(repo.git_dir) as reader:
            found = LicenceDetector(Trees(reader)).of_file(made, b"a/c.py", b"")
        assert found == Licence("ISC", ("a/LICENSES/ISC.txt: ISC", "LICENSE: MIT"))

    def test_forgotten_folders_are_read_again(
        self, repo: RepoBuilder, reader: ObjectReader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("miners.licences._MAX_FOLDERS", 1)
        made = commit(repo, {"LICENSE": MIT, "a/LICENSE": ISC, "b/LICENSE": CC0})
        detector = LicenceDetector(Trees(reader))
        found = [detector.of_file(made, path, b"").expression for path in (b"a/x.py", b"b/x.py", b"a/x.py", b"x.py")]
        assert found == ["ISC", "CC0-1.0", "ISC", "MIT"]
