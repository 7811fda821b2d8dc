import shutil
from pathlib import Path

import pytest

from miners.clone import open_clone
from miners.commits import walk
from miners.git_process import ObjectReader, git_environment, run_git
from schemas.errors import ConfigError, DataError
from schemas.records import RepositoryRecord
from tests.builders import RepoBuilder, git
from tests.miners.places import place_of, repo, repos

__all__ = ["repo", "repos"]  # fixtures


class TestLocalClones:
    def test_the_whole_record(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        head = repo.commit({"a.py": b"2"})
        clone = open_clone(place_of(repo.path), repos)
        assert clone.git_dir == repos / "local" / "src" / "shapes.git"
        assert clone.record == RepositoryRecord("src/shapes", "local", None, None, "main", head, 2)
        assert [header.commit_id for header in walk(clone.git_dir, head)][-1] == head

    def test_it_is_bare_without_hooks_tags_or_templates(self, repo: RepoBuilder, repos: Path) -> None:
        repo.set_branch("other", repo.commit({"a.py": b"1"}))
        git(repo.git_dir, "tag", "v1", "main")
        clone = open_clone(place_of(repo.path), repos)
        assert sorted(path.name for path in clone.git_dir.iterdir() if path.name != "packed-refs") == [
            "HEAD",
            "config",
            "objects",
            "refs",
        ]
        assert run_git(clone.git_dir, "for-each-ref", "--format=%(refname)") == b"refs/heads/main\n"

    def test_a_second_open_fetches_what_is_new(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        inode = open_clone(place_of(repo.path), repos).git_dir.stat().st_ino
        head = repo.commit({"a.py": b"2"})
        clone = open_clone(place_of(repo.path), repos)
        assert (clone.record.head, clone.record.n_commits) == (head, 2)
        assert clone.git_dir.stat().st_ino == inode

    def test_opening_twice_changes_nothing(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        assert open_clone(place_of(repo.path), repos) == open_clone(place_of(repo.path), repos)

    def test_rewritten_history_is_followed(self, repo: RepoBuilder, repos: Path) -> None:
        root = repo.commit({"a.py": b"1"})
        repo.commit({"a.py": b"2"})
        open_clone(place_of(repo.path), repos)
        head = repo.commit({"a.py": b"3"}, parents=[root])
        clone = open_clone(place_of(repo.path), repos)
        assert (clone.record.head, clone.record.n_commits) == (head, 2)

    def test_a_renamed_default_branch_is_followed(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        open_clone(place_of(repo.path), repos)
        head = repo.commit({"a.py": b"2"}, branch="develop")
        repo.head("develop")
        record = open_clone(place_of(repo.path), repos).record
        assert (record.default_branch, record.head) == ("develop", head)

    def test_a_branch_in_the_way_of_another(self, repo: RepoBuilder, repos: Path) -> None:
        commit = repo.commit({"a.py": b"1"}, branch="dev")
        repo.head("dev")
        open_clone(place_of(repo.path), repos)
        (repo.git_dir / "refs" / "heads" / "dev").unlink()
        repo.set_branch("dev/next", commit)
        repo.head("dev/next")
        assert open_clone(place_of(repo.path), repos).record.default_branch == "dev/next"

    def test_the_named_branch_is_walked(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        head = repo.commit({"b.py": b"1"}, branch="release/1.x")
        record = open_clone(place_of(repo.path, branch="release/1.x"), repos).record
        assert (record.default_branch, record.head, record.n_commits) == ("release/1.x", head, 1)
        again = open_clone(place_of(repo.path), repos).record
        assert (again.default_branch, again.n_commits) == ("main", 1)

    def test_a_branch_that_is_not_there(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        git(repo.git_dir, "tag", "v1", "main")
        with pytest.raises(ConfigError, match="no branch 'v1'; it has main"):
            open_clone(place_of(repo.path, branch="v1"), repos)

    def test_a_detached_head_is_walked(self, repo: RepoBuilder, repos: Path) -> None:
        first = repo.commit({"a.py": b"1"})
        second = repo.commit({"a.py": b"2"})
        (repo.git_dir / "HEAD").write_text(first + "\n")
        record = open_clone(place_of(repo.path), repos).record
        assert (record.default_branch, record.head, record.n_commits) == ("HEAD", first, 1)
        (repo.git_dir / "HEAD").write_text(second + "\n")
        record = open_clone(place_of(repo.path), repos).record
        assert (record.default_branch, record.head, record.n_commits) == ("HEAD", second, 2)

    def test_a_work_tree_counts_as_committed(self, tmp_path: Path, repos: Path) -> None:
        work = RepoBuilder(tmp_path / "work", bare=False)
        head = work.commit({"a.py": b"1"})
        (work.path / "a.py").write_text("not committed")
        for location in (work.path, work.path / ".git"):
            assert open_clone(place_of(location), repos).record.head == head

    def test_a_git_directory_without_a_config_file(self, repo: RepoBuilder, repos: Path) -> None:
        head = repo.commit({"a.py": b"1"})
        (repo.git_dir / "config").unlink()
        assert open_clone(place_of(repo.path), repos).record.head == head
        head = repo.commit({"a.py": b"2"})
        assert open_clone(place_of(repo.path), repos).record.head == head

    def test_a_source_that_lacks_blobs(self, repo: RepoBuilder, repos: Path) -> None:
        first = repo.commit({"a.py": b"1", "b.py": b"2"})
        repo.remove(repo.blob_of(first, "b.py"))
        clone = open_clone(place_of(repo.path), repos)
        with ObjectReader(clone.git_dir) as reader:
            assert reader.read(repo.blob_of(first, "a.py")) == ("blob", b"1")
            with pytest.raises(DataError, match="object_missing"):
                reader.read(repo.blob_of(first, "b.py"))

    def test_a_source_that_lacks_new_blobs(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        open_clone(place_of(repo.path), repos)
        head = repo.commit({"a.py": b"2", "b.py": b"3"})
        repo.remove(repo.blob_of(head, "b.py"))
        clone = open_clone(place_of(repo.path), repos)
        assert (clone.record.head, clone.record.n_commits) == (head, 2)

    def test_a_source_with_a_corrupt_commit_far_back(self, repo: RepoBuilder, repos: Path) -> None:
        bad = repo.commit({"a.py": b"1"})
        head = repo.commit({"a.py": b"2"})
        repo.corrupt(bad)
        record = open_clone(place_of(repo.path), repos).record
        assert (record.head, record.n_commits) == (head, 2)

    def test_a_source_of_another_user(self, repo: RepoBuilder, repos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        head = repo.commit({"a.py": b"1"})
        environment = git_environment() | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
        monkeypatch.setattr("miners.remote.git_environment", lambda: environment)
        assert open_clone(place_of(repo.path), repos).record.head == head

    def test_a_damaged_clone_is_made_anew(self, repo: RepoBuilder, repos: Path) -> None:
        head = repo.commit({"a.py": b"1"})
        clone = open_clone(place_of(repo.path), repos)
        shutil.rmtree(clone.git_dir / "objects")
        assert open_clone(place_of(repo.path), repos).record.head == head
        (clone.git_dir / "HEAD").write_bytes(b"\0\0\0")
        assert open_clone(place_of(repo.path), repos).record.head == head

    def test_leftovers_of_a_killed_run_are_no_clone(self, repo: RepoBuilder, repos: Path) -> None:
        head = repo.commit({"a.py": b"1"})
        folder = repos / "local" / "src"
        for name in (".shapes.git.new-x1y2z3", ".shapes.git.old"):
            (folder / name / "objects").mkdir(parents=True)
            (folder / name / "HEAD").write_text("ref: refs/heads/main\n")
        assert open_clone(place_of(repo.path), repos).record.head == head
        assert sorted(path.name for path in folder.iterdir()) == ["shapes.git"]

    @pytest.mark.parametrize("lock", ["refs/heads/main.lock", "HEAD.lock", "packed-refs.lock"])
    def test_the_locks_of_a_killed_git_block_nothing(self, repo: RepoBuilder, repos: Path, lock: str) -> None:
        repo.commit({"a.py": b"1"})
        clone = open_clone(place_of(repo.path), repos)
        (clone.git_dir / lock).parent.mkdir(parents=True, exist_ok=True)
        (clone.git_dir / lock).write_bytes(b"")
        head = repo.commit({"a.py": b"2"})
        assert open_clone(place_of(repo.path), repos).record.head == head

    def test_the_same_name_at_another_place(self, repo: RepoBuilder, tmp_path: Path, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        other = RepoBuilder(tmp_path / "elsewhere")
        head = other.commit({"b.py": b"1"})
        open_clone(place_of(repo.path, repo="o/n"), repos)
        clone = open_clone(place_of(other.path, repo="o/n"), repos)
        assert (clone.record.head, clone.record.n_commits) == (head, 1)

    def test_the_clone_under_a_former_name_is_taken_over(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        old = open_clone(place_of(repo.path, repo="geo/old"), repos).git_dir
        (old / "marker").write_text("the same folder")
        head = repo.commit({"a.py": b"2"})
        clone = open_clone(place_of(repo.path, repo="forms/new"), repos, ("geo/none", "geo/old"))
        assert (clone.git_dir, clone.record.head) == (repos / "local/forms/new.git", head)
        assert (clone.git_dir / "marker").read_text() == "the same folder"
        assert not old.exists()

    def test_a_clone_of_its_own_is_not_replaced_by_a_former_one(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        new = open_clone(place_of(repo.path, repo="geo/new"), repos).git_dir
        old = open_clone(place_of(repo.path, repo="geo/old"), repos).git_dir
        assert open_clone(place_of(repo.path, repo="geo/new"), repos, ("geo/old",)).git_dir == new
        assert old.is_dir()

    def test_a_former_clone_that_is_damaged_is_made_anew(self, repo: RepoBuilder, repos: Path) -> None:
        head = repo.commit({"a.py": b"1"})
        old = open_clone(place_of(repo.path, repo="geo/old"), repos).git_dir
        (old / "HEAD").unlink()
        assert open_clone(place_of(repo.path, repo="geo/new"), repos, ("geo/old",)).record.head == head

    def test_sha256_repositories(self, tmp_path: Path, repos: Path) -> None:
        repo = RepoBuilder(tmp_path / "sha256", object_format="sha256")
        repo.commit({"a.py": b"1"})
        open_clone(place_of(repo.path), repos)
        head = repo.commit({"a.py": b"2"})
        record = open_clone(place_of(repo.path), repos).record
        assert (len(record.head), record.head, record.n_commits) == (64, head, 2)

    def test_a_source_is_only_read(self, repo: RepoBuilder, repos: Path) -> None:
        repo.commit({"a.py": b"1"})
        before = {path: path.stat().st_mtime_ns for path in sorted(repo.path.rglob("*"))}
        open_clone(place_of(repo.path), repos)
        open_clone(place_of(repo.path), repos)
        assert {path: path.stat().st_mtime_ns for path in sorted(repo.path.rglob("*"))} == before


class TestHostileSurroundings:
    def test_hooks_and_templates_never_run(
        self, repo: RepoBuilder, repos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trap, proof = tmp_path / "template" / "hooks", tmp_path / "proof"
        trap.mkdir(parents=True)
        for name in ("post-checkout", "post-merge", "reference-transaction", "post-rewrite", "pre-auto-gc"):
            (trap / name).write_text(f"#!/bin/sh\ntouch {proof}\n")
            (trap / name).chmod(0o755)
        monkeypatch.setenv("GIT_TEMPLATE_DIR", str(trap.parent))
        repo.commit({"a.py": b"1"})
        shutil.copytree(trap, repo.git_dir / "hooks")
        clone = open_clone(place_of(repo.path), repos)
        assert not (clone.git_dir / "hooks").exists()
        shutil.copytree(trap, clone.git_dir / "hooks")
        repo.commit({"a.py": b"2"})
        assert open_clone(place_of(repo.path), repos).record.n_commits == 2
        assert not proof.exists()

    def test_the_users_configuration_is_not_read(
        self, repo: RepoBuilder, repos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decoy = RepoBuilder(tmp_path / "decoy")
        decoy.commit({"evil.py": b""})
        proof = tmp_path / "proof"
        (tmp_path / ".gitconfig").write_text(
            f'[url "{decoy.path}"]\n\tinsteadOf = {repo.path}\n[core]\n\tfsmonitor = touch {proof}\n'
            f"[alias]\n\tclone = !touch {proof}\n[uploadpack]\n\tpackObjectsHook = touch {proof}\n"
        )
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{decoy.path}.insteadOf")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(repo.path))
        monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'url.{decoy.path}.insteadOf'='{repo.path}'")
        head = repo.commit({"a.py": b"1"})
        assert open_clone(place_of(repo.path), repos).record.head == head
        assert not proof.exists()

    def test_a_git_dir_in_the_environment_is_ignored(
        self, repo: RepoBuilder, repos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decoy = RepoBuilder(tmp_path / "decoy")
        decoy.commit({"evil.py": b""})
        before = sorted(path.relative_to(decoy.path) for path in decoy.path.rglob("*"))
        for name, value in (
            ("GIT_DIR", decoy.path),
            ("GIT_WORK_TREE", tmp_path),
            ("GIT_OBJECT_DIRECTORY", decoy.path / "objects"),
            ("GIT_INDEX_FILE", tmp_path / "index"),
            ("GIT_COMMON_DIR", decoy.path),
            ("GIT_NAMESPACE", "x"),
        ):
            monkeypatch.setenv(name, str(value))
        repo.commit({"a.py": b"1"})
        open_clone(place_of(repo.path), repos)
        head = repo.commit({"a.py": b"2"})
        assert open_clone(place_of(repo.path), repos).record.head == head
        assert sorted(path.relative_to(decoy.path) for path in decoy.path.rglob("*")) == before

    def test_a_path_with_shell_letters(self, tmp_path: Path, repos: Path) -> None:
        repo = RepoBuilder(tmp_path / "a b;touch 'x' $(touch y) `z`:c")
        head = repo.commit({"a.py": b"1"})
        place = place_of(repo.path)
        assert open_clone(place, repos).record.head == head
        assert place.name == "a-b-touch--x----touch-y---z--c"
        assert not list(tmp_path.glob("[xy]"))
