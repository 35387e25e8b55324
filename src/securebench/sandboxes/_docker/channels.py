"""Channels 0 and 1 of a command in a container: bytes between a caller's sockets and the engine's client.

A socket cannot pass through a daemon, but standard input and output can. The client reads and writes pipes of ours
and not the sockets themselves, because it must neither die nor hang by what a caller does with its end:

- a caller that sends no more gives the command the end of its input;
- a caller that hangs up makes the command's next output a SIGPIPE, as for any program; what it still says is dropped;
- a caller that does not read holds the command up until its time is over, and nobody for longer.

The other way, a caller sees the end of its input when the command is gone, not before: a container's output cannot be
ended while the command lives.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

import anyio
import anyio.lowlevel

from securebench._proc import CHUNK, Pipe

INPUT, OUTPUT = 0, 1


class Relay:
    """The channels of one command. It has their pipes from the start, and owns the sockets from `attach` on; `close`
    gives them back to nobody."""

    def __init__(self, numbers: Collection[int]) -> None:
        self._sockets: dict[int, socket.socket] = {}
        self._on_hangup: Callable[[], None] = lambda: None
        self._input = Pipe.for_writing() if INPUT in numbers else None
        self._output = Pipe.for_reading() if OUTPUT in numbers else None
        self._delivering = anyio.CancelScope()
        self._delivered = anyio.Event()
        if self._output is None:
            self._delivered.set()

    def attach(self, channels: Mapping[int, socket.socket], on_hangup: Callable[[], None]) -> None:
        """The sockets to carry for: one for each number there is a pipe for."""
        self._sockets, self._on_hangup = dict(channels), on_hangup
        for channel in self._sockets.values():
            channel.setblocking(False)

    def inside(self, stdin: int, stdout: int) -> tuple[int, int]:
        """What the client gets as input and output: a pipe for each channel, else what was given."""
        return (
            stdin if self._input is None else self._input.read,
            stdout if self._output is None else self._output.write,
        )

    def close_inside(self) -> None:
        """Close what the client has by now."""
        if self._input is not None:
            self._input.close_read()
        if self._output is not None:
            self._output.close_write()

    async def carry(self) -> None:
        """Carry bytes both ways until cancelled."""
        async with anyio.create_task_group() as tasks:
            if self._input is not None:
                tasks.start_soon(self._carry_in, self._sockets[INPUT], self._input)
            if self._output is not None:
                tasks.start_soon(self._carry_out, self._output.read, self._sockets[OUTPUT])

    async def delivered(self) -> None:
        """Wait until all that the client wrote has been sent or dropped. It ends only after the client has."""
        await self._delivered.wait()

    def drop(self) -> None:
        """Deliver no more; what the client still writes is read and forgotten."""
        self._delivering.cancel()

    def close(self) -> None:
        """Close everything. No task may be in `carry` any more."""
        for channel in self._sockets.values():
            channel.close()
        for pipe in (self._input, self._output):
            if pipe is not None:
                pipe.close()

    async def _carry_in(self, channel: socket.socket, pipe: Pipe) -> None:
        while chunk := await _receive(channel):
            if not await _write(pipe.write, chunk):
                return  # the client is gone
            await anyio.lowlevel.checkpoint()  # a fast caller must not keep the event loop to itself
        pipe.close_write()

    async def _carry_out(self, source: int, channel: socket.socket) -> None:
        try:
            with self._delivering:
                while chunk := await _read(source):
                    await _send(channel, chunk)
                    await anyio.lowlevel.checkpoint()
        except ConnectionError:
            self._on_hangup()
        while await _read(source):
            await anyio.lowlevel.checkpoint()  # nothing is kept, but the client could not end if nobody read
        self._delivered.set()


async def _receive(channel: socket.socket) -> bytes:
    """What the caller sent; nothing when it sends no more, or hung up."""
    while True:
        try:
            return channel.recv(CHUNK)
        except BlockingIOError:
            await anyio.wait_readable(channel)
        except ConnectionError:
            return b""


async def _send(channel: socket.socket, data: bytes) -> None:
    """Raises ConnectionError when the caller hung up."""
    view = memoryview(data)
    while view:
        try:
            view = view[channel.send(view, socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            await anyio.wait_writable(channel)


async def _read(source: int) -> bytes:
    while True:
        with suppress(BlockingIOError):
            return os.read(source, CHUNK)
        await anyio.wait_readable(source)


async def _write(target: int, data: bytes) -> bool:
    """Whether there was a reader for all of it."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            await anyio.wait_writable(target)
        except BrokenPipeError:
            return False
    return True
