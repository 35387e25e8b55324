"""Hostile programs in the ground's sandbox, and what of the host they may reach for: a directory with a file in it, a
socket, an abstract socket, a process. They say `through` where they came through; and we look from outside as well."""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from securebench import _proc
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.errors import ConfigError, SandboxError
from securebench.sandboxes.base import MIB, Command, Limits, SandboxResult, SandboxSpec, Scratch, run_once

THROUGH = b"THROUGH"
WORK = "/work"
SECONDS = 20.0
ROOM = Limits(wall_seconds=SECONDS, memory=256 * MIB, pids=32, output=MIB, tmp=16 * MIB, file_size=64 * MIB)


@dataclass(frozen=True, slots=True)
class Target:
    """What of the host's there is to reach."""

    directory: Path
    pid: int
    mark: str
    abstract: str
    listeners: tuple[socket.socket, ...]

    def told(self) -> dict[str, Any]:
        return {
            "directory": str(self.directory),
            "file": str(self.directory / "file"),
            "socket": str(self.directory / "socket"),
            "abstract": self.abstract,
            "pid": self.pid,
            "mark": self.mark,
        }

    def harm(self) -> str:
        """What was done to it, seen from here."""
        if not Path(f"/proc/{self.pid}").exists() or _state(self.pid) in "ZTX":
            return "a process of the host was ended or stopped"
        if (self.directory / "file").read_bytes() != b"untouched":
            return "a file of the host was changed"
        if len(list(self.directory.iterdir())) != 2:
            return "there is a new file of the host"
        return next(_visits(*self.listeners), "")


@contextmanager
def target(ground: Ground) -> Iterator[Target]:
    """Something of the host's, open to every user: permission bits must not be the wall."""
    directory = ground.directory / "host"
    directory.mkdir()
    directory.chmod(0o777)
    ground.directory.chmod(0o755)
    (directory / "file").write_bytes(b"untouched")
    (directory / "file").chmod(0o666)
    mark = f"7.{secrets.randbits(60)}"
    abstract = f"securebench-{secrets.token_hex(8)}"
    process = _proc.start(["/bin/sleep", "120", "0", mark], env={})
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as unnamed:
        named.bind(str(directory / "socket"))
        (directory / "socket").chmod(0o777)
        unnamed.bind(f"\0{abstract}")
        for listener in (named, unnamed):
            listener.setblocking(False)
            listener.listen()
        try:
            yield Target(directory, process.pid, mark, abstract, (named, unnamed))
        finally:
            process.close_now()


def _visits(*listeners: socket.socket) -> Iterator[str]:
    for listener in listeners:
        try:
            listener.accept()[0].close()
            yield "a socket of the host was reached"
        except BlockingIOError:
            continue


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@dataclass(frozen=True, slots=True)
class Reaches:
    """A Python program wants something of the host's. It finds what there is in the dictionary `HOST`."""

    program: str
    limits: Limits = ROOM
    cwd: str = WORK

    async def on(self, ground: Ground) -> Seen:
        with target(ground) as host:
            try:
                result = await run_inside(ground, as_program(self.program, host), self.limits, cwd=self.cwd)
            except (ConfigError, SandboxError) as error:
                if self.cwd == WORK:
                    raise
                return Seen(End.MISSED, f"such a directory is refused: {error}"[:300])
            return judged(result, host.harm())


def as_program(program: str, host: Target) -> str:
    return f"HOST = {json.dumps(host.told())}\nPREFIX = ''\n{program}"


async def run_inside(
    ground: Ground, program: str, limits: Limits = ROOM, disk: int = 16 * MIB, cwd: str = WORK
) -> SandboxResult:
    """A Python program in a sandbox of its own."""
    spec = SandboxSpec(ground.root, (Scratch(WORK, disk),), cwd=cwd, limits=limits)
    return await run_once(ground.sandbox, spec, Command(("python3", "-c", program)))


def judged(result: SandboxResult, harm: str = "") -> Seen:
    """What a program came to that says `THROUGH` where it came through."""
    said = (result.stdout.data[-200:] + result.stderr.data[-200:]).decode("utf-8", "replace")
    seen = f"{result.outcome} {result.exit_code}: {said}"
    return Seen(End.REACHED if harm or THROUGH in result.stdout.data else End.MISSED, harm or seen, result.outcome)


@dataclass(frozen=True, slots=True)
class Takes:
    """A Python program wants more of something than its limits allow, and says when it has it."""

    program: str
    limits: Limits = ROOM
    disk: int = 16 * MIB

    async def on(self, ground: Ground) -> Seen:
        return judged(await run_inside(ground, self.program, self.limits, self.disk))


@dataclass(frozen=True, slots=True)
class Outlives:
    """A Python program wants a process of its own to live on when its sandbox is gone, and to keep whoever waits for it
    waiting. The process has `MARK` among its arguments."""

    program: str
    limits: Limits = ROOM
    patience: float = SECONDS

    async def on(self, ground: Ground) -> Seen:
        mark = f"8.{secrets.randbits(60)}"
        began = time.monotonic()
        result = await run_inside(ground, f"MARK, INSIDE = {mark!r}, True\n{self.program}", self.limits)
        waited = time.monotonic() - began
        if left := processes_with(mark):
            return Seen(End.REACHED, f"{len(left)} processes live on")
        if waited > self.patience:
            return Seen(End.REACHED, f"it was waited for {waited:.0f} seconds")
        if THROUGH not in result.stdout.data:
            return Seen(End.FAULT, f"it came to nothing: {result.outcome} {result.stderr.data[-300:]!r}")
        return Seen(End.MISSED, f"{result.outcome} after {waited:.1f} seconds", result.outcome)


def processes_with(mark: str) -> list[int]:
    """Processes of this host that have it among their arguments, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@dataclass(frozen=True, slots=True)
class Disturbs:
    """Two sandboxes at the same time: a hostile program in one wants an ordinary program in the other to fail."""

    program: str
    ordinary: str
    limits: Limits = ROOM

    async def on(self, ground: Ground) -> Seen:
        hostile = f"{self.program}\nimport time; print('ready', flush=True); time.sleep({SECONDS})"
        ready, result = anyio.Event(), None
        command = Command(("python3", "-c", hostile), on_output=lambda *_: ready.set())
        spec = SandboxSpec(ground.root, (Scratch(WORK, 16 * MIB),), cwd=WORK, limits=self.limits)
        async with ground.sandbox.open(spec) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(session.run, command)
            with anyio.move_on_after(SECONDS):
                await ready.wait()
                result = await run_inside(ground, self.ordinary)
            tasks.cancel_scope.cancel()
        if result is None:
            return Seen(End.FAULT, "the hostile program never said that it was ready")
        return Seen(End.MISSED if result.ok else End.REACHED, f"the neighbour: {result.stderr.data[-200:]!r}")
