"""Our end of the spawner: starts it when it is first needed, asks it, and turns its answers into values."""

from __future__ import annotations

import array
import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import anyio

from securebench._proc import Handle, start
from securebench.errors import SandboxError
from securebench.sandboxes._launch import wire as _wire
from securebench.sandboxes._outcome import Ending, from_wait_status

_CONTROL_BYTES = 4096
_BEGIN_SECONDS = 30.0

# Last on the path: where we are installed there may be modules named like those of the standard library.
_PROGRAM = (
    f"import sys; sys.path.append({str(Path(__file__).parents[3])!r}); "
    "from securebench.sandboxes._launch.spawner import main; sys.exit(main())"
)


def memory_file(data: bytes) -> int:
    """A descriptor from which `data` can be read, without a name anywhere."""
    fd = os.memfd_create("securebench", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@cache
def _null() -> int:
    return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)


def real(fds: Iterable[int]) -> list[int]:
    """Descriptors that can be sent; `subprocess.DEVNULL` is a number that only `subprocess` understands."""
    return [_null() if fd == subprocess.DEVNULL else fd for fd in fds]


@dataclass(frozen=True, slots=True)
class Program:
    """A program of ours to start: as which user (-1: our own), under which limits, with which descriptors where.

    `descriptors` are (number there, our descriptor), the three standard streams first."""

    argv: Sequence[str]
    env: Mapping[str, str]
    descriptors: Sequence[tuple[int, int]]
    uid: int = -1
    limits: bytes = b""
    ignored: tuple[signal.Signals, ...] = ()
    groups: Sequence[int] = ()  # the files through which a process enters its control groups


def spawn(program: Program) -> Handle:
    """Start a program; it tells its own failure to start on its standard error. Raises SandboxError."""
    numbers = " ".join(str(number) for number, _ in program.descriptors)
    ignored = " ".join(str(int(number)) for number in program.ignored)
    env = [f"{name}={value}" for name, value in program.env.items()]
    head = [str(program.uid), ignored]
    items = [*map(str.encode, head), program.limits, numbers.encode(), str(len(program.argv)).encode()]
    items += [os.fsencode(word) for word in (*program.argv, *env)]
    fds = [*real(fd for _, fd in program.descriptors), *program.groups]
    return _spawner().ask(b"S", _wire.pack(items), fds)


@dataclass(frozen=True, slots=True)
class Request:
    """One command, complete: nothing is added or looked up on the other side but the program in its PATH."""

    argv: Sequence[str]
    env: Sequence[str]
    cwd: str
    limits: bytes
    stdio: tuple[int, int, int]
    channels: Sequence[tuple[int, int]]  # (number inside, our descriptor)
    groups: Sequence[int] = ()  # as in `Program`


@dataclass(frozen=True, slots=True)
class Finished:
    """A command's true end. `fault` is (stage, errno) when it could not be executed."""

    ending: Ending
    fault: tuple[int, int] | None
    cpu_seconds: float
    peak_memory: int


class Launcher:
    """The process that runs the commands of one session. `close` ends it."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._process: Handle | None = None
        self._sweeping = False

    @classmethod
    def start(cls, kind: bytes) -> Launcher:
        """Start one of a kind the spawner knows; it waits for `prepare`. Raises SandboxError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            _spawner().tell(kind, [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(ours)

    @property
    def pid(self) -> int:
        """Its number on the host, known once it was prepared."""
        return -1 if self._process is None else self._process.pid

    @property
    def awake(self) -> bool:
        """Whether it is there and could answer."""
        return self._process is not None and self._process.awake

    async def greet(self) -> None:
        """Wait until it is there. Raises SandboxError."""
        hello, _ = await self.receive()
        with suppress(ProcessLookupError):
            self._process = Handle(int(hello[1]))
            return
        raise SandboxError("the launcher of the sandbox ended at once")

    def send(self, kind: bytes, items: list[bytes], fds: list[int]) -> None:
        """One message. Raises SandboxError when it is gone."""
        payload = memory_file(_wire.pack(items))
        try:
            rights = array.array("i", [payload, *fds])
            self._control.sendmsg([kind], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except OSError as error:
            raise SandboxError(f"the launcher of the sandbox is gone: {error}") from error
        finally:
            os.close(payload)

    async def begin(self, request: Request) -> int:
        """Make the command's process, which then waits for `go`; its process id on the host. Raises SandboxError.

        Not to be cancelled half-way: a process nobody knows of would never be reaped, and its namespace never end."""
        numbers = " ".join(str(number) for number, _ in request.channels).encode()
        words = [os.fsencode(word) for word in (*request.argv, *request.env)]
        items = [os.fsencode(request.cwd), str(len(request.argv)).encode(), request.limits, numbers, *words]
        self.send(b"R", items, real([*request.stdio, *(fd for _, fd in request.channels), *request.groups]))
        with anyio.move_on_after(_BEGIN_SECONDS, shield=True):
            answer, _ = await self.receive()
            return int(answer[1])
        raise SandboxError(f"the launcher of the sandbox made no process within {_BEGIN_SECONDS:.0f} s")

    def go(self) -> None:
        """Let the command begin."""
        self.send(b"G", [], [])

    def sweep(self) -> None:
        """Kill every process the session's commands started."""
        self._sweeping = True
        self.send(b"K", [], [])

    async def finished(self) -> Finished:
        """Wait for the command's end. Raises SandboxError when the launcher itself failed."""
        words, _ = await self.receive()
        status, number, stage, cpu, peak = map(int, words[1:6])
        fault = (stage, number) if number else None
        return Finished(from_wait_status(status), fault, cpu / 1e6, peak * 1024)

    async def dismiss(self) -> None:
        """Let it end everything and itself, and wait for that. Idempotent."""
        self._control.close()
        if self._process is not None:
            with anyio.CancelScope(shield=True):
                await self._process.ended()
            self._process.close()
            self._process = None

    async def close(self) -> None:
        """End the launcher. Idempotent.

        Not by a signal after a sweep: it has to reap the process it sweeps with, or the namespace never ends."""
        if self._process is not None and not self._sweeping:
            self._process.kill()
        await self.dismiss()

    async def receive(self) -> tuple[list[str], list[int]]:
        """The words and descriptors of its next answer. Raises SandboxError when it failed or is gone."""
        await anyio.wait_readable(self._control)
        try:
            body, fds = _wire.receive(self._control, _CONTROL_BYTES) or (b"", [])
        except ConnectionError:
            body, fds = b"", []
        words = body.decode("utf-8", "replace").split()
        if not words:
            raise SandboxError("the launcher of the sandbox ended without a word")
        if words[0] == "error":
            raise SandboxError(f"the launcher of the sandbox failed: {' '.join(words[1:])}")
        return words, fds


class Spawner:
    """The process that forks. Ends when we end."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()  # an answer belongs to the request before it
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = (sys.executable, "-I", "-S", "-c", _PROGRAM)
            self._process = start(argv, env={}, stdin=theirs.fileno())

    def tell(self, kind: bytes, fds: list[int]) -> None:
        """Raises SandboxError when the process was killed."""
        try:
            self._requests.sendmsg([kind], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        except OSError as error:
            raise SandboxError(f"the process that starts sandboxes is gone: {error}") from error

    def ask(self, kind: bytes, payload: bytes, fds: list[int]) -> Handle:
        """One request and the process it made, which takes a fork. Raises SandboxError."""
        fd = memory_file(payload)
        try:
            with self._lock:
                self.tell(kind, [fd, *fds])
                answer = _wire.receive(self._requests)
        finally:
            os.close(fd)
        if answer is None:
            raise SandboxError("the process that starts sandboxes ended")
        said, made = answer
        pid = int(said.split()[1])
        if not made:
            os.kill(pid, signal.SIGKILL)  # nobody could tell when it ends
            raise SandboxError("no descriptor was left for a process that was started")
        return Handle(pid, made[0])

    @property
    def alive(self) -> bool:
        return self._owner == os.getpid() and self._process.alive

    def close(self) -> None:
        if self._owner == os.getpid():
            self._requests.close()
            self._process.close_now()


_current: list[Spawner] = []
_choosing = threading.Lock()


def _spawner() -> Spawner:
    """The one of this process; a new one after a fork or when it was killed."""
    with _choosing:
        if not _current or not _current[0].alive:
            for old in _current:
                old.close()
            _current[:] = [Spawner()]
            atexit.register(_current[0].close)
        return _current[0]
