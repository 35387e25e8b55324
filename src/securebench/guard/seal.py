"""The kernel's part, from inside: no new privileges, Landlock, limits, and the system call filter last.

What the kernel does not have is left out and not listed as installed; whether that is good enough is for whoever
started us to say (`require`).
"""

from __future__ import annotations

import os
import sys

from . import landlock, limits, seccomp
from .calls import MACHINES
from .paths import ALWAYS_READABLE, DEVICES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .params import Params

_NO_NEW_PRIVS = 38
_SEALED = ("process", "files", "listing", "network", "signals", "amounts")


def seal(params: Params, readable: tuple[str, ...]) -> list[str]:
    """Install what the kernel has; the names of what was. Raises for limits that cannot be set."""
    allowed = frozenset(_SEALED) - params.sealed
    installed: list[str] = []
    machine = os.uname().machine if hasattr(os, "uname") else ""
    libc = None
    if params.seal and sys.platform == "linux" and machine in MACHINES:
        from .libc import Libc

        try:
            libc = Libc()
            libc.call(MACHINES[machine][1]["prctl"], _NO_NEW_PRIVS, 1, 0, 0, 0)
            installed.append("no_new_privs")
        except OSError:
            libc = None
    if libc is not None and "files" not in allowed:
        try:
            landlock.restrict(libc, params.root, (*readable, *ALWAYS_READABLE), DEVICES, allowed)
            installed.append("landlock")
        except OSError:
            pass
    if params.rlimits:
        limits.apply(params.rlimits)
        installed.append("rlimits")
    if libc is not None:
        try:
            seccomp.load(libc, machine, seccomp.build(machine, allowed, os.getpid()))
            installed.append("seccomp")
        except OSError:
            pass
    return installed
