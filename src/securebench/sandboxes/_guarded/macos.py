"""Guarded commands on macOS: resource limits, a process group, and a memory of everything the command started.

macOS has no subreaper: what a command leaves behind goes to the system's first process and cannot be found from its
parent any more. So every look at the process table remembers the command's descendants by number and start time, and
the end of a session ends all of them that still live; a daemon that got away between two looks is missed.

Untested on a real macOS. The logic is tested against a pretended kernel, and `PosixKernel` on Linux.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import anyio

from securebench._proc import run_tool_sync
from securebench.errors import SandboxError
from securebench.sandboxes._guarded.platform import Ended, Order, Platform, Used
from securebench.sandboxes._outcome import Ending
from securebench.sandboxes.base import Limits

_LOOK_SECONDS = 0.02
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One process of the system's table. `began` tells it from a later one with the same number."""

    pid: int
    parent: int
    group: int
    began: str
    resident: int
    cpu_seconds: float


class Kernel(Protocol):
    """The calls this platform makes."""

    def start(self, order: Order, limits: Mapping[str, int]) -> int:
        """A child in a session and group of its own, under these limits. Raises OSError."""
        ...

    def poll(self, pid: int) -> tuple[int, float, int] | None:
        """(status, processor time, peak memory) of a child that has ended, reaped; None while it lives."""
        ...

    def table(self) -> Iterable[Row]:
        """Every process."""
        ...

    def kill(self, pid: int, number: int) -> None:
        """Signal one process; one that is gone is no error."""
        ...


class MacPlatform:
    """One session. Made by `open_macos`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._command = 0
        self._refusal: tuple[str, int] | None = None
        self._known: dict[int, str] = {}  # every process ever seen of this session, by number, and when it began

    def limits(self, limits: Limits) -> Mapping[str, str]:
        return {f"rlimit_{name}": str(value) for name, value in bounds(limits).items()}

    async def start(self, order: Order) -> None:
        self._command, self._refusal = 0, None
        try:
            self._command = self._kernel.start(order, bounds(order.limits))
        except OSError as error:
            self._refusal = ("run", error.errno or 0)
        self._look()

    async def ended(self) -> Ended:
        if self._refusal is not None:
            return Ended(Ending(exit_code=127), refusal=self._refusal)
        while (seen := self._kernel.poll(self._command)) is None:
            self._look()
            await anyio.sleep(_LOOK_SECONDS)
        status, cpu, peak = seen
        number = status & 0x7F
        ending = Ending(signal=number) if number else Ending(exit_code=status >> 8 & 0xFF)
        return Ended(ending, cpu, peak)

    def kill_tree(self) -> None:
        """Stop everything first, so that nothing is started behind our back; then kill."""
        stopped: set[int] = set()
        for _ in range(_ROUNDS):
            new = [row.pid for row in self._look() if row.pid not in stopped]
            if not new:
                break
            for pid in new:
                self._kernel.kill(pid, signal.SIGSTOP)
                stopped.add(pid)
        for row in self._look():
            self._kernel.kill(row.pid, signal.SIGKILL)

    def usage(self) -> Used:
        rows = self._look()
        return Used(sum(row.cpu_seconds for row in rows), sum(row.resident for row in rows), len(rows))

    def _look(self) -> list[Row]:
        """The live processes of this session: descendants of those known, their groups, and the known themselves."""
        table = list(self._kernel.table())
        ours = {row.pid: row for row in table if self._known.get(row.pid) == row.began}
        for row in table:
            if row.pid == self._command:
                ours.setdefault(row.pid, row)
        while True:
            groups = {row.group for row in ours.values() if row.group == row.pid}
            found = [row for row in table if row.pid not in ours and (row.parent in ours or row.group in groups)]
            if not found:
                break
            ours.update((row.pid, row) for row in found)
        self._known = {pid: row.began for pid, row in ours.items()}
        return list(ours.values())


def bounds(limits: Limits) -> dict[str, int]:
    """Resource limits by their names there. Memory is watched, not limited: this kernel does not enforce its limit.

    Processes are counted per user, hence watched too."""
    wanted = {"CORE": 0, "FSIZE": limits.file_size, "NOFILE": max(limits.open_files, 16)}
    if limits.cpu_seconds is not None:
        wanted["CPU"] = max(1, math.ceil(limits.cpu_seconds))
    return wanted


class PosixKernel:
    """The real calls. `ps` is the only way to the process table that needs no privileges and no C."""

    def __init__(self) -> None:
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, order: Order, limits: Mapping[str, int]) -> int:
        popen = subprocess.Popen(
            list(order.argv),
            env=dict(order.env),
            cwd=order.cwd,
            stdin=order.stdio[0],
            stdout=order.stdio[1],
            stderr=order.stdio[2],
            close_fds=True,
            start_new_session=True,
            preexec_fn=_bound(limits),  # noqa: PLW1509  (no threads of ours hold locks the child would need)
        )
        self._children[popen.pid] = popen
        return popen.pid

    def poll(self, pid: int) -> tuple[int, float, int] | None:
        try:
            found, status, usage = os.wait4(pid, os.WNOHANG)
        except ChildProcessError as error:
            raise SandboxError("a command was reaped by somebody else") from error
        if found == 0:
            return None
        self._children.pop(pid).returncode = status  # Popen need not wait for it any more
        scale = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
        return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale

    def table(self) -> list[Row]:
        words = ["ps", "-axo", "pid=,ppid=,pgid=,state=,rss=,time=,lstart="]
        done = run_tool_sync(words, 10, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})
        rows = (line.split(None, 6) for line in done.stdout.decode("ascii", "replace").splitlines())
        return [
            Row(int(row[0]), int(row[1]), int(row[2]), row[6].strip(), int(row[4]) * 1024, _seconds(row[5]))
            for row in rows
            if len(row) == 7 and not row[3].startswith("Z")
        ]

    def kill(self, pid: int, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _bound(limits: Mapping[str, int]) -> Callable[[], None]:
    """What the child does before it becomes the command: limits, and every signal as by default."""
    import resource

    kinds = {getattr(resource, f"RLIMIT_{name}"): value for name, value in limits.items()}
    numbers = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]

    def bound() -> None:
        for number in numbers:
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for kind, value in kinds.items():
            ceiling = resource.getrlimit(kind)[1]
            value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)  # noqa: PLW2901
            resource.setrlimit(kind, (value, value))

    return bound


def _seconds(text: str) -> float:
    """`[days-][hours:]minutes:seconds[.fraction]`, as ps writes it."""
    days, _, clock = text.rpartition("-")
    total = float(days or 0) * 24
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + float(part)
    return total * 3600 + seconds


@asynccontextmanager
async def open_macos() -> AsyncIterator[Platform]:
    """A session; at the end everything it ever saw of its commands is ended."""
    platform = MacPlatform(PosixKernel())
    try:
        yield platform
    finally:
        platform.kill_tree()
