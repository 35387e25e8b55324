"""macOS and Windows as the guarded backend sees them, against pretended systems: neither is what runs these tests.

`PosixKernel`, which macOS uses, is tried for real on Linux at the end."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.conformance.sandbox.box import processes_with

from securebench.errors import SandboxError
from securebench.sandboxes._guarded import macos as _macos
from securebench.sandboxes._guarded.macos import MacPlatform, PosixKernel, Row
from securebench.sandboxes._guarded.platform import Order, Used
from securebench.sandboxes._guarded.windows import JobLimits, WindowsPlatform, job_limits
from securebench.sandboxes.base import MIB, Limits

ORDER = Order(("program",), {}, "/", Limits(cpu_seconds=1.5, memory=64 * MIB, pids=8), (0, 1, 2))


@dataclass
class PretendedMac:
    """A process table. A process with `forks` left makes a child whenever the table is looked at, unless stopped."""

    rows: dict[int, Row] = field(default_factory=dict)
    forks: dict[int, int] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)
    signals: list[tuple[int, int]] = field(default_factory=list)
    started: list[dict[str, int]] = field(default_factory=list)
    status: dict[int, int] = field(default_factory=dict)
    next_pid: int = 100
    error: int = 0

    def add(self, parent: int, *, group: int | None = None, began: str = "now") -> int:
        self.next_pid += 1
        pid = self.next_pid
        self.rows[pid] = Row(pid, parent, pid if group is None else group, began, 10 * MIB, 0.5)
        return pid

    def end(self, pid: int, status: int = 0) -> None:
        """Its children go to the system's first process, as there is no subreaper."""
        self.rows.pop(pid, None)
        self.status[pid] = status
        for child, row in self.rows.items():
            if row.parent == pid:
                self.rows[child] = replace(row, parent=1)

    def start(self, order: Order, limits: dict[str, int]) -> int:
        if self.error:
            raise OSError(self.error, "refused")
        self.started.append(dict(limits))
        return self.add(50)

    def poll(self, pid: int) -> tuple[int, float, int] | None:
        return None if pid in self.rows else (self.status[pid], 1.25, 7 * MIB)

    def table(self) -> list[Row]:
        for pid, left in list(self.forks.items()):
            if left and pid in self.rows and pid not in self.stopped:
                self.forks[pid] = left - 1
                self.add(pid)
        return list(self.rows.values())

    def kill(self, pid: int, number: int) -> None:
        self.signals.append((pid, number))
        if number == signal.SIGSTOP:
            self.stopped.add(pid)
        elif pid in self.rows:
            self.end(pid, signal.SIGKILL)


def _started() -> tuple[PretendedMac, MacPlatform, int]:
    kernel = PretendedMac()
    stranger = kernel.add(1)
    platform = MacPlatform(kernel)
    anyio.run(platform.start, ORDER)
    return kernel, platform, stranger


def test_mac_sets_the_limits_its_kernel_enforces() -> None:
    kernel, platform, _ = _started()
    assert kernel.started == [{"CORE": 0, "FSIZE": ORDER.limits.file_size, "NOFILE": 1024, "CPU": 2}]
    assert platform.limits(Limits())["rlimit_NOFILE"] == "1024"
    assert "rlimit_CPU" not in platform.limits(Limits())


def test_mac_reports_the_true_end() -> None:
    for status, expected in ((0x300, (3, None)), (signal.SIGTERM, (None, signal.SIGTERM))):
        kernel, platform, _ = _started()
        kernel.end(kernel.next_pid, status)
        ended = anyio.run(platform.ended)
        assert (ended.ending.exit_code, ended.ending.signal) == expected
        assert (ended.cpu_seconds, ended.peak_memory) == (1.25, 7 * MIB)


def test_mac_says_why_a_program_could_not_be_run() -> None:
    kernel = PretendedMac(error=errno.ENOENT)
    platform = MacPlatform(kernel)
    anyio.run(platform.start, ORDER)
    assert anyio.run(platform.ended).refusal == ("run", errno.ENOENT)
    platform.kill_tree()
    assert kernel.signals == []


def test_mac_ends_children_groups_and_daemons_it_saw_but_nobody_else() -> None:
    kernel, platform, stranger = _started()
    command = kernel.next_pid
    child = kernel.add(command)
    daemon = kernel.add(child)
    in_group = kernel.add(1, group=command)  # left its parent, stayed in the group
    assert platform.usage() == Used(2.0, 40 * MIB, 4)
    kernel.end(child)
    kernel.end(command)  # the daemon is the first process's now, in a session of its own
    platform.kill_tree()
    assert {pid for pid, number in kernel.signals if number == signal.SIGKILL} == {daemon, in_group}
    assert list(kernel.rows) == [stranger]
    assert platform.usage().processes == 0


def test_mac_does_not_mistake_a_later_process_for_a_daemon_of_ours() -> None:
    kernel, platform, _ = _started()
    daemon = kernel.add(kernel.next_pid)
    platform.usage()
    kernel.rows[daemon] = replace(kernel.rows[daemon], parent=1, group=1, began="later")
    kernel.signals.clear()
    platform.kill_tree()
    assert daemon not in {pid for pid, _ in kernel.signals}


def test_mac_stops_first_so_that_a_fork_bomb_cannot_outrun_it() -> None:
    kernel, platform, stranger = _started()
    kernel.forks[kernel.next_pid] = 10_000
    for _ in range(5):
        platform.usage()
    platform.kill_tree()
    assert list(kernel.rows) == [stranger]


def test_mac_control_killing_without_stopping_first_leaves_somebody() -> None:
    kernel, platform, _ = _started()
    kernel.forks[kernel.next_pid] = 10_000
    rows = platform._look()
    platform._look()  # it forks meanwhile
    for row in rows:
        kernel.kill(row.pid, signal.SIGKILL)
    assert len(kernel.rows) > 1


@pytest.mark.parametrize(
    "shown,seconds", [("0:01.50", 1.5), ("1:02", 62), ("01:02:03", 3723), ("2-01:00:00", 176400), ("75:10.25", 4510.25)]
)
def test_times_of_ps(shown: str, seconds: float) -> None:
    assert _macos._seconds(shown) == seconds


@dataclass
class PretendedWindows:
    """Programs and jobs. A process belongs to at most one job; who begins outside it stays outside."""

    codes: dict[int, int | None] = field(default_factory=dict)
    suspended: set[int] = field(default_factory=set)
    members: dict[int, list[int]] = field(default_factory=dict)
    made: list[JobLimits] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    tree_kills: list[int] = field(default_factory=list)
    refuse: bool = False
    error: int = 0

    def start(self, order: Order, *, suspended: bool) -> int:
        if self.error:
            raise OSError(self.error, "refused")
        pid = 1000 + len(self.codes)
        self.codes[pid] = None
        if suspended:
            self.suspended.add(pid)
        return pid

    def child(self, pid: int) -> int:
        """A process started by `pid`: in the same job, if it is in one."""
        new = self.start(ORDER, suspended=False)
        for pids in self.members.values():
            if pid in pids:
                pids.append(new)
        return new

    def resume(self, pid: int) -> None:
        self.suspended.discard(pid)

    def poll(self, pid: int) -> int | None:
        return self.codes[pid]

    def kill_tree(self, pid: int) -> None:
        self.tree_kills.append(pid)
        self.codes[pid] = 1

    def create(self, limits: JobLimits) -> int:
        self.made.append(limits)
        self.members[len(self.made)] = []
        return len(self.made)

    def assign(self, job: int, pid: int) -> None:
        assert pid in self.suspended, "a process that runs may have started others already"
        if self.refuse:
            raise OSError(5, "access denied")
        self.members[job].append(pid)

    def usage(self, job: int) -> Used:
        return Used(0.75, 5 * MIB, sum(self.codes[pid] is None for pid in self.members[job]))

    def terminate(self, job: int, code: int) -> None:
        for pid in self.members[job]:
            if self.codes[pid] is None:
                self.codes[pid] = code

    def close(self, job: Any) -> None:
        self.terminate(job, 0)
        self.closed.append(job)


def test_windows_puts_a_program_into_its_job_before_it_begins() -> None:
    system = PretendedWindows()
    platform = WindowsPlatform(system, system)
    anyio.run(platform.start, ORDER)
    assert system.members == {1: [1000]}
    assert system.suspended == set()
    assert system.made == [JobLimits(64 * MIB, 8, 15_000_000, kill_on_close=True)]
    assert platform.limits(Limits(memory=1, pids=2)) == {"job_memory": "1", "job_processes": "2"}
    assert job_limits(Limits()).cpu_100ns is None


def test_windows_program_that_cannot_be_put_into_a_job_never_begins() -> None:
    system = PretendedWindows(refuse=True)
    with pytest.raises(SandboxError, match="job"):
        anyio.run(WindowsPlatform(system, system).start, ORDER)
    assert system.codes == {1000: 1}
    assert system.suspended == {1000}


def test_windows_job_ends_everything_also_what_its_programs_left_behind() -> None:
    system = PretendedWindows()
    platform = WindowsPlatform(system, system)
    anyio.run(platform.start, ORDER)
    daemon = system.child(system.child(1000))
    system.codes[1000] = 3
    ended = anyio.run(platform.ended)
    assert (ended.ending.exit_code, ended.cpu_seconds) == (3, 0.75)
    assert platform.usage().processes == 2
    anyio.run(platform.start, ORDER)  # the next command of the session
    platform.close()
    assert system.codes[daemon] is not None
    assert None not in system.codes.values()
    assert sorted(system.closed) == [1, 2]


def test_windows_without_jobs_bounds_time_only_and_ends_the_tree() -> None:
    system = PretendedWindows()
    platform = WindowsPlatform(system, None)
    anyio.run(platform.start, ORDER)
    assert system.suspended == set()
    assert platform.limits(ORDER.limits) == {}
    assert platform.usage() == Used(0.0, 0, 1)
    platform.kill_tree()
    assert system.tree_kills == [1000]
    assert anyio.run(platform.ended).cpu_seconds is None
    platform.close()
    assert system.tree_kills == [1000]  # it had ended


def test_windows_says_why_a_program_could_not_be_run() -> None:
    system = PretendedWindows(error=errno.ENOENT)
    platform = WindowsPlatform(system, system)
    anyio.run(platform.start, ORDER)
    assert anyio.run(platform.ended).refusal == ("run", errno.ENOENT)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the limits in /proc")
def test_posix_kernel_for_real() -> None:
    marker = f"91.{time.time_ns()}"
    null = os.open(os.devnull, os.O_RDWR)
    script = f"setsid sleep {marker} & sleep {marker}"
    order = Order(("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"}, "/", Limits(open_files=64), (null, null, null))

    async def main() -> tuple[int, object]:
        platform = MacPlatform(PosixKernel())
        await platform.start(order)
        with anyio.fail_after(60):
            while platform.usage().processes < 3:
                await anyio.sleep(0.02)
        files = Path(f"/proc/{processes_with(marker)[0]}/limits").read_text().split("Max open files")[1].split()
        assert files[:2] == ["64", "64"]
        platform.kill_tree()
        with anyio.fail_after(60):
            ended = await platform.ended()
            while left := platform.usage().processes:
                await anyio.sleep(0.02)
        return left, ended.ending.signal

    try:
        assert anyio.run(main) == (0, signal.SIGKILL)
        assert processes_with(marker) == []
    finally:
        os.close(null)
