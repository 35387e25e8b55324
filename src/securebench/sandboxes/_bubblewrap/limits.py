"""From `Limits` to what the kernel is asked to enforce by resource limits. Pure.

Resource limits are per process or per user, so they are the second line: a control group, where we may make one,
counts the whole sandbox. Bubblewrap itself has to live under some of them while it sets up, hence the floors.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Mapping

from securebench.sandboxes.base import Limits

FILE_FLOOR = 64 * 1024
"""No file bubblewrap itself writes may be larger than this."""
_DESCRIPTOR_FLOOR = 16
OWN_PROCESSES = 3
"""Processes of the sandbox's user that are ours: bubblewrap outside, the first process inside, the launcher."""

Bounds = Mapping[int, tuple[int, int]]


def bounds(limits: Limits, *, memory_counted: bool) -> Bounds:
    """(soft, hard) per resource. `memory_counted`: a control group holds memory, so address space stays free."""
    files = max(limits.open_files, _DESCRIPTOR_FLOOR)
    size = max(limits.file_size, FILE_FLOOR)
    processes = limits.pids + OWN_PROCESSES
    wanted = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (size, size),
        resource.RLIMIT_NOFILE: (files, files),
        resource.RLIMIT_NPROC: (processes, processes),
    }
    if limits.cpu_seconds is not None:
        seconds = max(1, math.ceil(limits.cpu_seconds))
        wanted[resource.RLIMIT_CPU] = (seconds, seconds + 1)
    if not memory_counted:
        # Not RLIMIT_AS: runtimes reserve far more address space than they use.
        wanted[resource.RLIMIT_DATA] = (limits.memory, limits.memory)
    return wanted


def as_bytes(wanted: Bounds) -> bytes:
    """As the spawner and the launcher of sessions take them."""
    return " ".join(f"{kind}:{soft}:{hard}" for kind, (soft, hard) in wanted.items()).encode()


def apply(pid: int, wanted: Bounds) -> None:
    """Set them on a process of our own user. Never raises a limit above the process's ceiling."""
    for kind, (soft, hard) in wanted.items():
        ceiling = resource.prlimit(pid, kind)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)  # noqa: PLW2901
        resource.prlimit(pid, kind, (soft, hard))
