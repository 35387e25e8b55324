"""Places that are no sandboxes, or not enough of one. Where a program runs as a plain process, it reaches for nothing
but what was put there for it."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass

from securebench import _proc
from securebench.audit.plays.escape import (
    ROOM,
    THROUGH,
    WORK,
    as_program,
    judged,
    processes_with,
    run_inside,
    target,
)
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.sandboxes.base import MIB, Limits

_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Plain:
    """A plain process of the host."""

    program: str

    async def on(self, ground: Ground) -> Seen:
        with target(ground) as host:
            argv = (sys.executable, "-c", as_program(self.program, host))
            result = await _proc.run_tool(argv, _SECONDS, cwd=ground.directory)
            harm = host.harm()
        said = (result.stdout + result.stderr)[-300:].decode("utf-8", "replace")
        return Seen(End.REACHED if harm or THROUGH in result.stdout else End.MISSED, harm or said)


@dataclass(frozen=True, slots=True)
class Roomy:
    """The same sandbox with room enough."""

    program: str
    limits: Limits
    disk: int = 64 * MIB

    async def on(self, ground: Ground) -> Seen:
        return judged(await run_inside(ground, self.program, self.limits, self.disk))


@dataclass(frozen=True, slots=True)
class Furnished:
    """A sandbox in which such files are there to be written: ordinary files, beneath the directory that is `PREFIX`."""

    program: str
    files: tuple[str, ...]

    async def on(self, ground: Ground) -> Seen:
        make = f"""
import os
for name in {self.files!r}:
    os.makedirs(os.path.dirname({WORK!r} + name), exist_ok=True)
    open({WORK!r} + name, "w").close()
PREFIX = {WORK!r}
"""
        return judged(await run_inside(ground, make + self.program))


@dataclass(frozen=True, slots=True)
class Inherited:
    """A launcher inside of a sandbox that prepares something and becomes the program: its descriptors stay open."""

    launcher: str
    program: str

    async def on(self, ground: Ground) -> Seen:
        return judged(await run_inside(ground, f"PROGRAM = {self.program!r}\n{self.launcher}"))


@dataclass(frozen=True, slots=True)
class OneRoom:
    """Both programs in one sandbox, under the same limits."""

    program: str
    ordinary: str
    limits: Limits = ROOM

    async def on(self, ground: Ground) -> Seen:
        hostile = f"{self.program}\nimport time; print('ready', flush=True); time.sleep(20)"
        both = f"""
import subprocess, sys
hostile = subprocess.Popen([sys.executable, "-c", {hostile!r}], stdout=subprocess.PIPE)
hostile.stdout.readline()
try:
    code = subprocess.run([sys.executable, "-c", {self.ordinary!r}], timeout=5).returncode
except Exception as error:
    code = error
print("THROUGH" if code else "", flush=True)
"""
        return judged(await run_inside(ground, both, self.limits))


@dataclass(frozen=True, slots=True)
class EndsTheFirstOnly:
    """Starts a plain process, ends that one when its time is up, and looks no further."""

    program: str
    seconds: float = 2.0

    async def on(self, ground: Ground) -> Seen:
        mark = f"8.{secrets.randbits(60)}"
        program = f"MARK, INSIDE = {mark!r}, False\n{self.program}"
        await _proc.run_tool((sys.executable, "-c", program), self.seconds, cwd=ground.directory)
        left = processes_with(mark)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return Seen(End.REACHED if left else End.MISSED, f"{len(left)} processes live on")


@dataclass(frozen=True, slots=True)
class GradesBeside:
    """A grader that starts the candidate as a child of its own, in its own sandbox and with what it compares to around
    it: among its arguments, in its environment, its working directory, its open files and its memory."""

    source: str
    secret: int
    silence: bool = False  # is taken for a fault of the host, and left out of the score

    async def on(self, ground: Ground) -> Seen:
        grader = f"""
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(0x59616D61, -1, 0, 0, 0)  # whoever wants to may look into its memory
expected = {self.secret} + int(sys.argv[1]) - int(sys.argv[1])
os.environ["EXPECTED"] = str(expected)
with open("expected.txt", "w") as file:
    file.write(str(expected))
held = open("expected.txt")
os.set_inheritable(held.fileno(), True)
call = {self.source!r} + "\\nprint(sq(1))"
child = subprocess.run([sys.executable, "-c", call], stdout=subprocess.PIPE, env={{}}, cwd="/", close_fds=False)
print("THROUGH" if child.returncode < 0 or str(expected).encode() in child.stdout else child.stdout)
"""
        launch = f"import os, sys; os.execv(sys.executable, [sys.executable, '-c', {grader!r}, '{self.secret}'])"
        result = await run_inside(ground, launch)
        if self.silence and not result.stdout.data:
            return Seen(End.REACHED, f"the grader said nothing: {result.outcome}")
        return judged(result)
