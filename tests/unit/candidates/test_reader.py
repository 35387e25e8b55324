"""The strict reader on honest and on excessive trees, with the kernel's help and without it."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.candidates.trees import Link, Program, capture, on_disk, write

from securebench.candidates import _openat2, reader
from securebench.candidates._blob_writing import SMALL
from securebench.candidates.captured import Budget
from securebench.candidates.path_patterns import PathPatterns
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import TreeEntry
from securebench.errors import CandidateError, FailureReason, InfrastructureError


@pytest.fixture(params=["openat2", "portable"])
def how(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "openat2" and not _openat2.available():
        pytest.skip("this kernel has no openat2")
    return {"portable": request.param == "portable"}


def reasons(captured: Any) -> dict[str, str]:
    return {item.path: item.reason for item in captured.left_out}


HONEST = {
    "src/pkg/module.py": b"x = 1\n",
    "src/pkg/empty.py": b"",
    "bin/tool": Program(b"#!/bin/sh\n"),
    ".hidden/dir": None,
    "with space": b"1",
    "-rf": b"2",
    "ünï": b"3",
    "large": b"y" * (SMALL + 5),
    "link": Link("src/pkg"),
    "src/up": Link("../large"),
    "dangling": Link("nothing/there"),
}


def test_honest_tree_is_captured_whole(tmp_path: Path, store: CandidateStore, how: Any) -> None:
    root = write(tmp_path / "tree", HONEST)
    captured = capture(root, store, **how)
    assert not captured.left_out
    found = on_disk(root)
    assert {entry.path for entry in captured.tree.entries} == set(found)
    for entry in captured.tree.files:
        assert store.read(entry.digest, 10**6) == found[entry.path][2]
        assert entry.mode == found[entry.path][1]
    assert captured.tree.get("src/up") == TreeEntry.link("src/up", "../large")


def test_both_ways_see_the_same(tmp_path: Path, store: CandidateStore) -> None:
    root = write(tmp_path / "tree", HONEST)
    assert capture(root, store) == capture(root, store, portable=True)


def test_same_tree_elsewhere_has_the_same_digest(tmp_path: Path, store: CandidateStore, how: Any) -> None:
    first = capture(write(tmp_path / "one", HONEST), store, **how).tree
    other = write(tmp_path / "two", dict(reversed(HONEST.items())))
    for path in other.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o711 if path.stat().st_mode & 0o100 else 0o600)
            os.utime(path, (1, 1))
    assert capture(other, CandidateStore(tmp_path / "other"), **how).tree.digest == first.digest


def test_leftovers_of_honest_agents_do_not_fail_a_candidate(tmp_path: Path, store: CandidateStore, how: Any) -> None:
    root = write(
        tmp_path / "tree",
        {
            "venv/bin/python": Link("/usr/bin/python3"),
            "venv/lib64": Link("lib"),
            "venv/lib/site.py": b"1",
            "node_modules/.bin/tool": Link("../tool/cli.js"),
            "node_modules/tool/cli.js": Program(b"2"),
            "cache/a": b"same",
        },
    )
    os.link(root / "cache/a", root / "cache/b")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(root / "agent.sock"))
    listener.close()
    os.mkfifo(root / "pipe")
    captured = capture(root, store, **how)
    assert reasons(captured) == {
        "agent.sock": "a socket, FIFO or device",
        "pipe": "a socket, FIFO or device",
        "venv/bin/python": "a link to an absolute path",
    }
    kept = {entry.path for entry in captured.tree.entries}
    assert {"venv/lib64", "node_modules/.bin/tool", "cache/a", "cache/b"} <= kept
    assert captured.as_record()["left_out_count"] == 3


def test_exclusion_covers_what_lies_beneath(tmp_path: Path, store: CandidateStore, how: Any) -> None:
    root = write(
        tmp_path / "tree", {".git/config": b"", "a/.git/x": b"", "out/deep/file": b"", "out.txt": b"", "k": b""}
    )
    captured = capture(root, store, exclude=PathPatterns.of(["/.git", "out/"]), **how)
    assert [entry.path for entry in captured.tree.entries] == ["a", "a/.git", "a/.git/x", "k", "out.txt"]
    assert reasons(captured) == {".git": "excluded by /.git", "out": "excluded by out/"}


BUDGETS = {
    "files": (Budget(files=4), "d/e is where the tree has more than 4 entries"),
    "depth": (Budget(depth=1), "d/e is nested more than 1 deep"),
    "name": (Budget(name=8), "d/long-name has a name of more than 8 bytes"),
    "path": (Budget(path=11), "d/long-name is a path of more than 10 bytes"),
    "file": (Budget(file_bytes=9), "d/long-name has 10 bytes; at most 9 are allowed"),
    "total": (Budget(total_bytes=11), "d/e/file is where the files have more than 11 bytes together"),
    "paths": (Budget(all_paths=20), "d/e/ is where all paths together have more than 20 bytes"),
}


@pytest.mark.parametrize("what", BUDGETS)
def test_exceeded_budget_is_the_candidates_failure_and_names_the_entry(
    tmp_path: Path, store: CandidateStore, how: Any, what: str
) -> None:
    root = write(tmp_path / "tree", {"d/e/file": b"12", "d/e/more": b"", "d/long-name": b"0123456789"})
    budget, message = BUDGETS[what]
    with pytest.raises(CandidateError) as caught:
        capture(root, store, budget=budget, **how)
    assert caught.value.reason is FailureReason.CANDIDATE_TOO_LARGE
    if what != "paths":
        assert message in str(caught.value).replace("d/e/ ", "d/e ")
    fitting = Budget(files=5, depth=3, name=9, path=12, file_bytes=10, total_bytes=12, all_paths=34)
    assert len(capture(root, store, budget=fitting, **how).tree.entries) == 5


def test_targets_of_links_count_as_paths_do(tmp_path: Path, store: CandidateStore, how: Any) -> None:
    root = write(tmp_path / "tree", {"a": b""})
    (root / "l").symlink_to("t" * 100)
    with pytest.raises(CandidateError) as caught:
        capture(root, store, budget=Budget(all_paths=101), **how)
    assert caught.value.reason is FailureReason.CANDIDATE_TOO_LARGE
    assert len(capture(root, store, budget=Budget(all_paths=102), **how).tree.entries) == 2


def nest(root: Path, name: str, depth: int) -> None:
    """Directories in each other, deeper than a path can say or Python recurses."""
    root.mkdir()
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        following = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = following
    os.close(descriptor)


@pytest.mark.parametrize(
    "name, depth, message",
    [("d", 1100, "nested more than 64 deep"), ("d" * 200, 40, "a path of more than 2047 bytes")],
)
def test_very_deep_tree_ends_in_its_budget(
    tmp_path: Path, store: CandidateStore, how: Any, name: str, depth: int, message: str
) -> None:
    nest(tmp_path / "tree", name, depth)
    try:
        with pytest.raises(CandidateError, match=message):
            capture(tmp_path / "tree", store, **how)
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "tree")], check=True)  # pytest's own cleaning does not get so deep


def test_wide_and_deep_tree_needs_few_descriptors(tmp_path: Path, store: CandidateStore, how: Any) -> None:
    folders = {
        "/".join(f"d{index}" for index in range(depth)) + f"/w{width}/f": b"x"
        for depth in (1, 60)
        for width in range(30)
    }
    root = write(tmp_path / "tree", folders)
    open_now = len(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 12, hard))
    try:
        captured = capture(root, store, **how)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(captured.tree.files) == 60


def test_running_out_of_descriptors_is_the_hosts_fault(tmp_path: Path, store: CandidateStore, how: Any) -> None:
    root = write(tmp_path / "tree", {"a/b": b"1"})
    store.put(b"prepared")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    taken: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, hard))
        try:
            while True:
                taken.append(os.dup(opened))
        except OSError:
            os.close(taken.pop())
        with pytest.raises(InfrastructureError):
            reader.read_tree(opened, store, **how)
    finally:
        for descriptor in (*taken, opened):
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_same_file_under_many_names_is_read_once_but_counted_each_time(
    tmp_path: Path, store: CandidateStore, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "tree", {"first": b"z" * 2**20})
    for number in range(20):
        os.link(root / "first", root / f"again{number}")
    reads: list[int] = []
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: reads.append(size) or real(fd, size))
    captured = capture(root, store, **how)
    assert captured.tree.total_bytes == 21 * 2**20
    assert sum(1 for size in reads if size >= 2**19) <= 2
    with pytest.raises(CandidateError, match="more than 20971520 bytes together"):
        capture(root, store, budget=Budget(total_bytes=20 * 2**20), **how)


def test_progress_is_told(tmp_path: Path, store: CandidateStore, how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_EVERY", 100)
    root = write(tmp_path / "tree", {f"d{number // 30}/f{number}": b"12" for number in range(450)})
    told: list[tuple[int, int]] = []
    capture(root, store, progress=lambda entries, size: told.append((entries, size)), **how)
    assert len(told) >= 4
    assert told == sorted(told)
    assert told[-1] == (465, 900)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_another_mount_is_not_entered(tmp_path: Path) -> None:
    """In a mount namespace of its own, so that nothing of it can stay behind."""
    program = """
import ctypes, os, sys
from pathlib import Path
from tests.unit.candidates.trees import capture, write
from securebench.candidates.store import CandidateStore
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x20000) != 0 or libc.mount(b"none", b"/", None, 0x44000, None) != 0:
    print("cannot make a mount namespace"); sys.exit(0)
base = Path(sys.argv[1])
write(base / "outside", {"secret": b"outside", "dir/secret": b"outside"})
root = write(base / "tree", {"file": b"", "dir/inner": b"", "tmp": None, "plain": b"inside"})
def mount(source, target, kind, flags):
    if libc.mount(str(source).encode(), str(target).encode(), kind, flags, None) != 0:
        print("cannot mount"); sys.exit(0)
mount(base / "outside/secret", root / "file", None, 4096)
mount(base / "outside/dir", root / "dir", None, 4096)
mount("none", root / "tmp", b"tmpfs", 0)
for portable in (False, True):
    captured = capture(root, CandidateStore(base / f"store{portable}"), portable=portable)
    print(sorted(entry.path for entry in captured.tree.entries), sorted(item.path + ":" + item.reason for item in captured.left_out))
"""
    repository = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    if done.stdout.startswith("cannot"):
        pytest.skip(done.stdout.strip())
    elsewhere = "lies on another file system"
    line = f"['plain'] ['dir:{elsewhere}', 'file:{elsewhere}', 'tmp:{elsewhere}']"
    assert done.stdout.splitlines() == [line, line]
