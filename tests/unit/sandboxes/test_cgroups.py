"""Version 2 on a pretended hierarchy, because the machines that run this may have only version 1."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import cgroups as _cgroups
from securebench.sandboxes._bubblewrap.cgroups import Controllers, Counters, Group
from securebench.sandboxes._launch.become import enter_groups
from securebench.sandboxes.base import MIB, Limits

FILES = {
    "memory.max", "memory.swap.max", "pids.max", "cpu.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
    "cpu.cfs_quota_us", "cgroup.procs", "tasks",
}  # fmt: skip


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Does what the real one does: a new group has its files, and no others can be made."""
    make, remove = Path.mkdir, Path.rmdir

    def mkdir(path: Path, *how: object, **more: object) -> None:
        make(path, *how, **more)  # type: ignore[arg-type]
        if path.name == "sandbox":
            for name in FILES:
                (path / name).touch()

    def rmdir(path: Path) -> None:
        for name in FILES:
            (path / name).unlink(missing_ok=True)
        remove(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)


def _v2(tmp_path: Path) -> Group:
    return Group(Controllers(2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path)), "sandbox")


def _read(path: Path) -> dict[str, str]:
    return {file.name: text for file in path.iterdir() if (text := file.read_text())}


def test_version_2_limits_are_written_to_one_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _v2(tmp_path).create(Limits(memory=64 * MIB, pids=10, cpus=0.5), extra_pids=1)
    assert _read(tmp_path / "sandbox") == {
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "pids.max": "11",
        "cpu.max": "50000 100000",
    }


def test_version_1_limits_are_written_per_controller(tmp_path: Path) -> None:
    parents = {name: tmp_path / name for name in ("memory", "pids", "cpu", "cpuacct")}
    for parent in parents.values():
        parent.mkdir()
    Group(Controllers(1, parents), "sandbox").create(Limits(memory=64 * MIB, pids=10), extra_pids=0)
    assert _read(tmp_path / "memory" / "sandbox") == {
        "memory.limit_in_bytes": str(64 * MIB),
        "memory.memsw.limit_in_bytes": str(64 * MIB),
    }
    assert _read(tmp_path / "pids" / "sandbox") == {"pids.max": "10"}
    assert _read(tmp_path / "cpu" / "sandbox") == {}


def test_version_2_counters(tmp_path: Path) -> None:
    group = _v2(tmp_path)
    group.create(Limits(), extra_pids=0)
    here = tmp_path / "sandbox"
    (here / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\n")
    (here / "memory.peak").write_text("12345\n")
    (here / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (here / "pids.peak").write_text("7\n")
    assert group.counters() == Counters(cpu_seconds=1.5, peak_memory=12345, peak_pids=7, oom_kills=1, at_limit=9)


def test_missing_counters_are_none_not_zero(tmp_path: Path) -> None:
    group = _v2(tmp_path)
    group.create(Limits(), extra_pids=0)
    assert group.counters() == Counters(None, None, None, 0)


def test_process_enters_every_directory_once(tmp_path: Path) -> None:
    group = _v2(tmp_path)
    group.create(Limits(), extra_pids=0)
    enter_groups([os.dup(fd) for fd in group.entrances])
    assert (tmp_path / "sandbox" / "cgroup.procs").read_text() == "0"
    group.remove()


def test_swap_that_is_not_accounted_is_no_error(tmp_path: Path) -> None:
    FILES.discard("memory.swap.max")
    try:
        _v2(tmp_path).create(Limits(), extra_pids=0)
    finally:
        FILES.add("memory.swap.max")
    assert "memory.swap.max" not in _read(tmp_path / "sandbox")


def test_group_that_cannot_be_made_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="control group"):
        Group(Controllers(2, {"memory": tmp_path / "missing"}), "x").create(Limits(), extra_pids=0)
    assert list(tmp_path.iterdir()) == []


def test_removing_twice_is_fine_and_a_full_group_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cgroups, "_REMOVAL_SECONDS", 0.01)
    group = _v2(tmp_path)
    (tmp_path / "sandbox").mkdir()
    group.remove()
    group.remove()
    (tmp_path / "sandbox").mkdir()
    (tmp_path / "sandbox" / "busy").touch()
    with pytest.raises(SandboxError, match="cannot be removed"):
        group.remove()
