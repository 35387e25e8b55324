"""Our end of the control socket to `joiner.py`: starts it, asks it, and turns its answers into values."""

from __future__ import annotations

import array
import atexit
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from securebench._proc import Handle, Pipe, start
from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import joiner as _joiner
from securebench.sandboxes._bubblewrap import seed as _seed
from securebench.sandboxes._bubblewrap.gate import memory_file
from securebench.sandboxes._outcome import Ending, from_wait_status

_JOIN_SECONDS = 600.0  # bounds the copy of a large seed
_CONTROL_BYTES = 4096

# Imported rather than run as a file, so that its compiled form is reused; last on the path, because this directory
# has modules named like those of the standard library.
_PROGRAM = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import joiner; sys.exit(joiner.main())"


@dataclass(frozen=True, slots=True)
class Request:
    """One command, complete: nothing is added or looked up on the other side but the program in its PATH."""

    argv: Sequence[str]
    env: Sequence[str]
    cwd: str
    limits: bytes
    stdio: tuple[int, int, int]
    channels: Sequence[tuple[int, int]]  # (number inside, our descriptor)


@dataclass(frozen=True, slots=True)
class Finished:
    """A command's true end. `fault` is (stage, errno) when it could not be executed."""

    ending: Ending
    fault: tuple[int, int] | None
    cpu_seconds: float


class Launcher:
    """A started launcher. `close` ends it."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._process: Handle | None = None

    @classmethod
    def start(cls) -> Launcher:
        """Start one; it waits for `join`. Raises SandboxError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            _forker().fork(theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(ours)

    async def join(
        self, init: Handle, uid: int | None, program: bytes, targets: list[str], seeds: list[tuple[str, Path]]
    ) -> list[int]:
        """Enter the sandbox of `init` and fill its scratch directories; a descriptor for each of `targets`.

        Raises SandboxError.
        """
        items = [str(-1 if uid is None else uid).encode(), program, *(os.fsencode(target) for target in targets)]
        hello, _ = await self._receive()
        self._process = Handle(int(hello[1]))
        pipe = Pipe(*os.pipe())
        try:
            self._send(b"J", items, [init.fileno(), pipe.read])
            pipe.close_read()
            write, pipe.write = pipe.write, -1
            with anyio.move_on_after(_JOIN_SECONDS):
                await anyio.to_thread.run_sync(_send_seeds, write, seeds)
                words, fds = await self._receive()
                if words == ["ok"]:
                    return fds
                raise SandboxError(f"the launcher answered {words} to join")
        finally:
            pipe.close()
        raise SandboxError(f"filling the scratch directories took more than {_JOIN_SECONDS:.0f} s")

    async def begin(self, request: Request) -> int:
        """Make the command's process, which then waits for `go`; its process id on the host. Raises SandboxError."""
        numbers = " ".join(str(number) for number, _ in request.channels).encode()
        words = [os.fsencode(word) for word in (*request.argv, *request.env)]
        items = [os.fsencode(request.cwd), str(len(request.argv)).encode(), request.limits, numbers, *words]
        self._send(b"R", items, [*request.stdio, *(fd for _, fd in request.channels)])
        answer, _ = await self._receive()
        return int(answer[1])

    def go(self) -> None:
        """Let the command begin."""
        self._send(b"G", [], [])

    def sweep(self) -> None:
        """Kill every process inside the sandbox but its first."""
        self._send(b"K", [], [])

    async def finished(self) -> Finished:
        """Wait for the command's end. Raises SandboxError when the launcher itself failed."""
        words, _ = await self._receive()
        status, number, stage, cpu, _ = map(int, words[1:6])
        fault = (stage, number) if number else None
        return Finished(from_wait_status(status), fault, cpu / 1e6)

    async def close(self) -> None:
        """End the launcher. Idempotent."""
        self._control.close()
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.ended()
            process.close()

    def _send(self, kind: bytes, items: list[bytes], fds: list[int]) -> None:
        payload = memory_file(_joiner.pack(items))
        try:
            rights = array.array("i", [payload, *fds])
            self._control.sendmsg([kind], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except OSError as error:
            raise SandboxError(f"the launcher of the sandbox is gone: {error}") from error
        finally:
            os.close(payload)

    async def _receive(self) -> tuple[list[str], list[int]]:
        await anyio.wait_readable(self._control)
        try:
            body, fds, _, _ = socket.recv_fds(self._control, _CONTROL_BYTES, 64)
        except ConnectionError:
            body, fds = b"", []
        words = body.decode("utf-8", "replace").split()
        if not words:
            raise SandboxError("the launcher of the sandbox ended without a word")
        if words[0] == "error":
            raise SandboxError(f"the launcher of the sandbox failed: {' '.join(words[1:])}")
        return words, fds


class Forker:
    """The process that forks launchers. Ends when we end."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = (sys.executable, "-I", "-S", "-c", _PROGRAM)
            self._process = start(argv, env={}, stdin=theirs.fileno())

    def fork(self, control: socket.socket) -> None:
        """Make a launcher that listens on `control`. Raises BrokenPipeError when the process was killed."""
        rights = array.array("i", [control.fileno()])
        self._requests.sendmsg([b"F"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and self._process.alive

    def close(self) -> None:
        if self.owner == os.getpid():
            self._requests.close()
            self._process.close_now()


_current: list[Forker] = []


def _forker() -> Forker:
    """The one of this process; a new one after a fork or when it was killed."""
    if not _current or not _current[0].alive:
        for old in _current:
            old.close()
        _current[:] = [Forker()]
        atexit.register(_current[0].close)
    return _current[0]


def _send_seeds(fd: int, seeds: list[tuple[str, Path]]) -> None:
    try:
        _seed.send(fd, seeds)
    except BrokenPipeError:
        return  # the launcher says why
