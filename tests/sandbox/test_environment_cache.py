"""The cache of environments: whole or not there, one builder at a time, never larger than it may be."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.environment_cache import EnvironmentCache, Found, size_of

ROOM = 1 << 30


def build(cache: EnvironmentCache, key: str, size: int = 1000) -> Found:
    """Make an entry with one file, and return it, held."""
    with cache.making(key) as entry:
        (entry.start() / "env").mkdir()
        (entry.building / "env" / "file").write_bytes(b"x" * size)
        entry.finish({"key": key})
    found = cache.find(key)
    assert found is not None
    return found


def inside(cache: EnvironmentCache, folder: str) -> list[str]:
    return sorted(path.name for path in (cache.root / folder).glob("*"))


def test_what_was_built_is_found_again_also_while_it_is_used(tmp_path: Path) -> None:
    cache = EnvironmentCache(tmp_path / "environments", ROOM)
    assert cache.find("one") is None
    build(cache, "one")
    first, second = cache.find("one"), cache.find("one")
    assert first is not None
    assert second is not None
    assert (first.record, second.record) == ({"key": "one"}, {"key": "one"})
    assert (first.folder / "env" / "file").stat().st_size == 1000
    assert (inside(cache, "built"), inside(cache, "building")) == (["one"], [])


def test_a_failure_leaves_nothing_and_frees_the_place(tmp_path: Path) -> None:
    cache = EnvironmentCache(tmp_path, ROOM)

    def fail() -> None:
        with cache.making("one") as entry:
            (entry.start() / "half").write_text("")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert (inside(cache, "built"), inside(cache, "building")) == ([], [])
    assert cache.find("one") is None
    build(cache, "one")


def test_a_record_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    cache = EnvironmentCache(tmp_path, ROOM)
    build(cache, "one")
    (tmp_path / "built" / "one" / "record.json").write_text("{")
    assert cache.find("one") is None
    assert build(cache, "one").record == {"key": "one"}


def _count_builds(root: Path, log: Path) -> None:
    """Build when nothing is there; a process of its own."""
    cache = EnvironmentCache(root, ROOM)
    with cache.making("one") as entry:
        if entry.read() is None:
            with log.open("a") as file:
                file.write("built\n")
            entry.start()
            time.sleep(0.2)
            entry.finish({})


def test_processes_that_want_the_same_build_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_count_builds, args=(tmp_path / "e", tmp_path / "log")) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "built\n"


KILLED = """
import sys, time
from pathlib import Path
from sandbox.environment_cache import EnvironmentCache
with EnvironmentCache(Path(sys.argv[1]), 1 << 30).making("killed") as entry:
    (entry.start() / "half").write_text("")
    print("building", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_builder_left_is_removed_and_what_a_living_one_makes_is_not(tmp_path: Path) -> None:
    cache = EnvironmentCache(tmp_path, ROOM)
    code = [sys.executable, "-c", KILLED, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    process = subprocess.Popen(code, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == b"building\n"
    build(cache, "other")
    assert inside(cache, "building") == ["killed"]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    build(cache, "third")
    assert (inside(cache, "building"), inside(cache, "built")) == ([], ["other", "third"])


def use(cache: EnvironmentCache, key: str, moment: int) -> None:
    """Set the time at which an entry was last used."""
    os.utime(cache.root / "built" / key / "record.json", ns=(moment, moment))


def test_the_least_recently_used_go_first_until_the_rest_fits(tmp_path: Path) -> None:
    cache = EnvironmentCache(tmp_path, ROOM)
    for number, key in enumerate(("a", "b", "c", "d")):
        build(cache, key, 100_000)
        use(cache, key, number)
    use(cache, "a", 10)
    size = size_of(tmp_path / "built" / "a")
    assert EnvironmentCache(tmp_path, 2 * 4 * size).evict() == []
    assert EnvironmentCache(tmp_path, 2 * (2 * size)).evict() == ["b", "c"]
    assert inside(cache, "built") == ["a", "d"]


def test_reading_an_entry_is_using_it(tmp_path: Path) -> None:
    cache = EnvironmentCache(tmp_path, ROOM)
    for number, key in enumerate(("a", "b")):
        build(cache, key, 100_000)
        use(cache, key, number)
    cache.find("a")
    assert EnvironmentCache(tmp_path, 2 * size_of(tmp_path / "built" / "a")).evict() == ["b"]


def test_what_is_in_use_stays_until_its_hold_is_gone(tmp_path: Path) -> None:
    cache = EnvironmentCache(tmp_path, ROOM)
    found = build(cache, "a", 100_000)
    assert found.folder.is_dir()
    full = EnvironmentCache(tmp_path, 1)
    assert (full.evict(), inside(cache, "built")) == ([], ["a"])
    del found
    assert (full.evict(), inside(cache, "built")) == (["a"], [])


def test_a_hold_stays_with_its_process(tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(build(EnvironmentCache(tmp_path, ROOM), "a").hold)) is None


def test_the_downloads_go_as_a_whole_when_they_outgrow_their_half_and_nobody_builds(tmp_path: Path) -> None:
    cache = EnvironmentCache(tmp_path, 200_000)
    cache.uv.mkdir()
    (cache.uv / "wheel").write_bytes(b"x" * 90_000)
    cache.evict()
    assert cache.uv.is_dir()
    (cache.uv / "another").write_bytes(b"x" * 90_000)
    with cache.making("building"):
        cache.evict()
        assert cache.uv.is_dir()
    cache.evict()
    assert not cache.uv.exists()


def test_links_are_not_followed_when_sizes_are_added(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"x" * 8192)
    (tmp_path / "a" / "loop").symlink_to("..")
    (tmp_path / "big").write_bytes(b"x" * 1_000_000)
    (tmp_path / "a" / "link").symlink_to("../big")
    assert 8192 <= size_of(tmp_path / "a") < 100_000
    assert size_of(tmp_path / "missing") == 0
