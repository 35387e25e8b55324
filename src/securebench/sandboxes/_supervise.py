"""Watches one command from outside: its streams, its deadline, and what it uses.

The same for every way a command can be started: whoever started it gives two functions, one that waits for its end
and one that kills it, and learns which limit, if any, made us kill it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from securebench._proc import CHUNK, Capture, Pipe, feed
from securebench._tasks import side_tasks
from securebench.errors import SandboxError
from securebench.sandboxes.base import Command, Limits, Outcome, Output

_SAMPLE_SECONDS = 0.05
_GRACE_SECONDS = 30.0

T = TypeVar("T")


@dataclass(slots=True)
class Streams:
    """The three standard streams of a command; the command's ends are closed once it has them.

    `stdin` is None for an empty input and for a channel 0, `stdout` is None for a channel 1: `given` has those."""

    stdin: Pipe | None
    stdout: Pipe | None
    stderr: Pipe
    pending: bytes
    given: dict[int, socket.socket]

    @classmethod
    def for_command(cls, command: Command) -> Streams:
        """Pipes for this command. What its pipe takes of the input is in it already, an empty one needs none."""
        given = {number: command.channels[number] for number in (0, 1) if number in command.channels}
        for channel in given.values():
            channel.setblocking(True)  # a program expects that of its standard streams
        stdin, pending = None, b""
        if command.stdin and 0 not in given:
            stdin, pending = Pipe.for_writing(), command.stdin
            pending = pending[os.write(stdin.write, pending[:CHUNK]) :]
            if not pending:
                stdin.close_write()
        stdout: Pipe | None = None
        try:
            stdout = None if 1 in given else Pipe.for_reading()
            return cls(stdin, stdout, Pipe.for_reading(), pending, given)
        except OSError:
            for pipe in (stdin, stdout):
                if pipe is not None:
                    pipe.close()
            raise

    @property
    def inside(self) -> tuple[int, int, int]:
        """The ends the command gets; `subprocess.DEVNULL` for no input."""
        read = subprocess.DEVNULL if self.stdin is None else self.stdin.read
        write = subprocess.DEVNULL if self.stdout is None else self.stdout.write
        streams = [read, write, self.stderr.write]
        for number, channel in self.given.items():
            streams[number] = channel.fileno()
        return streams[0], streams[1], streams[2]

    def close_inside(self) -> None:
        self.stderr.close_write()
        if self.stdout is not None:
            self.stdout.close_write()
        if self.stdin is not None:
            self.stdin.close_read()
        for channel in self.given.values():
            channel.close()

    def close(self) -> None:
        self.close_inside()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()


@dataclass(slots=True)
class Supervisor(Generic[T]):
    """One run of `watch`. `over` samples usage and names the limit that was crossed, if any."""

    command: Command
    limits: Limits
    streams: Streams
    wait: Callable[[], Awaitable[T]]
    kill: Callable[[], None]
    over: Callable[[], Outcome | None] | None = None
    killed: Outcome | None = None
    wall_seconds: float = 0.0
    stdout: Capture = field(init=False)
    stderr: Capture = field(init=False)

    def __post_init__(self) -> None:
        self.stdout, self.stderr = self._capture("stdout"), self._capture("stderr")

    async def watch(self) -> T:
        """What `wait` returned. The streams hold all that was written before that."""
        ended = await self._listen()
        # Nothing may be lost that was written before the end; what background processes write later is not waited for.
        if self.streams.stdout is not None:
            self.stdout.finish(self.streams.stdout.read)
        self.stderr.finish(self.streams.stderr.read)
        return ended

    async def _listen(self) -> T:
        errors: list[Exception] = []
        with ExitStack() as stack:
            scope = stack.enter_context(anyio.CancelScope())

            def failed(error: Exception) -> None:
                errors.append(error)
                scope.cancel()

            if self.streams.stdout is not None:
                stack.enter_context(self.stdout.listening(self.streams.stdout.read, failed))
            stack.enter_context(self.stderr.listening(self.streams.stderr.read, failed))
            if not self.streams.pending and self.over is None:
                return await self._until_end()
            async with side_tasks() as tasks:
                self._start_helpers(tasks)
                return await self._until_end()
        raise errors[0]

    async def _until_end(self) -> T:
        began = time.monotonic()
        seconds = self.limits.wall_seconds
        if self.command.wall_seconds is not None:
            seconds = min(seconds, self.command.wall_seconds)
        try:
            with anyio.move_on_after(seconds):
                return await self.wait()
            self.end(Outcome.TIMEOUT)
            with anyio.move_on_after(_GRACE_SECONDS):
                return await self.wait()
            raise SandboxError(f"a killed command did not end within {_GRACE_SECONDS:.0f} s")
        finally:
            self.wall_seconds = time.monotonic() - began

    def end(self, reason: Outcome) -> None:
        """Kill the command; the first reason is the one that counts."""
        if self.killed is None:
            self.killed = reason
            self.kill()

    def outputs(self) -> tuple[Output, Output]:
        out, err = self.stdout, self.stderr
        return Output(bytes(out.data), out.total), Output(bytes(err.data), err.total)

    def _capture(self, name: str) -> Capture:
        on_output = self.command.on_output
        keep = self.limits.output
        return Capture(
            keep=keep,
            flood=2 * keep,
            on_bytes=None if on_output is None else lambda data: on_output(name, data),
            on_flood=lambda: self.end(Outcome.OUTPUT_LIMIT),
        )

    def _start_helpers(self, tasks: TaskGroup) -> None:
        if self.streams.pending:
            tasks.start_soon(self._feed)
        if self.over is not None:
            tasks.start_soon(self._sample)

    async def _feed(self) -> None:
        assert self.streams.stdin is not None  # noqa: S101  (pending input implies a pipe)
        await feed(self.streams.stdin.write, self.streams.pending)
        self.streams.stdin.close_write()

    async def _sample(self) -> None:
        assert self.over is not None  # noqa: S101
        while True:
            await anyio.sleep(_SAMPLE_SECONDS)
            if (reason := self.over()) is not None:
                self.end(reason)
                return
