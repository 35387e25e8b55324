"""Warm rooms as the audit sees them: the canaries of a backend in one, and what one leaves to the next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from securebench.audit.result import Check, Group
from securebench.sandboxes.base import (
    Command,
    HostRoot,
    Limits,
    PythonProgram,
    Root,
    Sandbox,
    SandboxResult,
    SandboxSpec,
)
from securebench.sandboxes.warm import WarmSandbox, warmed

_LEAVE = """import builtins, ctypes, os, socket, sys
for place in ("/tmp/left", "/dev/shm/left"):
    open(place, "w").close()
ctypes.CDLL(None).shmget(4217, 4096, 0o1666)
left = socket.socket(socket.AF_UNIX)
left.bind("\\0left")
left.listen()
builtins.left = sys.modules["left"] = left
try:
    os.utime("/dev/pts/ptmx", (4217, 4217))
except OSError:
    pass
if os.fork() == 0:
    os.setsid()
    import time
    time.sleep(60)
sys.exit(3)
"""
# What holds itself in its own queue outlives its process for a moment. Its server is not used again.
_TANGLE = """import socket, sys
left = socket.socket(socket.AF_UNIX)
left.bind("\\0left")
left.listen()
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
socket.send_fds(pair[0], [b"."], [left.fileno(), pair[0].fileno(), pair[1].fileno()])
sys.exit(3)
"""
_LOOK = """import builtins, ctypes, os, socket, sys
found = [place for place in ("/tmp/left", "/dev/shm/left") if os.path.exists(place)]
if ctypes.CDLL(None).shmget(4217, 0, 0) >= 0:
    found.append("shared memory")
try:
    socket.socket(socket.AF_UNIX).connect("\\0left")
    found.append("a socket")
except OSError:
    pass
if any("left" in row for row in open("/proc/net/unix")):
    found.append("the name of a socket")
if os.stat("/dev/pts/ptmx").st_mtime == 4217:
    found.append("the time of a device")
if hasattr(builtins, "left") or "left" in sys.modules:
    found.append("a module")
found += ["process " + name for name in os.listdir("/proc") if name.isdigit() and name != str(os.getpid())]
found += ["descriptor " + name for name in os.listdir("/proc/self/fd") if int(name) > 3]
print("found:", *found)
"""


@asynccontextmanager
async def warm_rooms(sandbox: Sandbox, root: Root) -> AsyncIterator[WarmSandbox | None]:
    """This backend with warm rooms; None where it has none, and so none are used."""
    async with warmed(sandbox) as warm:
        usable = isinstance(warm, WarmSandbox) and isinstance(root, HostRoot) and await warm.warm()
        yield warm if isinstance(warm, WarmSandbox) and usable else None


async def run_in(rooms: WarmSandbox, text: str, *arguments: str, limits: Limits | None = None) -> SandboxResult:
    """A program of ours in a warm room."""
    program = PythonProgram((), text, arguments)
    spec = SandboxSpec(cwd="/tmp", limits=limits or Limits(wall_seconds=20))  # noqa: S108 — inside
    return await rooms.run(spec, Command(program.argv, python=program))


async def check_succession(rooms: WarmSandbox) -> Check:
    """Programs one after the other from the same fork server, and one that looks after each: it finds nothing."""
    program = "import sys\nexec(TEXTS[sys.stdin.read()])\n"
    texts = {"leave": _LEAVE, "tangle": _TANGLE, "look": _LOOK}
    all_of_them = PythonProgram((), f"TEXTS = {texts!r}\n{program}")
    spec = SandboxSpec(cwd="/tmp", limits=Limits(wall_seconds=20))  # noqa: S108 — inside
    detail = ""
    for name in ("leave", "tangle"):
        left = await rooms.run(spec, Command(all_of_them.argv, python=all_of_them, stdin=name.encode()))
        seen = await rooms.run(spec, Command(all_of_them.argv, python=all_of_them, stdin=b"look"))
        words = (seen.stdout.data + seen.stderr.data).decode("utf-8", "replace").strip()
        if left.exit_code != 3 or not seen.ok or words != "found:":
            detail = detail or f"left with {left.exit_code}; {words[-300:]}"
    what = "warm room: the next one finds nothing of the last"
    return Check(what, Group.BACKEND, not detail, detail or "nothing of it")
