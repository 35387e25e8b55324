"""The repository an agent gets: git finds nothing wrong, nothing dirty, and nothing but one commit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.workspaces.git_cases import git, need_git, write_files

from securebench._fs import EPOCH_NS
from securebench.workspaces._git.repository import make_repository

FILES: dict[str, bytes | str] = {
    "a.txt": "a\n",
    "sub.x": "sorts between sub and sub/",
    "sub/deep/large": os.urandom(3_000_000),
    "sub/deep/same": "a\n",
    "sub/run.sh*": "#!/bin/sh\n",
    "sub/link": "-> ../a.txt",
    "sub/outside": "-> /etc/passwd",
    "empty": "",
    "name with ümlaut": "x",
    "crlf.bat": b"one\r\ntwo\r\n",
    "keyword.txt": "$Id$\n",
    ".gitattributes": "*.bat text eol=crlf\n*.txt text ident filter=lfs\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    need_git()
    return write_files(tmp_path / "tree", FILES)


def everything(path: bytes, is_dir: bool) -> bool:
    return True


def test_git_sees_a_clean_work_tree_and_one_commit(tree: Path) -> None:
    base = make_repository(tree, everything)
    assert git(tree, "status", "--porcelain", "--ignored") == b""
    assert git(tree, "diff") == b""
    assert git(tree, "log", "--all", "--format=%H %T %s").decode() == f"{base.commit} {base.tree} Base commit\n"
    assert git(tree, "branch", "--show-current") == b"main\n"
    assert git(tree, "fsck", "--full", "--strict", "--unreachable") == b""


def test_the_object_store_holds_the_base_tree_and_nothing_else(tree: Path) -> None:
    base = make_repository(tree, everything)
    reachable = {line.split()[0] for line in git(tree, "rev-list", "--objects", base.commit).splitlines()}
    stored = git(tree, "cat-file", "--batch-check=%(objectname)", "--batch-all-objects").split()
    assert sorted(stored) == sorted(reachable)
    assert git(tree, "for-each-ref", "--format=%(refname)") == b"refs/heads/main\n"
    assert git(tree, "reflog", "--all") == git(tree, "remote") == git(tree, "stash", "list") == b""
    assert not (tree / ".git" / "hooks").exists()
    keys = git(tree, "config", "--local", "--name-only", "--list").decode().split()
    assert all(key.startswith("core.") for key in keys)


def test_the_tree_is_the_one_git_itself_would_make(tree: Path, tmp_path: Path) -> None:
    base = make_repository(tree, everything)
    for name in (".gitattributes",):  # git would convert what it names
        (tree / name).unlink()
    (tmp_path / "other").mkdir()
    other = write_files(tmp_path / "other", {name: data for name, data in FILES.items() if name != ".gitattributes"})
    git(other, "init", "-q")
    git(other, "add", "-A")
    expected = git(other, "write-tree").strip().decode()
    second = make_repository_again(tree)
    assert second == expected
    assert base.tree != expected, "the attributes file is part of the base"


def make_repository_again(tree: Path) -> str:
    (tree / ".git").rename(tree.parent / "old-git")
    return make_repository(tree, everything).tree


def test_agents_work_in_it_as_in_any_other(tree: Path) -> None:
    make_repository(tree, everything)
    (tree / "a.txt").write_text("b\n")
    (tree / "new").write_text("n")
    assert b"-a\n+b\n" in git(tree, "diff")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "mine")
    git(tree, "checkout", "-q", "-b", "branch", "HEAD~1")
    assert (tree / "a.txt").read_text() == "a\n"
    git(tree, "gc", "-q")
    assert git(tree, "fsck", "--full", "--strict") == b""


def test_untracked_and_own_files_are_where_they_belong(tree: Path) -> None:
    write_files(tree, {"task [1]#.json": "{}", "build/out": "x"})
    make_repository(tree, lambda path, _: path not in (b"task [1]#.json", b"build"), (b"task [1]#.json",))
    assert git(tree, "status", "--porcelain") == b"?? build/\n"
    assert b"task" not in git(tree, "ls-files")


def test_no_time_or_mode_says_when_or_where_it_was_made(tree: Path) -> None:
    before = os.umask(0o077)
    try:
        make_repository(tree, everything)
    finally:
        os.umask(before)
    for path in (tree / ".git").rglob("*"):
        assert path.stat().st_mtime_ns == EPOCH_NS
        assert path.stat().st_mode & 0o7777 in (0o755, 0o644, 0o444)


def test_same_tree_same_repository_byte_for_byte(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        directory = write_files(tmp_path / name, {k: v for k, v in FILES.items() if "large" not in k})
        make_repository(directory, everything)
        git_files = sorted((directory / ".git").rglob("*"))
        made.append({str(p.relative_to(directory)): p.read_bytes() for p in git_files if p.is_file()})
    assert made[0] == made[1]


def test_a_tree_without_files_is_an_empty_commit(tmp_path: Path) -> None:
    need_git()
    (tmp_path / "hollow").mkdir()
    make_repository(tmp_path, everything)
    assert git(tmp_path, "status", "--porcelain") == b""
    assert git(tmp_path, "ls-files") == b""
    assert git(tmp_path, "fsck", "--strict") == b""
