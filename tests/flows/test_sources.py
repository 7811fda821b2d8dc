"""One repository under several names is mined once; two repositories under one name are an error."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.sources import Source, drop_repeated, plan_sources
from miners.clone import Clone
from schemas.config import Config, SourceConfig, WindowConfig
from schemas.errors import ConfigError
from schemas.records import Exclusion, Kept, RepositoryRecord
from schemas.search import DiscoveredRepository, SearchConfig
from tests.builders import RepoBuilder
from tests.flows.support import AFTER, build, source_text, write_config

HUB = "https://github.com/"
Planned = list[tuple[str, int | None, tuple[str, ...], tuple[str, ...]]]


def section(
    name: str, repo_id: int | None = None, *aliases: str, host: str = HUB, branch: str | None = None
) -> SourceConfig:
    return SourceConfig(git=(host + name,), repo_id=repo_id, aliases=aliases, branch=branch)


def plan(*sections: SourceConfig) -> tuple[Planned, list[Exclusion]]:
    """Return (name, id, aliases, names whose clone may be taken over) of each repository, and what is left out."""
    kept = plan_sources(Config(sections, WindowConfig(datetime(2024, 1, 1, tzinfo=UTC))), Path("/"))
    rows = [(item.repo, item.place.repo_id, item.place.aliases, item.former) for item in kept.rows]
    return rows, kept.excluded


def repeated(name: str, key: str, kept: str) -> Exclusion:
    return Exclusion(name, "sources", "repository_repeated", f"the repository {key}, mined as {kept}")


class TestOneRepository:
    def test_one_numeric_id_on_one_host(self) -> None:
        assert plan(section("a/new", 7), section("b/other", 8), section("a/old", 7)) == (
            [("a/new", 7, ("a/old",), ("a/old",)), ("b/other", 8, (), ())],
            [repeated("a/old", "github.com:7", "a/new")],
        )

    def test_the_section_with_aliases_has_the_name(self) -> None:
        assert plan(section("a/old", 7), section("a/new", 7, "z/first")) == (
            [("a/new", 7, ("a/old", "z/first"), ("a/old", "z/first"))],
            [repeated("a/old", "github.com:7", "a/new")],
        )

    def test_of_two_sections_with_aliases_the_one_that_is_no_alias(self) -> None:
        rows = [("a/new", 7, ("a/old", "z/first"), ("a/old", "z/first"))]
        assert plan(section("a/old", 7, "z/first"), section("a/new", 7, "a/old"))[0] == rows

    def test_an_alias_without_any_id(self) -> None:
        assert plan(section("a/old"), section("a/new", None, "a/old")) == (
            [("a/new", None, ("a/old",), ("a/old",))],
            [repeated("a/old", "a/new", "a/new")],
        )

    def test_a_local_path_without_web_address_may_be_of_any_host(self, tmp_path: Path) -> None:
        old = SourceConfig(git=(str(tmp_path),), repo="a/old")
        assert plan(old, section("a/new", 7, "a/old")) == (
            [("a/new", 7, ("a/old",), ("a/old",))], [repeated("a/old", "github.com:7", "a/new")],
        )  # fmt: skip

    def test_the_id_is_that_of_either(self) -> None:
        assert plan(section("a/old", 7), section("a/new", None, "a/old"))[0] == [
            ("a/new", 7, ("a/old",), ("a/old",))
        ]  # fmt: skip

    def test_a_local_clone_belongs_to_the_host_of_its_web_address(self, tmp_path: Path) -> None:
        local = SourceConfig(git=(str(tmp_path),), repo="me/copy", repo_id=7, web_url=HUB + "a/new")
        assert plan(section("a/new", 7), local) == (
            [("a/new", 7, ("me/copy",), ("me/copy",))], [repeated("me/copy", "github.com:7", "a/new")],
        )  # fmt: skip

    def test_the_same_twice_with_an_id(self) -> None:
        assert plan(section("a/b", 7), section("a/b", 7)) == (
            [("a/b", 7, (), ())], [repeated("a/b", "github.com:7", "a/b")],
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("sections", "message"),
        [
            ([section("a/b", 7, branch="main"), section("a/old", 7)], r"\(a/b, a/old\) have different branches"),
            (
                [section("a/b", None, "a/c", "a/d"), section("a/c", 7), section("a/d", 8)],
                r"\(a/b, a/c, a/d\) have different numeric ids",
            ),
        ],
    )
    def test_sections_that_disagree(self, sections: Sequence[SourceConfig], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            plan(*sections)


class TestTwoRepositories:
    def test_one_id_on_three_hosts(self) -> None:
        others = section("c/d", 7, host="https://gitlab.com/"), section("e/f", 7, host="https://github.com:8443/")
        assert plan(section("a/b", 7), *others) == ([("a/b", 7, (), ()), ("c/d", 7, (), ()), ("e/f", 7, (), ())], [])

    def test_a_new_repository_under_an_old_name(self) -> None:
        """Its clone is its own: the renamed repository must not take it."""
        assert plan(section("a/new", 7, "a/old", "z/first"), section("a/old", 9)) == (
            [("a/new", 7, ("a/old", "z/first"), ("z/first",)), ("a/old", 9, (), ())], [],
        )  # fmt: skip

    def test_an_alias_on_another_host_is_another_repository(self) -> None:
        sections = section("a/new", None, "a/old"), section("a/old", host="https://gitlab.com/")
        assert plan(*sections) == ([("a/new", None, ("a/old",), ()), ("a/old", None, (), ())], [])

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (
                section("a/b", host="https://gitlab.com/"),
                r"called a/b \(https://github.com/a/b, https://gitlab.com/a/b\)",
            ),
            (section("a/b", 8), r"two sources are called a/b .* or both the same repo_id"),
            (section("A/B"), r"two sources are called A/B and a/b"),
        ],
    )
    def test_one_name_is_an_error(self, other: SourceConfig, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            plan(section("a/b"), other)


class TestTheSameHistory:
    def clone(self, repo: str, head: str, **columns: object) -> Clone:
        record = RepositoryRecord(repo, "local", None, None, "main", head * 40, 9)
        return Clone(Path("/r") / repo, replace(record, **columns))  # type: ignore[arg-type] # columns of the record

    @pytest.mark.parametrize(
        ("columns", "kept"),
        [
            ({}, "a/a"),
            ({"repo_id": 7}, "b/b"),
            ({"host": "github.com"}, "b/b"),
            ({"n_commits": 10}, "b/b"),
            ({"repo_id": 7, "n_commits": 8}, "a/a"),
        ],
    )
    def test_one_of_two_with_the_same_head_is_mined(self, columns: dict[str, object], kept: str) -> None:
        clones = [self.clone("a/a", "1"), self.clone("b/b", "1", **columns), self.clone("c/c", "2")]
        left = "b/b" if kept == "a/a" else "a/a"
        detail = f"its newest commit, {'1' * 40}, is that of {kept}, which is mined"
        assert drop_repeated(clones) == Kept(
            [clone for clone in clones if clone.record.repo != left],
            [Exclusion(left, "sources", "repository_repeated", detail)],
        )

    def test_a_run_over_two_copies_and_a_renamed_repository(self, tmp_path: Path) -> None:
        builder = RepoBuilder(tmp_path / "acme" / "first.git")
        builder.commit({"a.py": source_text("cost")}, "Add cost", AFTER)
        copy = RepoBuilder(tmp_path / "copies" / "second.git")
        copy.commit({"a.py": source_text("cost")}, "Add cost", AFTER)
        assert copy.tips == builder.tips
        both = [str(builder.path), str(copy.path)]
        outcome = build(write_config(tmp_path, both), tmp_path / "data")
        assert outcome.code == 0, outcome.stderr
        assert outcome.summary["stages"][0]["excluded_by_reason"] == {"repository_repeated": 1}
        assert "copies/second: left out, repository_repeated: its newest commit" in outcome.stderr
        assert outcome.summary["testbeds"]["raw_data"] == 2


def test_a_renamed_repository_keeps_its_clone_and_its_row_ids(tmp_path: Path) -> None:
    builder = RepoBuilder(tmp_path / "src.git")
    builder.commit({"a.py": source_text("cost")}, "Add cost", AFTER)

    def run(name: str, version: str, extra: str) -> list[dict[str, object]]:
        text = f"[[sources]]\ngit = ['{builder.path}']\nrepo = '{name}'\nrepo_id = 7\n{extra}"
        config = write_config(tmp_path, [], version=version)
        config.write_text(config.read_text().replace("[[sources]]\ngit = []\n", text))
        outcome = build(config, tmp_path / "data")
        assert outcome.code == 0, outcome.stderr
        [table] = (tmp_path / "data" / "releases" / version / "raw_data").glob("*.parquet")
        return list(pq.read_table(table).select(["row_id", "repo", "repo_id"]).to_pylist())

    old = run("acme/old", "1", "")
    marker = tmp_path / "data" / "repos" / "local" / "acme" / "old.git" / "marker"
    marker.write_text("the same folder")
    new = run("acme/new", "2", "aliases = ['acme/old']\n")
    assert len(old) == 2
    assert [row["repo"] for row in old + new] == ["acme/old"] * 2 + ["acme/new"] * 2
    assert [(row["row_id"], row["repo_id"]) for row in new] == [(row["row_id"], row["repo_id"]) for row in old]
    assert not marker.exists()
    assert (tmp_path / "data" / "repos" / "local" / "acme" / "new.git" / "marker").read_text() == "the same folder"
    manifest = json.loads((tmp_path / "data" / "releases" / "2" / "manifest.json").read_text())
    [record] = manifest["repositories"]
    assert (record["repo"], record["repo_id"], record["aliases"]) == ("acme/new", 7, ["acme/old"])


class TestNamedAndFound:
    """Repositories of the configuration and those that a search on GitHub found."""

    def row(self, repo: str, repo_id: int, *aliases: str) -> DiscoveredRepository:
        moment = datetime(2024, 1, 1, tzinfo=UTC)
        return DiscoveredRepository(
            repo_id=repo_id, repo=repo, aliases=aliases, stars=3, forks=1, size=9, created_at=moment, pushed_at=moment,
            license="MIT", language="Python", default_branch="main", clone_url=f"{HUB}{repo}.git",
            web_url=HUB + repo, is_fork=False, archived=False, private=False, disabled=False,
        )  # fmt: skip

    def plan(self, sections: Sequence[SourceConfig], *rows: DiscoveredRepository) -> Kept[Source]:
        config = Config(tuple(sections), WindowConfig(datetime(2024, 1, 1, tzinfo=UTC)), SearchConfig(execute=False))
        return plan_sources(config, Path("/"), rows)

    def test_what_is_found_needs_no_section(self) -> None:
        kept = self.plan([], self.row("b/two", 8), self.row("a/new", 7, "a/old"))
        found = [(item.repo, item.place.key, item.place.aliases, item.names, item.former) for item in kept.rows]
        assert found == [
            ("a/new", "github.com:7", (), ("a/old",), ("a/old",)), ("b/two", "github.com:8", (), (), ()),
        ]  # fmt: skip
        place, section = kept.rows[1].place, kept.rows[1].config
        assert (place.url, place.web_url, place.branch) == (f"{HUB}b/two.git", f"{HUB}b/two", None)
        assert (section.optional, section.execute, kept.excluded) == (True, False, [])

    @pytest.mark.parametrize("name", ["a/b", "A/b"])
    def test_one_that_is_named_too_keeps_its_section_and_gets_its_id(self, name: str) -> None:
        kept = self.plan([section(name, branch="dev")], self.row("a/b", 7))
        [source] = kept.rows
        assert (source.repo, source.place.repo_id, source.place.branch) == ("a/b", 7, "dev")
        assert source.config == section(name, branch="dev")
        assert [item.reason for item in kept.excluded] == ["repository_repeated"]

    def test_one_that_is_named_by_an_earlier_name_gets_the_newest(self) -> None:
        kept = self.plan([section("a/old", branch="dev")], self.row("a/new", 7, "a/old"))
        [source] = kept.rows
        assert (source.repo, source.place.aliases, source.place.branch) == ("a/new", ("a/old",), "dev")
        assert source.names == source.former == ("a/old",)
        assert (source.place.url, source.config.optional) == (f"{HUB}a/new.git", False)
        assert kept.excluded == [repeated("a/new", "github.com:7", "a/new")]

    def test_a_local_clone_of_it_is_used_as_it_is(self, tmp_path: Path) -> None:
        local = SourceConfig(git=(str(tmp_path),), repo="a/b", web_url=HUB + "a/b")
        [source] = self.plan([local], self.row("a/b", 7)).rows
        assert (source.place.kind, source.place.url, source.place.key) == ("path", str(tmp_path), "github.com:7")

    def test_a_name_on_another_host_is_another_repository(self) -> None:
        with pytest.raises(ConfigError, match="two sources are called a/b"):
            self.plan([section("a/b", host="https://gitlab.com/")], self.row("a/b", 7))

    def test_an_address_that_cannot_be_cloned_is_left_out(self) -> None:
        kept = self.plan([], self.row("a/.github", 7))
        assert (kept.rows, [(item.row_id, item.reason) for item in kept.excluded]) == (
            [], [("a/.github", "clone_url_refused")],
        )  # fmt: skip
