"""Bubblewrap, held at a gate until the host has done its part.

Bubblewrap reports the first process of the new PID namespace on a status descriptor, then builds the mounts, then
reads one byte from `--block-fd`, then reads the filter from `--seccomp`. Both are ours:

- the byte is in the pipe before we start. The pipe has room for one packet, so it becomes writable again when
  bubblewrap has read it: that is how we learn, without polling, that everything is set up;
- the filter is the real gate. Until we send it nothing runs; if we die, bubblewrap reads an empty filter, which the
  kernel refuses, and it ends. There is no way through the gate without a filter.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import termios
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache

import anyio

from securebench._leftovers import owner_mark
from securebench._proc import Capture, Handle, Pipe
from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap.args import Descriptors
from securebench.sandboxes._launch.client import Program, memory_file, spawn

_SETUP_SECONDS = 60.0
_END_SECONDS = 30.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CHILD = re.compile(rb'"child-pid": (\d+)')
_FIRST_NUMBER = 100  # for what bubblewrap inherits; low numbers stay free for it, however few it may have
_EXIT = re.compile(rb'"exit-code": (\d+)')


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: bubblewrap as which user and under which limits, its arguments, the command and its streams.

    `reaped` asks the kernel to reap what is left to the first process of the sandbox."""

    bwrap: str
    uid: int | None
    limits: bytes
    arguments: Callable[[Descriptors, Callable[[bytes], int]], list[str]]
    command: tuple[str, ...]
    stdin: int
    stdout: int
    reaped: bool = False
    groups: tuple[int, ...] = ()


class Held:
    """A sandbox being set up, in which nothing runs before `release`. `close` ends it, whatever became of it."""

    def __init__(self, monitor: Handle, status: Pipe, arrived: Pipe, gate: Pipe, stderr: int) -> None:
        self.monitor = monitor
        self._status = status
        self._arrived = arrived
        self._gate = gate
        self._stderr = stderr
        self._report = b""
        self._init: Handle | None = None
        self._closed = False

    @property
    def init(self) -> Handle:
        """The first process of the sandbox's PID namespace: when it ends, everything inside has ended."""
        if self._init is None:
            raise SandboxError("bubblewrap did not say which process it started")
        return self._init

    @property
    def awake(self) -> bool:
        """Whether bubblewrap and the first process inside live."""
        return self._init is not None and self._init.awake and self.monitor.awake

    async def arrive(self) -> None:
        """Wait until bubblewrap has read the byte. Raises SandboxError with bubblewrap's own words."""
        signal = self._arrived.write
        with anyio.move_on_after(_SETUP_SECONDS):
            await anyio.wait_writable(signal)
            pending = struct.unpack("i", fcntl.ioctl(signal, termios.FIONREAD, b"\0" * 4))[0]
            if pending:
                await self.monitor.ended()
                raise SandboxError(f"bubblewrap could not set up the sandbox: {self._complaint()}")
            self._read_report()
            if found := _CHILD.search(self._report):
                with suppress(ProcessLookupError):
                    self._init = Handle(int(found[1]))
                    self._arrived.close()
                    return
        raise SandboxError(f"bubblewrap did not get ready: {self._complaint()}")

    def release(self, program: bytes) -> None:
        """Hand over the filter, which opens the gate. Raises SandboxError when nobody waits there any more."""
        try:
            os.write(self._gate.write, program)  # less than a page, which every pipe holds
        except BrokenPipeError as error:
            raise SandboxError(f"bubblewrap ended at the gate: {self._complaint()}") from error
        self._gate.close_write()

    def exit_code(self) -> int | None:
        """After the end: the command's code as bubblewrap tells it, None when the command was never executed."""
        self._read_report()
        found = _EXIT.search(self._report)
        return int(found[1]) if found else None

    def end(self) -> None:
        """Kill everything inside, without waiting for it."""
        self._gate.close()
        if self._init is not None:
            self._init.kill()

    async def close(self) -> None:
        """End every process of the sandbox and bubblewrap itself. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._gate.close()
        self._arrived.close()
        try:
            with anyio.move_on_after(_END_SECONDS, shield=True) as scope:
                if self._init is None:
                    await self._find_child()
                if self._init is not None:
                    self._init.kill()
                self.monitor.kill()
                await self.monitor.ended()
                if self._init is not None:
                    await self._init.ended()
            if scope.cancelled_caught:
                raise SandboxError(f"the processes of a sandbox did not end within {_END_SECONDS:.0f} s")
        finally:
            if self._init is not None:
                self._init.reap()
                self._init.close()
                self._init = None
            self.monitor.close()
            self._status.close()

    async def _find_child(self) -> None:
        """Closed before the gate: bubblewrap's child waits for bubblewrap and would wait for ever without it."""
        for child in await self.monitor.children():
            with suppress(ProcessLookupError):
                self._init = Handle(child)

    def _complaint(self) -> str:
        capture = Capture(keep=4096, flood=4096)
        capture.finish(self._stderr)
        return bytes(capture.data).decode("utf-8", "replace").strip() or "it gave no reason"

    def _read_report(self) -> None:
        capture = Capture(keep=65536, flood=65536)
        capture.finish(self._status.read)
        self._report += bytes(capture.data)


def hold(launch: Launch, stderr: Pipe) -> Held:
    """Start bubblewrap; it is at the gate after `Held.arrive`. Raises SandboxError when it cannot be started.

    `stderr` becomes bubblewrap's and later the command's; what it says before the gate is bubblewrap's alone.
    """
    with ExitStack() as ours:
        made: list[Pipe] = []
        try:
            for make in (_packet_pipe, Pipe.for_reading, Pipe.for_writing):
                made.append(make())
        except OSError:
            for pipe in made:
                pipe.close()
            raise
        arrived, status, gate = made
        ours.callback(arrived.close_read)
        ours.callback(status.close_write)
        ours.callback(gate.close_read)
        inherited: list[int] = []

        def inherit(fd: int) -> int:
            inherited.append(fd)
            return _FIRST_NUMBER + len(inherited) - 1

        def inherit_new(fd: int) -> int:
            ours.callback(os.close, fd)
            return inherit(fd)

        fds = Descriptors(inherit(status.write), inherit(arrived.read), inherit(gate.read))
        arguments = launch.arguments(fds, lambda data: inherit_new(_constant_file(data)))
        # Passed through a descriptor: a command line can be read by every user of the host.
        words = "\0".join(arguments) + "\0"
        args = inherit_new(memory_file(words.encode("utf-8", "surrogateescape")))
        streams = [(0, launch.stdin), (1, launch.stdout), (2, stderr.write)]
        try:
            monitor = spawn(
                Program(
                    argv=(launch.bwrap, "--args", str(args), "--", *launch.command),
                    env=owner_mark(),
                    descriptors=[*streams, *((_FIRST_NUMBER + at, fd) for at, fd in enumerate(inherited))],
                    uid=-1 if launch.uid is None else launch.uid,
                    limits=launch.limits,
                    ignored=(signal.SIGCHLD,) if launch.reaped else (),
                    groups=launch.groups,
                )
            )
        except BaseException:
            for pipe in (status, arrived, gate):
                pipe.close()
            raise
    stderr.close_write()
    return Held(monitor, status, arrived, gate, stderr.read)


def _packet_pipe() -> Pipe:
    """A pipe that holds exactly one packet, and holds it already."""
    pipe = Pipe(*os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK | os.O_DIRECT))
    fcntl.fcntl(pipe.write, fcntl.F_SETPIPE_SZ, _PAGE)
    # bubblewrap must block on an empty pipe, not fail
    reader = os.open(f"/proc/self/fd/{pipe.read}", os.O_RDONLY | os.O_CLOEXEC)
    pipe.close_read()
    os.write(pipe.write, b"1")
    return Pipe(reader, pipe.write)


def _constant_file(data: bytes) -> int:
    """`memory_file` for what many sandboxes read: the bytes are kept, each gets a descriptor of its own."""
    return os.open(f"/proc/self/fd/{_kept(data)}", os.O_RDONLY | os.O_CLOEXEC)


@cache
def _kept(data: bytes) -> int:
    return memory_file(data)
