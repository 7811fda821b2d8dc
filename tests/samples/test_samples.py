"""The sample streams by themselves: plain git imports them, always to the same commits, and finds what is stated."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pytest

from schemas.config import (
    ALL_TESTBEDS,
    DedupConfig,
    FeaturesConfig,
    LicencesConfig,
    MiningConfig,
    ReleaseConfig,
    SourceConfig,
    TestbedsConfig,
    load_config,
)
from schemas.execution import DocstringNeed, RealCodeConfig
from schemas.search import SearchConfig
from tests.builders import GIT_ENVIRONMENT, git
from tests.samples.support import QUICKSTART, ROOT, SAMPLES, import_stream, text_of


@dataclass(frozen=True)
class Facts:
    branch: str
    head: str
    commits: int
    merges: int
    files: int
    other_branches: tuple[str, ...] = ()


FACTS = {
    "almanac": Facts("main", "34f4280c2e27dcfdee90a910165287eb09744f0b", 8, 0, 9),
    "conveyor": Facts(
        "devel",
        "f7080c9c1da544aea234e31355ca94e02b2faa74",
        22,
        3,
        19,
        ("metrics", "topic-cron", "topic-events", "topic-retry", "topic-states"),
    ),
    "foyer": Facts("main", "f5c1f9401505a65622901a206cd46b3618798ec5", 7, 0, 15),
    "gridtext": Facts("main", "81da54060a470d741f2037340d926b2a627a1fb6", 7, 0, 15),
    "measures": Facts("main", "e69fe81f4d5ac3a7df2febae8d48101441604dcc", 8, 0, 13),
    "planar": Facts("main", "7eabd3491fb6b85299006ec76788accdc1e3454f", 7, 1, 9, ("plotter",)),
    "quirks": Facts("main", "0a6ea36636a9ce9b19ad8687b067214e4690a3fd", 10, 0, 31),
}
NAMES = tuple(FACTS)
PERSON = re.compile(
    rb"^(?:author|committer) (?P<name>[^<]+) <(?P<address>[^>]+)> (?P<epoch>-?\d+) (?P<zone>[+-]\d{4})$"
)


def stream_of(name: str) -> bytes:
    return (SAMPLES / f"{name}.fi").read_bytes()


def first_branch(stream: bytes) -> str:
    """Return the branch of the first `commit` command; data blocks before it hold no such line in these streams."""
    found = re.search(rb"^commit refs/heads/(\S+)$", stream, re.MULTILINE)
    assert found is not None
    return found[1].decode()


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Import every stream by plain git; HEAD is set to the branch of the first commit command."""
    folder = tmp_path_factory.mktemp("samples")
    for name in NAMES:
        done = import_stream(stream_of(name), folder / name)
        assert done.stderr == b"", name
        git(folder / name, "symbolic-ref", "HEAD", f"refs/heads/{first_branch(stream_of(name))}")
    return {name: folder / name for name in NAMES}


def test_every_stream_is_known_here_and_in_the_quickstart() -> None:
    found = sorted(path.stem for path in SAMPLES.glob("*.fi"))
    listed = load_config(QUICKSTART).sources[0].fast_import
    assert found == sorted(NAMES)
    assert list(listed) == [f"../samples/{name}.fi" for name in sorted(NAMES)]


@pytest.mark.parametrize("name", NAMES)
def test_import_gives_the_pinned_repository(name: str, imported: Mapping[str, Path]) -> None:
    git_dir = imported[name]
    branches = text_of(git_dir, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
    facts = Facts(
        branch=text_of(git_dir, "symbolic-ref", "--short", "HEAD"),
        head=text_of(git_dir, "rev-parse", "HEAD"),
        commits=int(text_of(git_dir, "rev-list", "--count", "HEAD")),
        merges=int(text_of(git_dir, "rev-list", "--count", "--merges", "HEAD")),
        files=len(text_of(git_dir, "ls-tree", "-r", "--name-only", "HEAD").splitlines()),
        other_branches=tuple(branch for branch in branches if branch != FACTS[name].branch),
    )
    assert facts == FACTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_commit_is_on_the_default_branch(name: str, imported: Mapping[str, Path]) -> None:
    assert text_of(imported[name], "rev-list", "--all", "--not", "HEAD") == ""


@pytest.mark.parametrize("name", NAMES)
def test_fsck_finds_only_the_date_that_is_broken_on_purpose(name: str, imported: Mapping[str, Path]) -> None:
    command = ["git", f"--git-dir={imported[name]}", "fsck", "--strict", "--full"]
    done = subprocess.run(command, env=GIT_ENVIRONMENT, capture_output=True, check=False)
    broken = text_of(imported[name], "log", "--format=%H", "--fixed-strings", "--grep", "Sort sections by name")
    faults = [line for line in (done.stdout + done.stderr).decode().splitlines() if line]
    if name == "quirks":
        assert len(faults) == 1
        assert faults[0].startswith(f"error in commit {broken}: badDateOverflow")
    else:
        assert (faults, broken) == ([], "")


@pytest.mark.parametrize("name", NAMES)
def test_comments_give_the_dates_of_the_numbers_below_them(name: str) -> None:
    lines = stream_of(name).split(b"\n")
    checked = 0
    for position, line in enumerate(lines):
        if not (line.startswith(b"author ") and lines[position + 1].startswith(b"committer ")):
            continue
        author, committer = PERSON.match(line), PERSON.match(lines[position + 1])
        assert author is not None
        assert committer is not None
        comment = lines[position - 1].decode().removeprefix("# ")
        written, _, committed = comment.partition(", committed ")
        if not written.startswith("unreadable: "):
            assert _epoch_of(written) == (int(author["epoch"]), author["zone"].decode())
            assert _epoch_of(committed or written) == (int(committer["epoch"]), committer["zone"].decode())
        checked += 1
    assert checked == FACTS[name].commits


def _epoch_of(text: str) -> tuple[int, str]:
    return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S %z").timestamp()), text[-5:]


@pytest.mark.parametrize("name", NAMES)
def test_people_are_invented(name: str) -> None:
    people = [match for line in stream_of(name).split(b"\n") if (match := PERSON.match(line))]
    assert len(people) == 2 * FACTS[name].commits
    assert {match["address"].rpartition(b"@")[2] for match in people} == {b"example.org"}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "quirks"])
def test_streams_are_plain_text(name: str) -> None:
    text = stream_of(name).decode("utf-8")
    assert "\r" not in text
    assert "\0" not in text
    assert text.startswith("feature done\n")
    assert text.endswith("\ndone\n")


def test_quirks_hold_the_odd_entries(imported: Mapping[str, Path]) -> None:
    entries = git(imported["quirks"], "ls-tree", "-r", "-z", "HEAD").split(b"\0")[:-1]
    odd = sorted((line.split(b"\t")[1], line[:6]) for line in entries if not line.startswith(b"100644"))
    assert odd == [(b"chat.py", b"160000"), (b"engine", b"160000"), (b"quirks/shared.py", b"120000")]
    assert b"quirks/caf\xe9.py" in {line.split(b"\t")[1] for line in entries}


def blob(git_dir: Path, path: str) -> bytes:
    return git(git_dir, "cat-file", "blob", f"HEAD:{path}")


def test_quirks_hold_the_odd_bytes(imported: Mapping[str, Path]) -> None:
    git_dir = imported["quirks"]
    crlf, cr_only, mixed = (blob(git_dir, f"quirks/{name}.py") for name in ("crlf", "cr_only", "mixed"))
    assert crlf.count(b"\r\n") == crlf.count(b"\n") == 20
    assert (cr_only.count(b"\r"), cr_only.count(b"\n")) == (10, 0)
    assert (mixed.count(b"\r\n"), mixed.count(b"\n")) == (5, 8)
    assert blob(git_dir, "quirks/bom.py").startswith(b"\xef\xbb\xbf")
    assert not blob(git_dir, "quirks/no_newline.py").endswith(b"\n")
    assert blob(git_dir, "quirks/nul.py").count(b"\0") == 1
    assert blob(git_dir, "quirks/latin1_cookie.py").startswith(b"# -*- coding: iso-8859-1 -*-\n")
    assert blob(git_dir, "scripts/empty.py") == b""
    assert max(map(len, blob(git_dir, "scripts/wide.py").split(b"\n"))) == 4_011
    for name in ("latin1_cookie", "latin1_plain"):
        with pytest.raises(UnicodeDecodeError):
            blob(git_dir, f"quirks/{name}.py").decode()


def test_latin1_message_is_stored_in_latin1(imported: Mapping[str, Path]) -> None:
    commit = text_of(imported["quirks"], "log", "--format=%H", "--grep", "encodings of the nineties")
    raw = git(imported["quirks"], "cat-file", "commit", commit)
    assert b"\nencoding ISO-8859-1\n" in raw
    assert "déjà vu".encode("latin-1") in raw


def test_tabs_and_form_feed_are_in_place(imported: Mapping[str, Path]) -> None:
    source = blob(imported["gridtext"], "gridtext/draw.py")
    assert source.count(b"\n\x0c\n") == 1
    assert b"\n\tdef around(" in source


def test_files_are_renamed_as_git_sees_it(imported: Mapping[str, Path]) -> None:
    commit = text_of(imported["measures"], "log", "--format=%H", "--grep", "Rename the report and scale modules")
    changes = text_of(imported["measures"], "diff-tree", "-r", "-M", "--no-commit-id", "--name-status", commit)
    rows = [line.split("\t") for line in changes.splitlines()]
    assert [row[1:] for row in rows] == [
        ["measures/report.py", "measures/printing.py"],
        ["measures/scales.py", "measures/temperature.py"],
    ]
    assert rows[0][0] == "R100"
    assert 60 <= int(rows[1][0][1:]) < 100


def test_octopus_has_three_parents(imported: Mapping[str, Path]) -> None:
    parents = text_of(imported["conveyor"], "log", "--merges", "--format=%P").splitlines()
    assert sorted(len(line.split()) for line in parents) == [2, 2, 3]


def test_cutoff_is_hit_to_the_second(imported: Mapping[str, Path]) -> None:
    epochs = [int(line) for line in text_of(imported["almanac"], "log", "--format=%ct").splitlines()]
    cutoff = int(load_config(QUICKSTART).window.since.timestamp())
    assert sorted(epochs)[1:3] == [cutoff - 1, cutoff]


def test_quickstart_builds_every_testbed_from_samples_and_this_repository() -> None:
    config = load_config(QUICKSTART)
    assert config.testbeds.names == ALL_TESTBEDS
    assert config.release == ReleaseConfig(version="quickstart", name="Postquem", overwrite=True)
    assert config.sources[1:] == (SourceConfig(git=("..",), repo="postquem/postquem", optional=True, execute=False),)


def test_public_example_shows_every_option_with_its_default() -> None:
    path = ROOT / "configs" / "public.toml"
    config = load_config(path)
    assert (config.mining, config.features) == (MiningConfig(), FeaturesConfig())
    assert (config.dedup, config.testbeds) == (DedupConfig(), TestbedsConfig())
    text = path.read_text(encoding="utf-8")
    sections = (SourceConfig, MiningConfig, FeaturesConfig, DedupConfig, TestbedsConfig, ReleaseConfig)
    keys = [key for section in sections for key in section.__slots__] + ["since", "until"]
    missing = [key for key in keys if key not in text]
    assert missing == []


def test_real_code_example_shows_every_option_with_its_default() -> None:
    path = ROOT / "configs" / "realcode.toml"
    config = load_config(path)
    assert replace(config.real_code, docstring=DocstringNeed.ANY) == RealCodeConfig()
    assert config.testbeds.names == ("raw_data", "real_code")
    text = path.read_text(encoding="utf-8")
    assert [key for key in RealCodeConfig.__slots__ if f"{key} = " not in text] == []


def test_search_examples_are_galeras_and_meras_queries() -> None:
    galeras = load_config(ROOT / "configs" / "galeras.toml").search
    assert galeras == SearchConfig(stars=">1000", pushed=">2021-12-31", size=">=30000")
    text = (ROOT / "configs" / "galeras.toml").read_text(encoding="utf-8")
    assert [key for key in SearchConfig.__slots__ if f"{key} = " not in text] == []
    assert load_config(ROOT / "configs" / "realcode.toml").search == SearchConfig(
        created="2024-01-01..2024-12-31",
        stars=">=3",
        n_forks=">=1",
        size="<30000",
        licences=LicencesConfig().allow,
    )


@pytest.mark.parametrize("name", ["quickstart", "public", "realcode", "galeras"])
def test_every_key_of_a_configuration_is_explained(name: str) -> None:
    lines = (ROOT / "configs" / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    keys = [position for position, line in enumerate(lines) if re.match(r"[a-z_]+ = ", line)]
    assert len(keys) >= 5
    unexplained = [
        lines[position]
        for position in keys
        if "# " not in lines[position]
        and not any(line.startswith("#") for line in lines[max(0, position - 5) : position])
    ]
    assert unexplained == []
