"""Guarded commands on Windows: a job object where pywin32 is installed, else the tree of processes by `taskkill`.

A job holds every process its members start, bounds their memory and number together, and ends them all when its last
handle closes, so also when SecureBench dies. Without pywin32 only the wall clock and the output are bounded, and
`taskkill /T` ends what still hangs together as a tree.

Untested on a real Windows. The logic is tested against a pretended system.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from securebench._proc import run_tool_sync
from securebench.errors import InfrastructureError, SandboxError
from securebench.sandboxes._guarded.platform import Ended, Order, Platform, Used
from securebench.sandboxes._outcome import Ending
from securebench.sandboxes.base import Limits

_LOOK_SECONDS = 0.02
_KILLED = 0x5EC0  # the exit code we end processes with, told apart from their own by `killed`


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What a job enforces, in the units of the system."""

    memory: int
    processes: int
    cpu_100ns: int | None
    kill_on_close: bool = True


class Jobs(Protocol):
    """Job objects, as pywin32 gives them."""

    def create(self, limits: JobLimits) -> Any: ...

    def assign(self, job: Any, pid: int) -> None:
        """Put a process that has not begun yet into the job. Raises OSError."""
        ...

    def usage(self, job: Any) -> Used: ...

    def terminate(self, job: Any, code: int) -> None: ...

    def close(self, job: Any) -> None: ...


class Programs(Protocol):
    """Processes, as the standard library and two tools of the system give them."""

    def start(self, order: Order, *, suspended: bool) -> int:
        """A new process group without a console window. Raises OSError."""
        ...

    def resume(self, pid: int) -> None: ...

    def poll(self, pid: int) -> int | None: ...

    def kill_tree(self, pid: int) -> None:
        """`taskkill /F /T`: the process and what it started, as far as the system remembers who started whom."""
        ...


class WindowsPlatform:
    """One session. A job per command, all of them closed at the end. Made by `open_windows`."""

    def __init__(self, programs: Programs, jobs: Jobs | None) -> None:
        self._programs, self._jobs = programs, jobs
        self._open: list[Any] = []
        self._started: list[int] = []
        self._refusal: tuple[str, int] | None = None

    def limits(self, limits: Limits) -> Mapping[str, str]:
        if self._jobs is None:
            return {}
        wanted = job_limits(limits)
        bound = {"job_memory": str(wanted.memory), "job_processes": str(wanted.processes)}
        return bound if wanted.cpu_100ns is None else {**bound, "job_time": str(wanted.cpu_100ns)}

    async def start(self, order: Order) -> None:
        self._refusal = None
        try:
            pid = self._programs.start(order, suspended=self._jobs is not None)
        except OSError as error:
            self._refusal = ("run", error.errno or 0)
            return
        self._started.append(pid)
        if self._jobs is not None:
            try:
                job = self._jobs.create(job_limits(order.limits))
                self._open.append(job)
                self._jobs.assign(job, pid)
            except OSError as error:
                self._programs.kill_tree(pid)  # it has not begun; outside the job it never will
                raise SandboxError(f"a command could not be put into its job: {error}") from error
            self._programs.resume(pid)

    async def ended(self) -> Ended:
        if self._refusal is not None:
            return Ended(Ending(exit_code=127), refusal=self._refusal)
        while (code := self._programs.poll(self._started[-1])) is None:
            await anyio.sleep(_LOOK_SECONDS)
        cpu = self._jobs.usage(self._open[-1]).cpu_seconds if self._jobs is not None else None
        return Ended(Ending(exit_code=code), cpu)

    def kill_tree(self) -> None:
        if self._jobs is not None:
            for job in self._open:
                self._jobs.terminate(job, _KILLED)
            return
        for pid in self._started:
            if self._programs.poll(pid) is None:
                self._programs.kill_tree(pid)

    def usage(self) -> Used:
        if self._jobs is None:
            return Used(0.0, 0, sum(self._programs.poll(pid) is None for pid in self._started))
        seen = [self._jobs.usage(job) for job in self._open]
        cpu = seen[-1].cpu_seconds if seen else 0.0
        return Used(cpu, sum(used.resident for used in seen), sum(used.processes for used in seen))

    def close(self) -> None:
        """End everything and give the jobs back."""
        self.kill_tree()
        while self._jobs is not None and self._open:
            self._jobs.close(self._open.pop())


def job_limits(limits: Limits) -> JobLimits:
    """The same limits in the units of a job."""
    cpu = None if limits.cpu_seconds is None else int(limits.cpu_seconds * 10_000_000)
    return JobLimits(limits.memory, limits.pids, cpu)


class SystemPrograms:
    """The real processes."""

    def __init__(self) -> None:
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, order: Order, *, suspended: bool) -> int:
        flags = 0x00000200 | 0x08000000 | (0x00000004 if suspended else 0)  # new group, no window, suspended
        popen = subprocess.Popen(
            list(order.argv),
            env=dict(order.env),
            cwd=order.cwd,
            stdin=order.stdio[0],
            stdout=order.stdio[1],
            stderr=order.stdio[2],
            close_fds=True,
            creationflags=flags,
        )
        self._children[popen.pid] = popen
        return popen.pid

    def resume(self, pid: int) -> None:
        import ctypes

        handle = int(self._children[pid]._handle)  # type: ignore[attr-defined]
        ctypes.windll.ntdll.NtResumeProcess(handle)  # type: ignore[attr-defined]

    def poll(self, pid: int) -> int | None:
        return self._children[pid].poll()

    def kill_tree(self, pid: int) -> None:
        with suppress(InfrastructureError):
            run_tool_sync(["taskkill", "/F", "/T", "/PID", str(pid)], 30)
        with suppress(OSError):
            self._children[pid].kill()


class PyWin32Jobs:
    """The real job objects. Raises ImportError without pywin32."""

    def __init__(self) -> None:
        import win32api  # type: ignore[import-not-found, import-untyped, unused-ignore]
        import win32job  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self._api: Any = win32api
        self._job: Any = win32job

    def create(self, limits: JobLimits) -> Any:
        job, kind = self._job.CreateJobObject(None, ""), self._job.JobObjectExtendedLimitInformation
        wanted = self._job.QueryInformationJobObject(job, kind)
        basic = wanted["BasicLimitInformation"]
        flags = self._job.JOB_OBJECT_LIMIT_JOB_MEMORY | self._job.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
        flags |= self._job.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE if limits.kill_on_close else 0
        if limits.cpu_100ns is not None:
            flags |= self._job.JOB_OBJECT_LIMIT_JOB_TIME
            basic["PerJobUserTimeLimit"] = limits.cpu_100ns
        basic["LimitFlags"], basic["ActiveProcessLimit"] = flags, limits.processes
        wanted["JobMemoryLimit"] = limits.memory
        self._job.SetInformationJobObject(job, kind, wanted)
        return job

    def assign(self, job: Any, pid: int) -> None:
        handle = self._api.OpenProcess(0x0100 | 0x0001, False, pid)  # set quota, terminate
        try:
            self._job.AssignProcessToJobObject(job, handle)
        finally:
            self._api.CloseHandle(handle)

    def usage(self, job: Any) -> Used:
        basic = self._job.QueryInformationJobObject(job, self._job.JobObjectBasicAccountingInformation)
        extended = self._job.QueryInformationJobObject(job, self._job.JobObjectExtendedLimitInformation)
        cpu = (basic["TotalUserTime"] + basic["TotalKernelTime"]) / 1e7
        return Used(cpu, int(extended["PeakJobMemoryUsed"]), int(basic["ActiveProcesses"]))

    def terminate(self, job: Any, code: int) -> None:
        with suppress(OSError):
            self._job.TerminateJobObject(job, code)

    def close(self, job: Any) -> None:
        self._api.CloseHandle(job)


def find_jobs() -> Jobs | None:
    """Job objects, where pywin32 is installed."""
    try:
        return PyWin32Jobs()
    except ImportError:
        return None


@asynccontextmanager
async def open_windows() -> AsyncIterator[Platform]:
    """A session; at the end its jobs are closed, which ends everything in them."""
    platform = WindowsPlatform(SystemPrograms(), find_jobs())
    try:
        yield platform
    finally:
        platform.close()
