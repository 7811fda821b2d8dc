import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from miners.clone import check_shallow, identify, open_clone, shallow_boundary
from miners.git_process import NO_GIT
from schemas.config import SourceConfig
from schemas.errors import ConfigError, DataError, PipelineError
from schemas.records import RepositoryRecord
from tests.builders import GIT_ENVIRONMENT, RepoBuilder, git
from tests.miners.places import place_of, repo, repos

__all__ = ["repo", "repos"]  # fixtures


class TestUnusableSources:
    def test_an_empty_repository(self, repo: RepoBuilder, repos: Path) -> None:
        with pytest.raises(DataError) as error:
            open_clone(place_of(repo.path), repos)
        assert error.value.reason == "repository_empty"

    def test_a_folder_that_is_no_repository(self, tmp_path: Path, repos: Path) -> None:
        (tmp_path / "plain").mkdir()
        with pytest.raises(ConfigError, match="is no git repository"):
            open_clone(place_of(tmp_path / "plain"), repos)

    def test_a_folder_inside_a_work_tree(self, tmp_path: Path, repos: Path) -> None:
        work = RepoBuilder(tmp_path / "work", bare=False)
        work.commit({"a.py": b"1"})
        (work.path / "pkg").mkdir()
        with pytest.raises(ConfigError, match="is no git repository"):
            open_clone(place_of(work.path / "pkg"), repos)

    def test_a_file_that_is_no_repository(self, tmp_path: Path, repos: Path) -> None:
        (tmp_path / "file.txt").write_text("hello")
        with pytest.raises(ConfigError, match="is no git repository"):
            open_clone(place_of(tmp_path / "file.txt"), repos)

    def test_a_bundle_is_a_repository(self, repo: RepoBuilder, tmp_path: Path, repos: Path) -> None:
        head = repo.commit({"a.py": b"1"})
        git(repo.git_dir, "bundle", "create", str(tmp_path / "shapes.bundle"), "HEAD", "main")
        assert open_clone(place_of(tmp_path / "shapes.bundle"), repos).record.head == head

    def test_a_workspace_that_cannot_be_written(self, repo: RepoBuilder, tmp_path: Path) -> None:
        repo.commit({"a.py": b"1"})
        (tmp_path / "blocked").write_text("a file where the folder should be")
        with pytest.raises(ConfigError, match="choose another --workspace"):
            open_clone(place_of(repo.path), tmp_path / "blocked")

    def test_a_full_disk_says_so(self, repo: RepoBuilder, repos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        repo.commit({"a.py": b"1"})
        monkeypatch.setattr(Path, "rename", full)
        with pytest.raises(PipelineError, match="no space left") as error:
            open_clone(place_of(repo.path), repos)
        assert type(error.value) is PipelineError

    def test_git_not_installed(
        self, repo: RepoBuilder, repos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        repo.commit({"a.py": b"1"})
        place = place_of(repo.path)
        env = shutil.which("env")
        assert env is not None
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "env").symlink_to(env)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        with pytest.raises(ConfigError, match="install git"):
            open_clone(place, repos)


class TestImportOfGitPython:
    """GitPython runs git when it is imported, so that each case needs an interpreter of its own."""

    SCRIPT = (
        "import os, sys; before = dict(os.environ); from miners import clone; print(dict(os.environ) == before);"
        "from pathlib import Path; from schemas.errors import ConfigError; from schemas.config import SourceConfig\n"
        "place = clone.identify(SourceConfig(git=(sys.argv[1],)), sys.argv[1], Path('/'))\n"
        "try: print(clone.open_clone(place, Path(sys.argv[2])).record.n_commits)\n"
        "except ConfigError as error: print(error)"
    )

    def printed(self, repo: RepoBuilder, repos: Path, **environment: str) -> list[str]:
        command = [sys.executable, "-c", self.SCRIPT, str(repo.path), str(repos)]
        root = Path(__file__).parents[2]
        return subprocess.run(
            command, cwd=root, env=environment, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    @pytest.mark.parametrize("mode", ["quiet", "raise", "nonsense"])
    def test_without_git_it_says_what_to_do(self, repo: RepoBuilder, repos: Path, mode: str) -> None:
        repo.commit({"a.py": b"1"})
        printed = self.printed(repo, repos, PATH="/nonexistent", GIT_PYTHON_REFRESH=mode)
        assert printed == ["True", NO_GIT]

    def test_another_git_named_for_gitpython_is_not_run(self, repo: RepoBuilder, repos: Path, tmp_path: Path) -> None:
        repo.commit({"a.py": b"1"})
        trap = tmp_path / "trap"
        trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
        trap.chmod(0o755)
        printed = self.printed(repo, repos, PATH=os.environ["PATH"], GIT_PYTHON_GIT_EXECUTABLE=str(trap))
        assert printed == ["True", "1"]
        assert not (tmp_path / "sprung").exists()

    def test_the_import_runs_no_git(self, repo: RepoBuilder, repos: Path, tmp_path: Path) -> None:
        repo.commit({"a.py": b"1"})
        trace = tmp_path / "trace"
        assert self.printed(repo, repos, PATH=os.environ["PATH"], GIT_TRACE=str(trace)) == ["True", "1"]
        assert not trace.exists()


def refused(path: Path, repos: Path) -> tuple[str, str]:
    with pytest.raises(DataError) as error:
        open_clone(place_of(path), repos)
    return error.value.reason, error.value.detail


class TestDamagedHeads:
    def test_a_head_without_its_branch_asks_for_one(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"}, branch="develop")
        detail = f"HEAD of {repo.path} names no branch; set branch in [[sources]], for example 'develop'"
        assert refused(repo.path, repos) == ("branch_missing", detail)
        assert open_clone(place_of(repo.path, branch="develop"), repos).record.n_commits == 1

    def test_only_names_that_can_be_set_are_proposed(self, repo: RepoBuilder, repos: Path) -> None:
        commit = repo.commit({"a.py": b"1"}, branch="develop")
        dashed = repo.git_dir / "refs" / "heads" / "-x"
        dashed.write_text(commit + "\n")
        assert "'develop'" in refused(repo.path, repos)[1]
        with pytest.raises(ConfigError, match=r"it has develop$"):
            open_clone(place_of(repo.path, branch="other"), repos)
        (repo.git_dir / "refs" / "heads" / "develop").unlink()
        detail = f"HEAD of {repo.path} names no branch; set branch in [[sources]]"
        assert refused(repo.path, repos) == ("branch_missing", detail)

    @pytest.mark.parametrize("head", [b"\0garbage\xff", b"", None])
    @pytest.mark.parametrize("bare", [True, False])
    def test_a_head_that_git_cannot_read(self, tmp_path: Path, repos: Path, head: bytes | None, bare: bool) -> None:
        repo = RepoBuilder(tmp_path / "src" / "damaged", bare=bare)
        repo.commit({"a.py": b"1"})
        (repo.git_dir / "HEAD").unlink()
        if head is not None:
            (repo.git_dir / "HEAD").write_bytes(head)
        detail = f"HEAD of {repo.path} is missing or damaged; point it to a branch"
        assert refused(repo.path, repos) == ("branch_missing", detail)

    def test_a_branch_that_leads_to_a_blob(self, repo: RepoBuilder, repos: Path) -> None:
        blob = repo.blob(b"x")
        (repo.git_dir / "refs" / "heads" / "main").write_text(blob + "\n")
        assert refused(repo.path, repos)[0] == "history_broken"

    def test_a_newest_commit_that_git_cannot_parse(self, repo: RepoBuilder, repos: Path) -> None:
        text = b"no commit at all\n"
        command = ["git", f"--git-dir={repo.git_dir}", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
        made = subprocess.run(command, input=text, env=GIT_ENVIRONMENT, check=True, capture_output=True).stdout
        (repo.git_dir / "refs" / "heads" / "main").write_bytes(made)
        assert refused(repo.path, repos)[0] == "history_broken"

    def test_a_newest_commit_that_is_missing(self, repo: RepoBuilder, repos: Path) -> None:
        repo.remove(repo.commit({"a.py": b"1"}))
        assert refused(repo.path, repos)[0] == "history_broken"

    def test_a_pack_without_a_readable_index(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        git(repo.git_dir, "repack", "-adq")
        for index in (repo.git_dir / "objects" / "pack").glob("*.idx"):
            index.chmod(0o644)
            index.write_bytes(b"broken")
        reason, detail = refused(repo.path, repos)
        assert reason == "history_broken"
        assert f"index file {repo.path}/objects/pack/" in detail
        assert str(repos) not in detail

    def test_a_pipe_is_no_source(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for source in (SourceConfig(git=("pipe",)), SourceConfig(fast_import=("pipe",))):
            with pytest.raises(ConfigError, match="neither a folder nor a file"):
                identify(source, "pipe", tmp_path)


class TestShallow:
    @pytest.fixture
    def shallow(self, repo: RepoBuilder, tmp_path: Path) -> Path:
        for year in (2021, 2022, 2023, 2024):
            repo.commit({"a.py": str(year).encode()}, author_date=datetime(year, 6, 1, tzinfo=UTC))
        target = tmp_path / "src" / "shallow"
        url = f"file://{repo.path}"
        command = ["git", "clone", "-q", "--bare", "--depth=2", "--template=", url, str(target)]
        subprocess.run(command, env=GIT_ENVIRONMENT, check=True)
        return target

    def test_the_boundary_is_known(self, repo: RepoBuilder, shallow: Path, repos: Path) -> None:
        clone = open_clone(place_of(shallow), repos)
        boundary = git(repo.git_dir, "rev-parse", "main~1").decode().strip()
        assert shallow_boundary(clone.git_dir) == [boundary]
        assert clone.record.n_commits == 2

    def test_a_boundary_inside_the_window_is_refused(self, shallow: Path, repos: Path) -> None:
        clone = open_clone(place_of(shallow), repos)
        with pytest.raises(DataError, match="git fetch --unshallow") as error:
            check_shallow(clone, datetime(2023, 6, 1, tzinfo=UTC))
        assert error.value.reason == "repository_shallow"

    def test_a_boundary_before_the_window_is_fine(self, shallow: Path, repos: Path) -> None:
        clone = open_clone(place_of(shallow), repos)
        assert check_shallow(clone, datetime(2023, 6, 2, tzinfo=UTC)) is None  # type: ignore[func-returns-value]

    def test_a_whole_clone_has_no_boundary(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        assert shallow_boundary(open_clone(place_of(repo.path), repos).git_dir) == []

    def test_after_unshallow_the_clone_is_whole(self, repo: RepoBuilder, shallow: Path, repos: Path) -> None:
        open_clone(place_of(shallow), repos)
        git(shallow, "fetch", "-q", "--unshallow", f"file://{repo.path}")
        clone = open_clone(place_of(shallow), repos)
        assert (clone.record.n_commits, shallow_boundary(clone.git_dir)) == (4, [])


STREAM = b"""\
blob
mark :1
data 14
commit trap
x
commit refs/heads/trunk
mark :2
author Ada <ada@example.org> 1710000000 +0100
committer Ada <ada@example.org> 1710000000 +0100
data <<END
First
END
M 100644 :1 a.py

commit refs/heads/side
committer Ada <ada@example.org> 1710000060 +51800
data 6
Second
from :2
M 100644 :1 b.py

"""


class TestFastImport:
    def opened(self, path: Path, repos: Path, branch: str | None = None) -> RepositoryRecord:
        place = identify(SourceConfig(fast_import=(str(path),), branch=branch), str(path), Path("/"))
        return open_clone(place, repos).record

    @pytest.fixture
    def stream(self, tmp_path: Path) -> Path:
        path = tmp_path / "geometry.fi"
        path.write_bytes(STREAM)
        return path

    def test_the_first_commits_branch_is_the_default(self, stream: Path, repos: Path) -> None:
        record = self.opened(stream, repos)
        assert (record.repo, record.host, record.default_branch, record.n_commits) == (
            "samples/geometry",
            "local",
            "trunk",
            1,
        )

    def test_another_branch_can_be_named(self, stream: Path, repos: Path) -> None:
        assert self.opened(stream, repos, "side").n_commits == 2

    def test_the_same_stream_is_imported_once(self, stream: Path, repos: Path) -> None:
        first = self.opened(stream, repos)
        inode = (repos / "local" / "samples" / "geometry.git").stat().st_ino
        assert self.opened(stream, repos) == first
        assert (repos / "local" / "samples" / "geometry.git").stat().st_ino == inode

    def test_a_changed_stream_is_imported_anew(self, stream: Path, repos: Path) -> None:
        first = self.opened(stream, repos)
        stream.write_bytes(STREAM.replace(b"First", b"Other"))
        assert self.opened(stream, repos).head != first.head

    def test_the_ids_are_the_same_everywhere(self, stream: Path, tmp_path: Path) -> None:
        assert self.opened(stream, tmp_path / "one").head == self.opened(stream, tmp_path / "two").head

    def test_a_stream_without_commits(self, tmp_path: Path, repos: Path) -> None:
        (tmp_path / "none.fi").write_bytes(b"blob\ndata 7\ncommit \n")
        with pytest.raises(DataError, match="repository_empty"):
            self.opened(tmp_path / "none.fi", repos)

    def test_a_broken_stream_leaves_nothing(self, tmp_path: Path, repos: Path) -> None:
        (tmp_path / "bad.fi").write_bytes(b"commit refs/heads/main\nrubbish\n")
        with pytest.raises(ConfigError, match="no valid fast-import stream"):
            self.opened(tmp_path / "bad.fi", repos)
        assert list((repos / "local" / "samples").iterdir()) == []

    def test_a_stream_cannot_write_elsewhere(self, tmp_path: Path, repos: Path) -> None:
        (tmp_path / "evil.fi").write_bytes(b"feature export-marks=%s/proof\n" % bytes(tmp_path) + STREAM)
        with pytest.raises(ConfigError, match="no valid fast-import stream"):
            self.opened(tmp_path / "evil.fi", repos)
        assert not (tmp_path / "proof").exists()

    def test_a_folder_is_no_stream(self, tmp_path: Path, repos: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(ConfigError, match="cannot read"):
            self.opened(tmp_path / "folder", repos)
