"""Clones that hold a part of a repository, fetched over HTTPS from a real `git http-backend`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from miners.checkout import export_tree
from miners.clone import Clone, CloneOptions, Place, identify, open_clone, thin_out
from miners.git_answers import Pauses
from miners.git_process import run_git
from miners.mine import MinedRepository, finish_mining
from miners.needed import fetch_cutoff, plan_and_fetch
from miners.partial import fetch_objects, is_partial, missing
from miners.remote import Limits
from miners.take import take_range
from schemas.config import MiningConfig, SourceConfig, WindowConfig
from schemas.errors import DataError, UnreachableError
from tests.builders import RepoBuilder
from tests.github.server import GIT_LIMITS, FakeClock, Hub, serving
from tests.miners.mining import NOW, SINCE

OLD, OLDER = "1600000000 +0000", "1300000000 +0000"
AREA = b"def area(width, height):\n    return width * height\n"
ROUND = b"def round_up(value):\n    return -(-value // 1)\n"
SIZE = b"def size(self):\n    return len(self.items)\n"


@pytest.fixture
def hub(tmp_path: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate[0]))
    monkeypatch.setattr("miners.remote.PAUSES", (0.0,) * 9)
    clock = FakeClock()
    monkeypatch.setattr("miners.git_answers.HOSTS", Pauses(clock.now, clock.sleep, lambda text: None))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    hub = Hub([], root=tmp_path / "www")
    with serving(hub, certificate):
        yield hub


@pytest.fixture
def repo(hub: Hub) -> RepoBuilder:
    """A repository with much that nobody reads, old code that comes back, code that moves, and licences."""
    assert hub.root is not None
    builder = RepoBuilder(hub.root / "o" / "r.git")
    builder.commit({"a.py": AREA, "big.bin": os.urandom(50_000)}, author_date=OLDER)
    for number in range(5):
        text = b"x = %d\n" % number + AREA
        builder.commit({"a.py": text, "big.bin": os.urandom(50_000), "c.py": SIZE}, author_date=OLDER)
    builder.commit({"a.py": b"x = 1\n", "LICENSE": b"All rights reserved.\n"}, author_date=OLD)
    builder.commit({"b.py": ROUND, "sub/d.py": b"y = 2\n", "big.bin": b""}, author_date=OLD)
    builder.commit({"b.py": None, "e.py": AREA, "pyproject.toml": b"[project]\nlicense = 'MIT'\n"})
    builder.commit({"moved.py": SIZE, "b.py": ROUND, "notes.txt": os.urandom(9_000)})
    return builder


def place(hub: Hub) -> Place:
    location = f"{hub.base}/o/r"
    return identify(SourceConfig(git=(location,)), location, Path("/"))


def mine(clone: Clone, former: MinedRepository | None = None, search_history: str = "4y") -> MinedRepository:
    config = MiningConfig(search_history=search_history)
    plan = plan_and_fetch(clone, config, WindowConfig(SINCE), NOW, None if former is None else former.former_run())
    taken = [take_range(clone, config, plan.selected, part) for part in plan.ranges(1)]
    return finish_mining(clone, config, plan, taken, former)


@pytest.mark.parametrize("search_history", ["none", "4y", "all"])
def test_a_part_gives_the_tables_of_the_whole(hub: Hub, repo: RepoBuilder, tmp_path: Path, search_history: str) -> None:
    whole = open_clone(place(hub), tmp_path / "whole", options=CloneOptions(whole=True))
    n_whole, hub.git_bytes = hub.git_bytes, 0
    hub.asked.clear()
    part = open_clone(place(hub), tmp_path / "part")
    assert (is_partial(whole.git_dir), is_partial(part.git_dir)) == (False, True)
    mined = mine(part, search_history=search_history)
    assert mined == mine(whole, search_history=search_history)
    found = {row.path: row.novelty.value for row in mined.methods}
    back = "added" if search_history == "none" else "restored"
    assert found == {"e.py": back, "moved.py": "moved", "b.py": back}
    # The branches, twice; the commits, the trees, the files: each once.
    assert [asked.path for asked in hub.asked].count("/o/r/git-upload-pack") == 2 + 3
    assert hub.git_bytes < 0.1 * n_whole
    assert run_git(part.git_dir, "config", "--get-regexp", "core.bare").split()[-1] == b"true"
    with pytest.raises(DataError, match="git_failed"):  # nobody fetches behind the reader's back
        run_git(part.git_dir, "cat-file", "blob", "HEAD:notes.txt")


def test_what_is_there_is_not_fetched_again(hub: Hub, repo: RepoBuilder, tmp_path: Path) -> None:
    clone = open_clone(place(hub), tmp_path / "part")
    first = mine(clone)
    hub.asked.clear()
    assert mine(clone) == first
    assert hub.asked == []


def test_a_thinned_out_clone_fetches_only_what_is_new(hub: Hub, repo: RepoBuilder, tmp_path: Path) -> None:
    clone = open_clone(place(hub), tmp_path / "part")
    first = mine(clone)
    assert thin_out(clone.git_dir)
    assert missing(clone.git_dir, [repo.blob_of(clone.record.head, "e.py")]) != []
    assert open_clone(place(hub), tmp_path / "part").record == clone.record
    repo.commit({"f.py": SIZE.replace(b"len", b"sum"), "e.py": b"z = 1\n"})
    repo.commit({"g.py": AREA})
    again = open_clone(place(hub), tmp_path / "part")
    grown = mine(again, first)
    assert grown == mine(open_clone(place(hub), tmp_path / "new"))
    assert {row.path: row.novelty.value for row in grown.methods} == {
        "e.py": "restored", "moved.py": "moved", "b.py": "restored", "f.py": "added", "g.py": "restored",
    }  # fmt: skip


def test_whole_clones_are_not_thinned_out(hub: Hub, repo: RepoBuilder, tmp_path: Path) -> None:
    clone = open_clone(place(hub), tmp_path / "whole", options=CloneOptions(whole=True))
    assert not thin_out(clone.git_dir)
    assert fetch_objects(clone.git_dir, ["0" * 40]) == 0


def test_other_readers_fetch_what_they_read(hub: Hub, repo: RepoBuilder, tmp_path: Path) -> None:
    clone = open_clone(place(hub), tmp_path / "part")
    assert export_tree(clone.git_dir, clone.record.head, tmp_path / "tree").files == 10
    assert (tmp_path / "tree" / "e.py").read_bytes() == AREA
    thin_out(clone.git_dir)
    fetch_cutoff(clone, clone.record.head)
    blobs = [repo.blob_of(clone.record.head, name) for name in ("e.py", "sub/d.py", "notes.txt")]
    assert missing(clone.git_dir, blobs) == blobs[2:]


def test_a_host_that_gives_no_parts(hub: Hub, repo: RepoBuilder, tmp_path: Path) -> None:
    part = mine(open_clone(place(hub), tmp_path / "part"))
    hub.partial = False
    assert mine(open_clone(place(hub), tmp_path / "other")) == part


def test_a_host_that_lacks_an_object(hub: Hub, repo: RepoBuilder, tmp_path: Path) -> None:
    clone = open_clone(place(hub), tmp_path / "part")
    repo.remove(repo.blob_of(clone.record.head, "e.py"))
    with pytest.raises(UnreachableError, match="repository corruption on the remote side"):
        mine(clone)


@pytest.mark.parametrize("damage", ["pack", "idx", "lock", "unfinished"])
def test_a_damaged_clone_is_made_anew(hub: Hub, repo: RepoBuilder, tmp_path: Path, damage: str) -> None:
    clone = open_clone(place(hub), tmp_path / "part")
    first = mine(clone)
    packs = sorted((clone.git_dir / "objects" / "pack").glob("*.pack"))
    packs[0].chmod(0o600)
    if damage == "pack":
        data = bytearray(packs[0].read_bytes())
        data[len(data) // 2] ^= 1
        packs[0].write_bytes(data)
    elif damage == "idx":
        packs[0].with_suffix(".idx").unlink()
    elif damage == "lock":
        (clone.git_dir / "refs" / "heads" / "main.lock").parent.mkdir(parents=True, exist_ok=True)
        (clone.git_dir / "refs" / "heads" / "main.lock").write_bytes(b"")
        repo.commit({"h.py": b"h = 1\n"})
    else:
        (clone.git_dir / "objects" / "pack" / "tmp_pack_x").write_bytes(b"PACK")
    again = open_clone(place(hub), tmp_path / "part")
    assert [path.name for path in again.git_dir.rglob("tmp_pack*")] == []
    assert mine(again).methods == first.methods


def test_limits(hub: Hub, repo: RepoBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("miners.remote._LOOK_SECONDS", 0.001)
    hub.before_git = lambda path: time.sleep(0.3)
    for options in (CloneOptions(limits=Limits(max_bytes=1)), CloneOptions(whole=True, limits=Limits(max_bytes=1))):
        with pytest.raises(DataError, match="clone_too_large"):
            open_clone(place(hub), tmp_path / "large", options=options)
    with pytest.raises(UnreachableError, match="took longer than"):
        open_clone(place(hub), tmp_path / "slow", options=CloneOptions(limits=Limits(timeout=0.05)))
    assert [*(tmp_path / "large").rglob("HEAD")] == [*(tmp_path / "slow").rglob("HEAD")] == []


@pytest.mark.parametrize("seed", [1, 2])
def test_faults_on_a_fifth_of_the_requests_change_nothing(
    hub: Hub, repo: RepoBuilder, tmp_path: Path, seed: int
) -> None:
    calm = mine(open_clone(place(hub), tmp_path / "calm"))
    hub.git_fault_rate = 0.2
    hub.rng.seed(seed)
    hub.asked.clear()
    assert mine(open_clone(place(hub), tmp_path / "part")) == calm
    assert any(asked.status != 200 for asked in hub.asked)


@pytest.mark.parametrize("number", range(5))
def test_a_limit_at_any_request_is_waited_for(
    hub: Hub, repo: RepoBuilder, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the branches, the commits, the trees or the files: the answer's headers tell how long."""
    clock, told = FakeClock(), list[str]()
    monkeypatch.setattr("miners.git_answers.HOSTS", Pauses(clock.now, clock.sleep, told.append))
    calm = mine(open_clone(place(hub), tmp_path / "calm"))
    n_calm = len(hub.asked)
    hub.asked.clear()
    hub.git_scripted = ["", "", *[""] * number, "403 retry-after=77"]
    assert mine(open_clone(place(hub), tmp_path / "part")) == calm
    assert [round(seconds) for seconds in clock.slept] == [77]
    assert len(told) == 1
    assert n_calm < len(hub.asked) <= n_calm + 3  # the command that met it is run again, from its beginning


@pytest.mark.parametrize("fault", [*GIT_LIMITS, "503 retry-after=2", "429 retry-after=Thu,_01_Jan_1970"])
def test_the_ways_in_which_a_limit_is_told(hub: Hub, repo: RepoBuilder, tmp_path: Path, fault: str) -> None:
    hub.git_scripted = [fault] * 3
    assert open_clone(place(hub), tmp_path / "part").record.n_commits == 10


@pytest.mark.parametrize(
    ("fault", "reason", "n_asked"),
    [
        ("451", "repository_blocked", 1),
        ("403: Repository unavailable due to DMCA takedown.", "repository_blocked", 1),
        ("403: Access to this repository has been disabled by staff.", "repository_disabled", 1),
    ],
)
def test_what_is_closed_to_everybody_is_asked_for_once(
    hub: Hub, repo: RepoBuilder, tmp_path: Path, fault: str, reason: str, n_asked: int
) -> None:
    for start in ([], [""] * 2):  # at the branches, and at the commits
        hub.git_scripted = [*start, *[fault] * 9]
        hub.asked.clear()
        with pytest.raises(DataError) as caught:
            open_clone(place(hub), tmp_path / "part")
        assert (caught.value.reason, len(hub.asked)) == (reason, len(start) + n_asked)
    assert [*(tmp_path / "part").rglob("HEAD")] == []


CHILD = "import sys; from pathlib import Path; from tests.miners.test_partial import *\n" \
    "hub = Hub([], base=sys.argv[1]); print(len(mine(open_clone(place(hub), Path(sys.argv[2]))).methods))"  # fmt: skip


@pytest.mark.parametrize(("number", "n_again"), [(5, 9), (7, 8), (9, 6)])
def test_a_killed_run_goes_on_where_it_stopped(
    hub: Hub, repo: RepoBuilder, tmp_path: Path, number: int, n_again: int
) -> None:  # fmt: skip
    """Killed while it fetches commits, trees or files: what was answered before is not asked for again."""
    calm = mine(open_clone(place(hub), tmp_path / "calm"))
    n_asked, n_seen = len(hub.asked), 0
    assert n_asked == 2 + 3 + 2 + 2  # branches, commits, trees, files
    hub.asked.clear()
    child = subprocess.Popen([sys.executable, "-c", CHILD, hub.base, str(tmp_path / "part")], stderr=subprocess.DEVNULL)

    def kill(path: str) -> None:
        nonlocal n_seen
        n_seen += 1
        if n_seen == number:
            os.kill(child.pid, signal.SIGKILL)

    hub.before_git = kill
    assert child.wait(timeout=60) == -signal.SIGKILL
    hub.before_git = lambda path: None
    while len(hub.asked) < number:  # the killed run's git lives on until it has its answer
        time.sleep(0.01)
    hub.asked.clear()
    assert mine(open_clone(place(hub), tmp_path / "part")) == calm
    # The branches and the newest commit are asked for again, and what was cut off unless that git could keep it.
    assert len(hub.asked) <= n_again


def test_the_copy_of_a_part_is_a_part(hub: Hub, repo: RepoBuilder, tmp_path: Path) -> None:
    """As a release is built again from the workspace's clones."""
    part = open_clone(place(hub), tmp_path / "part")
    copied = identify(SourceConfig(git=(str(part.git_dir),), repo="o/r"), str(part.git_dir), Path("/"))
    for _ in range(2):
        copy = open_clone(copied, tmp_path / "copies")
        assert is_partial(copy.git_dir)
        assert [replace(row, url=None) for row in mine(part).methods] == mine(copy).methods
