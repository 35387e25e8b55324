"""`repo_patch`: a repository with one commit goes in; what really changed in its work tree comes out."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from tests.packs import write_pack
from tests.unit.workspaces.conftest import Build, repo_row, take
from tests.unit.workspaces.git_cases import git, need_git, write_files

from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import apply_delta
from securebench.errors import ConfigError, PackError
from securebench.workspaces.workspace import Workspace

FILES: dict[str, str | bytes] = {
    "assets/repo/src/app.py": "print('broken')\n",
    "assets/repo/src/keep.py": "keep\n",
    "assets/repo/.gitignore": "*.log\nbuild/\n",
    "assets/repo/build/tracked.txt": "tracked although ignored\n",
    "assets/repo/README": "read me\n",
    "hidden/x": "x",
}


@pytest.fixture
def workspace(build: Build) -> Workspace:
    return build(repo_row(), FILES)


def paths(workspace: Workspace) -> tuple[str, ...]:
    delta = take(workspace).delta
    assert delta is not None
    return delta.paths


def test_the_repository_is_the_working_directory_and_clean(workspace: Workspace) -> None:
    need_git()
    seed = workspace.seed
    assert git(seed, "status", "--porcelain") == b""
    assert git(seed, "log", "--all", "--format=%s") == b"Base commit\n"
    assert sorted(git(seed, "ls-files").decode().split()) == sorted(
        name.removeprefix("assets/repo/") for name in FILES if name.startswith("assets/repo/")
    )
    assert git(seed, "fsck", "--full", "--strict", "--unreachable") == b""
    assert os.access(seed / "src" / "app.py", os.W_OK)
    assert (seed / "src" / "app.py").stat().st_mode & 0o777 == 0o644, "a repository is there to be changed"


def test_the_task_file_says_where_the_repository_is(workspace: Workspace) -> None:
    payload = json.loads((workspace.seed / "task.json").read_text())
    assert payload["assets"] == [{"path": ".", "read_only": False}]


def test_an_untouched_workspace_is_an_empty_delta(workspace: Workspace) -> None:
    for candidate in (take(workspace), workspace.untouched()):
        assert candidate.delta is not None
        assert not candidate.delta
        assert candidate.patch == ""


def test_a_change_is_a_delta_and_a_patch_that_applies(
    workspace: Workspace, store: CandidateStore, tmp_path: Path
) -> None:
    need_git()
    seed = workspace.seed
    write_files(seed, {"src/app.py": "print('fixed')\n", "src/new.sh*": "#!/bin/sh\n", "data.bin": b"\0\1\2"})
    (seed / "README").unlink()
    candidate = take(workspace)
    assert candidate.delta is not None
    assert candidate.patch is not None
    assert candidate.delta.paths == ("README", "data.bin", "src/app.py", "src/new.sh")
    assert candidate.metadata["capture"]["delta"] == candidate.delta.digest
    after = apply_delta(store.load(candidate.metadata["capture"]["pristine"]), candidate.delta)
    assert after.digest == candidate.metadata["capture"]["tree"]
    (tmp_path / "again").mkdir()
    store.materialize(workspace.pristine, tmp_path / "again")
    git(tmp_path / "again", "apply", "--binary", "-", data=candidate.patch.encode())
    assert (tmp_path / "again" / "src" / "app.py").read_text() == "print('fixed')\n"
    assert (tmp_path / "again" / "data.bin").read_bytes() == b"\0\1\2"
    assert os.access(tmp_path / "again" / "src" / "new.sh", os.X_OK)
    assert not (tmp_path / "again" / "README").exists()


GIT_HABITS = {
    "commits": "git add -A && git commit -qm mine",
    "commits on a branch": "git checkout -qb fix && git add -A && git commit -qm mine",
    "stages": "git add -A",
    "detaches": "git add -A && git commit -qm mine && git checkout -q --detach",
    "stashes and takes back": "git stash -qu && git stash pop -q",
    "assumes unchanged": "git update-index --assume-unchanged src/app.py",
    "excludes": "echo '*' > .git/info/exclude",
    "removes the repository": "rm -rf .git",
    "begins anew": "rm -rf .git && git init -q && git add -A && git commit -qm all",
    "puts a file in its place": "rm -rf .git && echo x > .git",
    "puts a link in its place": "rm -rf .git && ln -s /etc .git",
}


@pytest.mark.parametrize("habit", GIT_HABITS)
def test_whatever_an_agent_does_with_git_its_work_tree_counts(workspace: Workspace, habit: str) -> None:
    need_git()
    write_files(workspace.seed, {"src/app.py": "print('fixed')\n", "src/new.py": "n\n"})
    git_environment = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "HOME": "/nonexistent",
        "PATH": os.environ["PATH"],
    }
    git_environment |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1"}
    git_environment |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    # Our own script on our own tree: no agent is involved.
    subprocess.run(["sh", "-ec", GIT_HABITS[habit]], cwd=workspace.seed, env=git_environment, check=True)
    assert paths(workspace) == ("src/app.py", "src/new.py")


def test_ignored_and_generated_files_are_left_out_by_the_packs_rules(workspace: Workspace) -> None:
    write_files(
        workspace.seed,
        {
            "run.log": "x", "build/out.o": "x", "build/deep/x": "x", "src/__pycache__/app.pyc": "x", "old.pyc": "x",
            ".pytest_cache/v/x": "x", "kept.txt": "x",
        },
    )  # fmt: skip
    candidate = take(workspace)
    assert candidate.delta is not None
    assert candidate.delta.paths == ("kept.txt",)
    left_out = {item["path"] for item in candidate.metadata["capture"]["left_out"]}
    assert left_out >= {"run.log", "build/out.o", "build/deep", "src/__pycache__", ".pytest_cache"}


def test_a_new_directory_that_is_ignored_is_listed_once(workspace: Workspace) -> None:
    write_files(workspace.seed, {f"src/build/{number}/x": "x" for number in range(30)})
    candidate = take(workspace)
    assert not candidate.delta
    listed = [item["path"] for item in candidate.metadata["capture"]["left_out"] if "build" in item["path"]]
    assert listed == ["src/build"]


def test_a_tracked_file_counts_although_rules_ignore_it(workspace: Workspace) -> None:
    write_files(workspace.seed, {"build/tracked.txt": "changed"})
    assert paths(workspace) == ("build/tracked.txt",)


def test_an_ignore_file_of_the_agent_decides_nothing(workspace: Workspace) -> None:
    write_files(workspace.seed, {".gitignore": "*\n", "src/.gitignore": "*\n", "src/new.py": "x", "run.log": "x"})
    assert paths(workspace) == (".gitignore", "src/.gitignore", "src/new.py")


def test_positive_control_with_the_agents_rules_its_file_would_be_hidden(build: Build) -> None:
    rules = FILES | {"assets/repo/.gitignore": "*\n"}
    workspace = build(repo_row(), rules)
    write_files(workspace.seed, {"src/new.py": "x"})
    assert paths(workspace) == ()


def test_files_of_the_framework_are_no_part_of_a_patch(workspace: Workspace) -> None:
    write_files(workspace.seed, {"task.json": "{}", "securebench/public/repo.json": "1", "securebench/mine.py": "x"})
    (workspace.seed / "securebench" / "public" / "instructions.json").unlink()
    candidate = take(workspace)
    assert candidate.delta is not None
    assert [entry.path for entry in candidate.delta.added] == ["securebench", "securebench/mine.py"]


def test_nested_git_directories_do_not_come_out(workspace: Workspace) -> None:
    write_files(workspace.seed, {"src/.git/config": "[core]\n\tfsmonitor = touch /tmp/x\n", "lib/.GIT": "gitdir: /x\n"})
    candidate = take(workspace)
    assert {item["path"] for item in candidate.metadata["capture"]["left_out"]} >= {"src/.git", "lib/.GIT"}
    assert candidate.delta is not None
    assert not any(".git" in path.lower() for path in candidate.delta.paths)


@pytest.mark.parametrize("name", [".git/config", "sub/.git", "sub/.GIT/x"])
def test_a_git_directory_among_the_assets_is_refused(build: Build, name: str) -> None:
    with pytest.raises(PackError, match="holds"):
        build(repo_row(), FILES | {f"assets/repo/{name}": "x"})


def test_caches_beside_the_sources_do_not_go_in(build: Build) -> None:
    stale = {
        "assets/repo/src/__pycache__/test_hidden.cpython-311.pyc": "secret",
        "assets/repo/.pytest_cache/x": "secret",
    }
    workspace = build(repo_row(), FILES | stale)
    assert not any(b"secret" in path.read_bytes() for path in workspace.seed.rglob("*") if path.is_file())
    assert {item["path"] for item in workspace.facts["left_out_at_start"]} == {".pytest_cache", "src/__pycache__"}


def test_other_assets_lie_over_the_repository_and_are_part_of_the_base(build: Build) -> None:
    need_git()
    row = repo_row(assets=[{"path": "repo"}, {"path": "other.txt", "mount": "README"}, {"path": "dir", "mount": "src"}])
    files = FILES | {"assets/other.txt": "other\n", "assets/dir/extra.py": "e\n", "assets/dir/app.py": "mine\n"}
    workspace = build(row, files)
    assert (workspace.seed / "README").read_text() == "other\n"
    assert (workspace.seed / "src" / "app.py").read_text() == "mine\n"
    assert (workspace.seed / "src" / "keep.py").read_text() == "keep\n"
    assert git(workspace.seed, "status", "--porcelain") == b""


@pytest.mark.parametrize("name", ["task.json", "securebench/public/repo.json"])
def test_a_repository_with_a_file_where_ours_must_be_is_refused(build: Build, name: str) -> None:
    files = FILES | {f"assets/repo/{name}": "theirs"}
    with pytest.raises(ConfigError, match="task_file"):
        build(repo_row(), files)


def test_another_task_file_makes_room(build: Build) -> None:
    files = FILES | {"assets/repo/task.json": "theirs", "assets/repo/securebench/x.py": "theirs"}
    workspace = build(repo_row(), files, task_file=PurePosixPath(".securebench-task.json"))
    assert (workspace.seed / "task.json").read_text() == "theirs"
    assert not take(workspace).delta


def test_a_repository_nobody_has_is_refused(build: Build) -> None:
    with pytest.raises(PackError, match="names no public asset"):
        build(repo_row(assets=[]), FILES)


def test_a_bundle_gives_its_base_commit_and_nothing_later(build: Build, tmp_path: Path) -> None:
    need_git()
    source = write_files(tmp_path / "source", {"app.py": "broken\n", "link": "-> app.py"})
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "base")
    base = git(source, "rev-parse", "HEAD").strip().decode()
    write_files(source, {"app.py": "the fix\n", "secret-test.py": "hidden\n"})
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "the fix")
    gold = {git(source, "rev-parse", f"HEAD:{name}").strip() for name in ("app.py", "secret-test.py")}
    git(source, "bundle", "create", "-q", str(tmp_path / "b"), "--all")
    row = repo_row("repo.bundle")
    row["input"]["base_commit"] = base
    workspace = build(row, {"assets/repo.bundle": (tmp_path / "b").read_bytes(), "hidden/x": "x"})
    seed = workspace.seed
    assert (seed / "app.py").read_text() == "broken\n"
    assert os.readlink(seed / "link") == "app.py"
    assert git(seed, "status", "--porcelain") == b""
    objects = set(git(seed, "cat-file", "--batch-check=%(objectname)", "--batch-all-objects").split())
    assert not objects & gold
    assert gold & set(git(source, "cat-file", "--batch-check=%(objectname)", "--batch-all-objects").split())
    assert git(source, "rev-parse", f"{base}^{{tree}}").strip().decode() == workspace.facts["base_tree"]
    assert not (seed / "repo.bundle").exists()
    assert not take(workspace).delta


@pytest.mark.parametrize("commit", ["main", "1" * 40])
def test_a_bundle_without_the_base_commit_is_refused(build: Build, tmp_path: Path, commit: str) -> None:
    need_git()
    source = write_files(tmp_path / "source", {"app.py": "x\n"})
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "base")
    git(source, "bundle", "create", "-q", str(tmp_path / "b"), "--all")
    row = repo_row("repo.bundle")
    row["input"]["base_commit"] = commit
    with pytest.raises(PackError, match=r"repo\.bundle"):
        build(row, {"assets/repo.bundle": (tmp_path / "b").read_bytes(), "hidden/x": "x"})


def test_a_file_that_is_no_bundle_is_refused(build: Build) -> None:
    with pytest.raises(PackError, match="neither a directory nor a git bundle"):
        build(repo_row("data.txt"), {"assets/data.txt": "x", "hidden/x": "x"})


def test_two_workspaces_of_one_task_are_the_same(build: Build, tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "shared", [repo_row()], files=FILES)
    listings = []
    for _ in range(2):
        seed = build(repo_row(), pack=pack).seed
        entries = sorted(seed.rglob("*"))
        listings.append(
            [
                (str(p.relative_to(seed)), p.stat().st_mode, p.stat().st_mtime_ns, p.is_file() and p.read_bytes())
                for p in entries
            ]
        )
    assert listings[0] == listings[1]


def test_without_git_the_pristine_tree_is_the_same(build: Build, workspace: Workspace) -> None:
    bare = build(repo_row(), FILES, with_git=False)
    assert not (bare.seed / ".git").exists()
    assert bare.pristine.digest == workspace.pristine.digest
