import os
import stat
from pathlib import Path

import pytest

from miners.git_process import (
    ObjectReader,
    check_branch,
    check_object_id,
    first_lines,
    git_environment,
    run_git,
)
from schemas.errors import ConfigError, DataError
from tests.builders import RepoBuilder, git


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo.git")


def reason(error: pytest.ExceptionInfo[DataError]) -> str:
    return error.value.reason


class TestEnvironment:
    def test_nothing_of_the_caller_gets_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_PARAMETERS", "GIT_SSH", "SECRET"):
            monkeypatch.setenv(name, "x")
        monkeypatch.setenv("HOME", "/home/somebody")
        environment = git_environment()
        assert {
            "GIT_DIR",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_CONFIG_PARAMETERS",
            "GIT_SSH",
            "SECRET",
        }.isdisjoint(environment)
        assert environment["HOME"] == "/dev/null"

    def test_proxy_and_certificates_get_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
        monkeypatch.setenv("GIT_SSL_CAINFO", "/etc/ca.pem")
        environment = git_environment()
        assert (environment["https_proxy"], environment["GIT_SSL_CAINFO"]) == (
            "http://proxy.example:3128",
            "/etc/ca.pem",
        )

    def test_prompts_protocols_and_replacements_are_closed(self) -> None:
        environment = git_environment()
        assert {
            name: environment[name]
            for name in ("GIT_TERMINAL_PROMPT", "GIT_ALLOW_PROTOCOL", "GIT_NO_REPLACE_OBJECTS", "GIT_CONFIG_NOSYSTEM")
        } == {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "https:file",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def test_our_settings_outrank_the_repositorys_own(self, repo: RepoBuilder) -> None:
        git(repo.git_dir, "config", "core.hooksPath", "/somewhere")
        git(repo.git_dir, "config", "core.fsmonitor", "/some/program")
        assert run_git(repo.git_dir, "config", "--get", "core.hooksPath") == b"/dev/null\n"
        assert run_git(repo.git_dir, "config", "--get", "core.fsmonitor") == b"false\n"

    def test_the_users_configuration_is_not_read(
        self, repo: RepoBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / ".gitconfig").write_text("[user]\n\tname = Somebody\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "git").mkdir()
        (tmp_path / "git" / "config").write_text("[user]\n\tname = Somebody\n")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
        with pytest.raises(DataError, match="exit code 1"):
            run_git(repo.git_dir, "config", "--get", "user.name")

    def test_a_repository_of_another_user_is_readable(self, repo: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
        commit = repo.commit({"a.py": b""})
        environment = git_environment() | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
        monkeypatch.setattr("miners.git_process.git_environment", lambda: environment)
        assert run_git(repo.git_dir, "rev-parse", "HEAD").decode().strip() == commit


class TestRunGit:
    def test_gives_input_and_returns_output(self, repo: RepoBuilder) -> None:
        output = run_git(repo.git_dir, "hash-object", "-t", "blob", "--stdin", input=b"hello\n")
        assert output == b"ce013625030ba8dba906f756967f9e9ca394464a\n"

    def test_a_failure_carries_gits_words(self, repo: RepoBuilder) -> None:
        with pytest.raises(DataError, match="fatal: Needed a single revision") as error:
            run_git(repo.git_dir, "rev-parse", "--verify", "no-such-ref")
        assert reason(error) == "git_failed"

    def test_a_silent_failure_gives_the_exit_code(self, repo: RepoBuilder) -> None:
        with pytest.raises(DataError, match="exit code 1"):
            run_git(repo.git_dir, "config", "--get", "no.such.key")

    def test_the_callers_git_dir_is_ignored(
        self, repo: RepoBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = RepoBuilder(tmp_path / "other.git")
        other.commit({"other.py": b""})
        commit = repo.commit({"mine.py": b""})
        monkeypatch.setenv("GIT_DIR", str(other.git_dir))
        monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.git_dir / "objects"))
        assert run_git(repo.git_dir, "ls-tree", "--name-only", commit) == b"mine.py\n"

    def test_replacement_refs_are_ignored(self, repo: RepoBuilder) -> None:
        first = repo.commit({"a.py": b"1\n"})
        second = repo.commit({"a.py": b"2\n"})
        git(repo.git_dir, "replace", first, second)
        assert run_git(repo.git_dir, "show", f"{first}:a.py") == b"1\n"

    def test_grafts_are_ignored(self, repo: RepoBuilder) -> None:
        first = repo.commit({"a.py": b"1\n"})
        second = repo.commit({"a.py": b"2\n"})
        (repo.git_dir / "info").mkdir(exist_ok=True)
        (repo.git_dir / "info" / "grafts").write_text(f"{second}\n")
        assert run_git(repo.git_dir, "rev-list", second).decode().split() == [second, first]

    def test_git_not_installed_says_what_to_do(self, repo: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(ConfigError, match="install git"):
            run_git(repo.git_dir, "version")

    def test_first_lines_joins_and_escapes(self) -> None:
        assert first_lines(b"one\n\n  two \xff\n" + b"more\n" * 9) == "one; two \\xff; more; more"


class TestNames:
    @pytest.mark.parametrize("good", ["0" * 40, "0123456789abcdef" * 4])
    def test_full_ids_pass(self, good: str) -> None:
        assert check_object_id(good) == good

    @pytest.mark.parametrize("bad", ["", "HEAD", "0" * 39, "0" * 41, "A" * 40, "0" * 40 + "\n", "--output=/tmp/x"])
    def test_everything_else_is_refused(self, bad: str) -> None:
        with pytest.raises(DataError) as error:
            check_object_id(bad)
        assert reason(error) == "object_id_invalid"

    @pytest.mark.parametrize("good", ["main", "release/1.x", "feature#1", "größe"])
    def test_branches_of_git_pass(self, good: str) -> None:
        assert check_branch(good) == good

    @pytest.mark.parametrize(
        "bad", ["", "-x", "--upload-pack=touch /tmp/x", "a..b", "a b", "a\nb", "a\0b", "x.lock", "@{-1}", "a^", "/a"]
    )
    def test_other_branches_are_refused(self, bad: str) -> None:
        with pytest.raises(ConfigError, match="no valid branch name"):
            check_branch(bad)


class TestObjectReader:
    def test_reads_types_contents_and_sizes(self, repo: RepoBuilder) -> None:
        commit = repo.commit({"a.py": b"x = 1\n\0\n"})
        blob, tree = repo.blob_of(commit, "a.py"), repo.root_tree(commit)
        with ObjectReader(repo.git_dir) as reader:
            assert reader.read(blob) == ("blob", b"x = 1\n\0\n")
            assert reader.size(blob) == 8
            assert reader.read(tree)[0] == "tree"
            assert reader.read(commit)[1].startswith(b"tree " + tree.encode())

    def test_an_empty_blob_is_no_missing_one(self, repo: RepoBuilder) -> None:
        empty = repo.blob(b"")
        with ObjectReader(repo.git_dir) as reader:
            assert (reader.read(empty), reader.size(empty)) == (("blob", b""), 0)

    @pytest.mark.parametrize("method", ["read", "size"])
    def test_a_missing_object_costs_only_itself(self, repo: RepoBuilder, method: str) -> None:
        gone, there = repo.blob(b"gone"), repo.blob(b"there")
        repo.remove(gone)
        with ObjectReader(repo.git_dir) as reader:
            with pytest.raises(DataError, match=gone) as error:
                getattr(reader, method)(gone)
            assert reason(error) == "object_missing"
            assert reader.read(there) == ("blob", b"there")

    @pytest.mark.parametrize("method", ["read", "size"])
    def test_a_corrupt_object_costs_only_itself(self, repo: RepoBuilder, method: str) -> None:
        bad, there = repo.blob(b"bad"), repo.blob(b"there")
        repo.corrupt(bad)
        with ObjectReader(repo.git_dir) as reader:
            for _ in range(2):
                with pytest.raises(DataError, match=bad) as error:
                    getattr(reader, method)(bad)
                assert reason(error) == "object_corrupt"
                assert reader.read(there) == ("blob", b"there")

    def test_a_truncated_object_is_corrupt(self, repo: RepoBuilder) -> None:
        bad, there = repo.blob(os.urandom(9_000)), repo.blob(b"there")
        path = repo.object_path(bad)
        path.write_bytes(path.read_bytes()[:4_000])
        with ObjectReader(repo.git_dir) as reader:
            with pytest.raises(DataError) as error:
                reader.read(bad)
            assert reason(error) == "object_corrupt"
            assert reader.read(there) == ("blob", b"there")

    def test_an_object_corrupt_in_its_pack_costs_only_itself(self, repo: RepoBuilder) -> None:
        contents = os.urandom(9_000)
        bad, there = repo.blob(contents), repo.blob(b"there")
        repo.commit({"bad.py": contents, "there.py": b"there"})
        git(repo.git_dir, "repack", "-adq")
        (pack,) = (repo.git_dir / "objects" / "pack").glob("*.pack")
        pack.chmod(stat.S_IRUSR | stat.S_IWUSR)
        listing = git(repo.git_dir, "verify-pack", "-v", str(pack.with_suffix(".idx"))).decode().splitlines()
        offset = next(int(line.split()[4]) for line in listing if line.startswith(bad))
        data = bytearray(pack.read_bytes())
        data[offset + 3_000 : offset + 3_100] = bytes(100)
        pack.write_bytes(data)
        with ObjectReader(repo.git_dir) as reader:
            with pytest.raises(DataError, match=bad) as error:
                reader.read(bad)
            assert reason(error) == "object_corrupt"
            assert reader.read(there) == ("blob", b"there")

    def test_many_objects_in_the_order_in_which_they_are_asked_for(self, repo: RepoBuilder) -> None:
        blobs = [repo.blob(b"%d" % n) for n in range(1_200)]
        gone, commit = repo.blob(b"gone"), repo.commit({"a.py": b"x"})
        repo.remove(gone)
        ids = [*blobs, gone, commit, blobs[0], commit]
        with ObjectReader(repo.git_dir) as reader:
            message = reader.read(commit)
            assert [*reader.read_many(ids)] == [
                *(("blob", b"%d" % n) for n in range(1_200)), None, message, ("blob", b"0"), message,
            ]  # fmt: skip
            assert reader.read(blobs[1]) == ("blob", b"1")

    def test_behind_one_that_git_dies_of_many_objects_are_not_told_but_can_be_asked_for(
        self, repo: RepoBuilder
    ) -> None:
        contents = os.urandom(9_000)
        bad, before, behind = repo.blob(contents), repo.blob(b"before"), repo.blob(b"behind")
        path = repo.object_path(bad)
        path.write_bytes(path.read_bytes()[:4_000])
        with ObjectReader(repo.git_dir) as reader:
            assert [*reader.read_many([before, bad, behind])] == [("blob", b"before"), None, None]
            assert [*reader.read_many([behind])] == [("blob", b"behind")]

    def test_an_id_that_is_none_never_reaches_git(self, repo: RepoBuilder) -> None:
        with ObjectReader(repo.git_dir) as reader, pytest.raises(DataError) as error:
            reader.read("HEAD\n" + "0" * 40)
        assert reason(error) == "object_id_invalid"

    def test_works_again_after_close(self, repo: RepoBuilder) -> None:
        blob = repo.blob(b"x")
        reader = ObjectReader(repo.git_dir)
        assert reader.read(blob) == ("blob", b"x")
        reader.close()
        assert reader.read(blob) == ("blob", b"x")
        reader.close()
        reader.close()

    def test_sha256_repositories(self, tmp_path: Path) -> None:
        repo = RepoBuilder(tmp_path / "sha256.git", object_format="sha256")
        blob = repo.blob(b"x")
        assert len(blob) == 64
        with ObjectReader(repo.git_dir) as reader:
            assert reader.read(blob) == ("blob", b"x")
