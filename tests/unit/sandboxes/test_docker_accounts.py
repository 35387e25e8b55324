"""Reading control groups of both versions, from files laid out as the kernel does."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from securebench.sandboxes._docker.accounts import CPU, MEMORY, PIDS, Account, Counts, Ledger, find_ledger, read_counts

ID = "f" * 64


def _write(directory: Path, **files: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)
    return directory


def _v2(directory: Path) -> Path:
    stat = "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n"
    return _write(directory, cpu__stat=stat, memory__peak="4096\n", pids__peak="30\n", cgroup__procs="77\n")


def _host(root: Path, mounts: str, groups: str) -> tuple[str, str]:
    (root / "mounts").write_text(mounts)
    _write(root / "proc" / "77", cgroup=groups)
    return str(root / "mounts"), str(root / "proc")


def test_version_2_is_read(tmp_path: Path) -> None:
    group = _v2(tmp_path / "group")
    assert read_counts({CPU: group, MEMORY: group, PIDS: group}) == Counts(1.5, 4096, 30)


def test_version_1_is_read(tmp_path: Path) -> None:
    cpu = _write(tmp_path / "cpuacct", cpuacct__usage="2500000000\n", cpu__stat="nr_periods 0\n")
    memory = _write(tmp_path / "memory", memory__max_usage_in_bytes="8192\n")
    assert read_counts({CPU: cpu, MEMORY: memory}) == Counts(2.5, 8192, None)


@pytest.mark.parametrize("text", ["", "max\n", "garbage", "-1"])
def test_what_the_kernel_does_not_say_is_not_known(tmp_path: Path, text: str) -> None:
    group = _write(tmp_path / "group", cpu__stat="", memory__peak=text, pids__peak=text)
    assert read_counts({CPU: group, MEMORY: group, PIDS: group}) == Counts()
    assert read_counts({CPU: tmp_path / "gone"}) == Counts()


def test_processes_the_start_may_have_had_are_not_told() -> None:
    assert Counts(peak_pids=9).processes(1) is None
    assert Counts(peak_pids=40).processes(1) == 39
    assert Counts().processes(1) is None


def test_ledger_of_version_2(tmp_path: Path) -> None:
    _v2(tmp_path / "cgroup" / "docker" / ID)
    mounts, proc = _host(tmp_path, f"cgroup2 {tmp_path}/cgroup cgroup2 rw 0 0\n", f"0::/docker/{ID}\n")
    ledger = find_ledger(ID, 77, mounts, proc)
    place = tmp_path / "cgroup" / "docker"
    assert ledger == Ledger("/docker", dict.fromkeys((CPU, MEMORY, PIDS), place), (place,))


def test_ledger_of_version_1_has_every_hierarchy(tmp_path: Path) -> None:
    for name, files in {
        "cpu,cpuacct": {"cpuacct__usage": "1\n"},
        "memory": {"memory__max_usage_in_bytes": "1\n"},
        "freezer": {},
    }.items():
        _write(tmp_path / name / "docker" / ID, cgroup__procs="77\n", **files)
    mounts = "".join(f"cgroup {tmp_path}/{n} cgroup rw,{n} 0 0\n" for n in ("cpu,cpuacct", "memory", "freezer"))
    rows = f"3:cpuacct,cpu:/docker/{ID}\n2:memory:/docker/{ID}\n1:freezer:/docker/{ID}\n0::/elsewhere\n"
    ledger = find_ledger(ID, 77, *_host(tmp_path, mounts, rows))
    assert ledger is not None
    assert set(ledger.counting) == {CPU, MEMORY}
    assert {place.parent.name for place in ledger.places} == {"cpu,cpuacct", "memory", "freezer"}


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(f"0::/system.slice/docker-{ID}.scope\n", id="systemd manages it"),
        pytest.param("0::/\n", id="another namespace"),
        pytest.param(f"0::/pods/{ID}\n", id="a group that does not hold it"),
        pytest.param("", id="nothing"),
    ],
)
def test_no_ledger_where_it_cannot_be_ours(tmp_path: Path, rows: str) -> None:
    _v2(tmp_path / "cgroup" / "system.slice" / f"docker-{ID}.scope")
    _write(_v2(tmp_path / "cgroup" / "pods" / ID), cgroup__procs="1\n")
    mounts, proc = _host(tmp_path, f"cgroup2 {tmp_path}/cgroup cgroup2 rw 0 0\n", rows)
    assert find_ledger(ID, 77, mounts, proc) is None
    assert find_ledger(ID, 999, mounts, proc) is None


def test_account_makes_a_group_and_removes_it(tmp_path: Path) -> None:
    ledger = Ledger("/docker", {CPU: tmp_path, MEMORY: tmp_path}, (tmp_path, tmp_path / "not-there"))
    account = Account(ledger, "securebench-x")
    assert account.exact
    assert account.parent == "/docker/securebench-x"
    assert os.listdir(tmp_path) == ["securebench-x"]
    anyio.run(account.remove)
    assert os.listdir(tmp_path) == []


def test_account_without_a_place_follows_the_container(tmp_path: Path) -> None:
    """A group that cannot be made is no error: less is known then."""
    gone = Ledger("/docker", {CPU: tmp_path / "gone"}, (tmp_path / "gone",))
    for account in (Account(gone, "x"), Account(None, "x")):
        assert not account.exact
        assert account.parent is None
        account.follow("0" * 64)
        assert account.read() == Counts()
        anyio.run(account.remove)


def test_what_was_seen_is_kept_when_the_group_is_gone(tmp_path: Path) -> None:
    account = Account(Ledger("/docker", {CPU: tmp_path, MEMORY: tmp_path}, (tmp_path,)), "x")
    _v2(tmp_path / "x")
    assert account.read() == Counts(1.5, 4096, None)
    for file in (tmp_path / "x").iterdir():
        file.unlink()
    assert account.read() == Counts(1.5, 4096, None)
