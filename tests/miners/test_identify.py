from pathlib import Path

import pytest

from miners.clone import Place, identify
from schemas.config import SourceConfig
from schemas.errors import ConfigError
from tests.builders import RepoBuilder
from tests.miners.places import place_of, repo

__all__ = ["repo"]  # fixtures


class TestIdentify:
    def test_an_https_url(self) -> None:
        location = "https://GitHub.com/pallets/click.git"
        assert identify(SourceConfig(git=(location,), repo_id=7, branch="main"), location, Path("/")) == Place(
            kind="https",
            url="https://github.com/pallets/click.git",
            host="github.com",
            owner="pallets",
            name="click",
            web_url="https://github.com/pallets/click",
            branch="main",
            repo_id=7,
        )

    @pytest.mark.parametrize(
        ("location", "repo", "folder", "web_url"),
        [
            ("https://github.com/a/b", "a/b", "github.com/a/b.git", "https://github.com/a/b"),
            ("https://github.com/a/b/", "a/b", "github.com/a/b.git", "https://github.com/a/b"),
            ("https://gitlab.com/g/sub/b.git", "g/sub/b", "gitlab.com/g/sub/b.git", "https://gitlab.com/g/sub/b"),
            ("https://github.com:443/a/b", "a/b", "github.com/a/b.git", "https://github.com:443/a/b"),
            ("https://git.example:8443/a/b", "a/b", "git.example_8443/a/b.git", "https://git.example:8443/a/b"),
            ("HTTPS://git.sr.ht/~who/b", "~who/b", "git.sr.ht/~who/b.git", "https://git.sr.ht/~who/b"),
        ],
    )
    def test_names_and_folders_of_urls(self, location: str, repo: str, folder: str, web_url: str) -> None:
        place = identify(SourceConfig(git=(location,)), location, Path("/"))
        assert (place.repo, str(place.git_dir(Path("/r"))), place.web_url) == (repo, f"/r/{folder}", web_url)

    def test_a_port_belongs_to_the_host(self) -> None:
        location = "https://git.example:8443/a/b"
        place = identify(SourceConfig(git=(location,), repo_id=7), location, Path("/"))
        assert (place.host, place.key) == ("git.example:8443", "git.example:8443:7")

    def test_aliases_are_the_other_names(self, repo: RepoBuilder) -> None:
        source = SourceConfig(git=(str(repo.path),), aliases=("z/z", "src/shapes", "a/b"))
        place = identify(source, str(repo.path), Path("/"))
        assert (place.repo, place.aliases, place.key) == ("src/shapes", ("a/b", "z/z"), "src/shapes")

    def test_a_local_path_and_its_name(self, repo: RepoBuilder) -> None:
        assert place_of(repo.path) == Place("path", str(repo.path), "local", "src", "shapes", None, None, None)

    def test_the_configuration_names_it_otherwise(self, repo: RepoBuilder) -> None:
        place = place_of(repo.path, repo="geo/forms", web_url="https://example.org/geo/forms")
        assert (place.repo, place.web_url) == ("geo/forms", "https://example.org/geo/forms")

    @pytest.mark.parametrize("name", ["../up", "a/..", "a/b/c", "/b", "a/", "a b/c", ".hidden/c", "a/-b"])
    def test_a_stated_name_cannot_leave_its_folder(self, repo: RepoBuilder, name: str) -> None:
        for location in (str(repo.path), "https://example.org/a/b"):
            with pytest.raises(ConfigError, match="must be owner/name"):
                identify(SourceConfig(git=(location,), repo=name), location, Path("/"))

    @pytest.mark.parametrize(
        "form",
        [
            "src/shapes",
            "./src/../src/shapes",
            "{0}/src/shapes",
            "file://{0}/src/shapes",
            "file://localhost{0}/src/shapes",
        ],
    )
    def test_spellings_of_one_path(self, repo: RepoBuilder, tmp_path: Path, form: str) -> None:
        location = form.format(tmp_path)
        assert identify(SourceConfig(git=(location,)), location, tmp_path).url == str(repo.path)

    def test_home_percent_signs_and_dots(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "my code" / "a.b").mkdir(parents=True)
        monkeypatch.setenv("HOME", str(tmp_path))
        source = SourceConfig(git=("x",))
        for location in ("~/my code/a.b", f"file://{tmp_path}/my%20code/a.b"):
            place = identify(source, location, Path("/"))
            assert (place.url, place.repo) == (str(tmp_path / "my code" / "a.b"), "my-code/a.b")
        assert identify(source, ".", tmp_path / "my code" / "a.b").repo == "my-code/a.b"

    def test_the_git_folder_of_a_work_tree_and_a_bare_suffix(self, tmp_path: Path) -> None:
        (tmp_path / "own" / "work" / ".git").mkdir(parents=True)
        (tmp_path / "own" / "bare.git").mkdir()
        assert place_of(tmp_path / "own" / "work" / ".git").repo == "own/work"
        assert place_of(tmp_path / "own" / "bare.git").repo == "own/bare"

    def test_a_fast_import_stream(self, tmp_path: Path) -> None:
        (tmp_path / "geometry.fi").write_bytes(b"")
        place = identify(SourceConfig(fast_import=("geometry.fi",)), "geometry.fi", tmp_path)
        assert place == Place(
            "fast_import", str(tmp_path / "geometry.fi"), "local", "samples", "geometry", None, None, None
        )

    @pytest.mark.parametrize(
        "location",
        [
            "",
            "-oProxyCommand=touch /tmp/x",
            "--upload-pack=touch /tmp/x",
            "ssh://git@github.com/a/b",
            "git@github.com:a/b.git",
            "git://github.com/a/b",
            "http://github.com/a/b",
            "ftp://github.com/a/b",
            "ext::sh -c 'touch /tmp/x'",
            "ext://sh",
            "fd::17",
            "https::x",
            "file:relative",
            "file://server/share/repo",
            "https://github.com",
            "https://github.com/only-owner",
            "https://github.com/a/../b",
            "https://github.com/a/.git",
            "https://github.com/a/b?x=1",
            "https://github.com/a/b#x",
            "https://github.com/a/-b",
            "https://github.com/a/b c",
            "https://github.com:port/a/b",
            "https:///a/b",
            "https://github.com/a/b\nhost",
            "a\0b",
        ],
    )
    def test_everything_else_is_refused_before_git_sees_it(self, location: str) -> None:
        with pytest.raises(ConfigError):
            identify(SourceConfig(git=(location,)), location, Path("/"))

    def test_a_refusal_says_what_is_allowed(self) -> None:
        with pytest.raises(ConfigError, match=r"local path, a file:// or an https:// URL"):
            identify(SourceConfig(git=("x",)), "git@github.com:a/b.git", Path("/"))

    def test_credentials_are_refused_and_not_repeated(self) -> None:
        with pytest.raises(ConfigError, match="holds credentials") as error:
            identify(SourceConfig(git=("x",)), "https://user:s3cret@github.com/a/b", Path("/"))
        assert "s3cret" not in str(error.value)

    def test_a_missing_path_says_what_to_do(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="does not exist; correct it"):
            identify(SourceConfig(git=("nowhere",)), "nowhere", tmp_path)

    def test_a_branch_that_is_an_option_is_refused(self, repo: RepoBuilder) -> None:
        with pytest.raises(ConfigError, match="no valid branch name"):
            place_of(repo.path, branch="--upload-pack=touch /tmp/x")
