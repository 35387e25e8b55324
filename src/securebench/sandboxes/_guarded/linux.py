"""Guarded commands on Linux: resource limits, and a keeper process to whom everything they start is left."""

from __future__ import annotations

import os
import resource
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import limits as _limits
from securebench.sandboxes._bubblewrap.processes import sample
from securebench.sandboxes._guarded.platform import Ended, Order, Platform, Used
from securebench.sandboxes._launch.client import Launcher, Request
from securebench.sandboxes._launch.runner import STAGES
from securebench.sandboxes.base import Limits

_KIND = b"K"
_NAMES = {
    resource.RLIMIT_CORE: "core",
    resource.RLIMIT_FSIZE: "fsize",
    resource.RLIMIT_NOFILE: "nofile",
    resource.RLIMIT_NPROC: "nproc",
    resource.RLIMIT_CPU: "cpu",
    resource.RLIMIT_DATA: "data",
}


class LinuxPlatform:
    """One session. Made by `open_linux`."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def limits(self, limits: Limits) -> Mapping[str, str]:
        return {f"rlimit_{_NAMES[kind]}": str(soft) for kind, (soft, _) in bounds(limits).items()}

    async def start(self, order: Order) -> None:
        request = Request(
            argv=order.argv,
            env=[f"{name}={value}" for name, value in order.env.items()],
            cwd=order.cwd,
            limits=_limits.as_bytes(bounds(order.limits)),
            stdio=order.stdio,
            channels=order.channels,
        )
        await self._launcher.begin(request)
        self._launcher.go()

    async def ended(self) -> Ended:
        finished = await self._launcher.finished()
        refusal = None
        if finished.fault is not None:
            stage, number = finished.fault
            if stage == 0:
                raise SandboxError(f"the limits of a command could not be set: {os.strerror(number)}")
            refusal = (STAGES[stage], number)
        return Ended(finished.ending, finished.cpu_seconds, finished.peak_memory, refusal)

    def kill_tree(self) -> None:
        with suppress(SandboxError):  # a keeper that is gone has ended everything, and `ended` says so
            self._launcher.sweep()

    def usage(self) -> Used:
        seen = sample([self._launcher.pid])
        return Used(seen.cpu_seconds, seen.resident, max(0, seen.processes - 1))  # without the keeper


def bounds(limits: Limits) -> _limits.Bounds:
    """Resource limits. The kernel counts processes per user, so what the user has already is added; root it counts not
    at all, which is why the session counts too."""
    return _limits.bounds(replace(limits, pids=limits.pids + _threads_of_this_user()), memory_counted=False)


def _threads_of_this_user() -> int:
    count, uid = 0, os.getuid()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry.stat().st_uid == uid:
                count += sum(1 for _ in (entry / "task").iterdir())
    return count


@asynccontextmanager
async def open_linux() -> AsyncIterator[Platform]:
    """A keeper of its own for one session; at the end it ends everything it kept."""
    launcher = Launcher.start(_KIND)
    try:
        await launcher.greet()
        launcher.send(b"J", [], [])
        await launcher.receive()
        yield LinuxPlatform(launcher)
    finally:
        await launcher.dismiss()
