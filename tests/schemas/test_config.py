import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from schemas.config import (
    Config,
    LicencesConfig,
    MiningConfig,
    SourceConfig,
    UnknownLicence,
    WindowConfig,
    digest_of,
    load_config,
)
from schemas.errors import ConfigError
from schemas.records import Novelty

MINIMAL = """
[window]
since = 2024-01-01
[[sources]]
git = ["https://example.org/owner/name.git"]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_minimal_file_gets_the_defaults(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, MINIMAL)) == Config(
        sources=(SourceConfig(git=("https://example.org/owner/name.git",)),),
        window=WindowConfig(since=datetime(2024, 1, 1, tzinfo=UTC)),
    )


def test_every_section_is_read(tmp_path: Path) -> None:
    config = load_config(
        write(
            tmp_path,
            MINIMAL
            + """
[mining]
max_file_bytes = 10
[features]
novelty = ["added", "modified"]
[licences]
allow = ["ISC", "GPL-2.0-only WITH Classpath-exception-2.0"]
unknown = "exclude"
[dedup]
threshold = 1
[testbeds]
names = ["raw_data"]
size = 5
[release]
version = "1.2"
""",
        )
    )
    assert config.mining.max_file_bytes == 10
    assert config.features.novelty == (Novelty.ADDED, Novelty.MODIFIED)
    assert config.licences == LicencesConfig(
        ("ISC", "GPL-2.0-only WITH Classpath-exception-2.0"), UnknownLicence.EXCLUDE
    )
    assert config.dedup.threshold == 1.0
    assert (config.testbeds.names, config.testbeds.size) == (("raw_data",), 5)
    assert config.release.version == "1.2"


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2024-01-01", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01T02:00:00+02:00", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01T00:00:00", datetime(2024, 1, 1, tzinfo=UTC)),
        ('"2024-01-01"', datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)
def test_dates_are_read_as_utc(tmp_path: Path, since: str, expected: datetime) -> None:
    assert load_config(write(tmp_path, MINIMAL.replace("2024-01-01", since))).window.since == expected


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("[minning]\n", r"unknown key minning in the top level; known keys: sources, window, search, clones"),
        ("[mining]\nmax_bytes = 3\n", r"unknown key max_bytes in \[mining\]; known keys: max_file_bytes"),
        ("[mining]\nmax_file_bytes = 'x'\n", r"mining.max_file_bytes must be of type int, not 'x'"),
        ("[mining]\nmax_file_bytes = true\n", r"mining.max_file_bytes must be of type int, not True"),
        ("[features]\nnovelty = ['new']\n", r"features.novelty\[0\] must be one of added, moved"),
        ("[features]\nnovelty = 'added'\n", r"features.novelty must be a list, not 'added'"),
        ("[dedup]\nkeep = 'all'\n", r"dedup.keep must be one of oldest, none, reference, not 'all'"),
        ("[[dedup.references]]\nname = 'x'\n", r"dedup.references\[0\] must have either path, .* or release"),
        (
            "[[dedup.references]]\npath = 'a'\ncode = 'b'\nconcat = ['c']\n",
            r"references\[0\]: code names one column, concat several",
        ),
        ("[[dedup.references]]\nrelease = 'a'\nid = 'b'\n", r"references\[0\]: the columns of a release are known"),
        (
            "[[dedup.references]]\npath = 'x/a.parquet'\n[[dedup.references]]\nrelease = 'y/a.parquet/'\n",
            r"references\[1\]: another set is called a.parquet; give one of them another name",
        ),
        ("[dedup]\ncopied_old = 'yes'\n", r"dedup.copied_old must be one of repository, all, off, not 'yes'"),
        (
            "[features]\nnovelty = ['copied_old']\n[dedup]\ncopied_old = 'off'\n",
            r"features.novelty asks for copied_old alone, which dedup.copied_old = \"off\" never finds",
        ),
        ("[dedup]\nthreshold = 1.5\n", r"dedup.threshold must be above 0 and at most 1"),
        ("[testbeds]\nnames = ['humaneval']\n", r"unknown testbed humaneval; known testbeds: raw_data, "),
        (
            "[testbeds]\nsize = 0\n",
            r"testbeds.size, testbeds.max_per_repo and testbeds.max_per_commit must be",
        ),
        ("[release]\nversion = '../x'\n", r"release.version '../x' must be at most 100 letters"),
        ("[release]\nversion = '" + "1" * 101 + "'\n", r"must be at most 100 letters"),
        ("[testbeds]\nnames = []\n", r"testbeds.names must name at least one and none twice"),
        ("[testbeds]\nnames = ['raw_data', 'raw_data']\n", r"testbeds.names must name at least one and none twice"),
        ("[features]\nnovelty = []\n", r"features.novelty must name at least one"),
        ("[licences]\nallow = []\n", r"licences.allow must name at least one and none twice"),
        ("[licences]\nallow = ['MIT', 'MIT']\n", r"licences.allow must name at least one and none twice"),
        ("[licences]\nallow = ['mit']\n", r"single SPDX ids .*did you mean 'MIT'\?: 'mit'"),
        ("[licences]\nallow = ['BSD']\n", r"single SPDX ids \(https://spdx.org/licenses/\), .* or \['\*'\].*: 'BSD'"),
        ("[licences]\nallow = ['MIT OR ISC']\n", r"single SPDX ids .*: 'MIT OR ISC'"),
        ("[licences]\nallow = ['MIT', '*']\n", r"single SPDX ids .*: '\*'"),
        ("[licences]\nallow = ['LicenseRef-Own']\n", r"single SPDX ids .*: 'LicenseRef-Own'"),
        ("[licences]\nunknown = 'maybe'\n", r"licences.unknown must be one of keep, exclude, not 'maybe'"),
        ("[mining]\nmax_file_bytes = -1\n", r"mining.max_file_bytes must be at least 1"),
        ("[search]\nlanguage = 7\n", r"search.language must be of type str, not 7"),
        ("[[sources]]\n", r"sources\[1\] must have either git or fast_import"),
        (
            "[[sources]]\ngit = ['a', 'b']\nrepo = 'o/n'\n",
            r"sources\[1\]: repo, web_url, repo_id and aliases belong to a single",
        ),
        (
            "[[sources]]\ngit = ['a']\nweb_url = 'https://me:secret@h/o/n'\n",
            r"web_url must be a plain https",
        ),
        (
            "[[sources]]\ngit = ['a', 'b']\naliases = ['o/n']\n",
            r"sources\[1\]: repo, web_url, repo_id and aliases belong to a single",
        ),
        ("[[sources]]\ngit = ['a']\nweb_url = 'https://[h/o/n'\n", r"web_url must be a plain https"),
        ("[[sources]]\ngit = ['a']\nrepo_id = 0\n", r"sources\[1\].repo_id must be the host's positive number, not 0"),
        ("[[sources]]\ngit = ['a']\naliases = ['n']\n", r"aliases must be names such as owner/name, not 'n'"),
        ("[[sources]]\ngit = ['a']\naliases = ['../n']\n", r"aliases must be names such as owner/name, not '../n'"),
        ("[[sources]]\ngit = ['a']\nrepo = 'n'\n", r"sources\[1\].repo must be owner/name, not 'n'"),
        ("mining = 3\n", r"mining must be a table"),
        ("x = [\n", r"is no valid TOML"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, extra: str, message: str) -> None:
    text = extra + MINIMAL if extra.startswith(("mining", "x")) else MINIMAL + extra
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path, text))


def test_every_licence_can_be_allowed(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, MINIMAL + "[licences]\nallow = ['*']\n")).licences == LicencesConfig(("*",))


def test_window_must_not_be_empty(tmp_path: Path) -> None:
    text = MINIMAL.replace("since = 2024-01-01", "since = 2024-01-01\nuntil = 2024-01-01")
    with pytest.raises(ConfigError, match=r"window.until must be later than window.since"):
        load_config(write(tmp_path, text))


def test_a_date_that_does_not_exist_in_utc(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no date in UTC"):
        load_config(write(tmp_path, MINIMAL.replace("2024-01-01", "0001-01-01T00:00:00+14:00")))


def test_window_needs_a_cutoff(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing key since in window"):
        load_config(write(tmp_path, MINIMAL.replace("since = 2024-01-01", "")))


def test_sources_are_required(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing key sources"):
        load_config(write(tmp_path, "[window]\nsince = 2024-01-01\n"))


def test_missing_file_names_an_example(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no configuration file .*nowhere.toml; name one with --config"):
        load_config(tmp_path / "nowhere.toml")


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path)


def test_digest_depends_on_every_value() -> None:
    base = Config(sources=(SourceConfig(git=("a",)),), window=WindowConfig(datetime(2024, 1, 1, tzinfo=UTC)))
    other = Config(sources=(SourceConfig(git=("b",)),), window=WindowConfig(datetime(2024, 1, 1, tzinfo=UTC)))
    assert base.digest() == base.digest()
    assert base.digest() != other.digest()
    assert digest_of("mine", MiningConfig()) != digest_of("mine", MiningConfig(max_file_bytes=1))


def test_digest_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from schemas.config import *; from datetime import *;"
        "print(digest_of(MiningConfig(), {'b': 1, 'a': 2}, datetime(2024, 1, 1, tzinfo=UTC)))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(digests) == 1
