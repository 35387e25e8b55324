"""One process in a sandbox of its own, and the host's end of its channel.

The room's standard input and output are one socket. Everything that arrives on it is metered here: what is longer than
a frame may be, or comes when it is not the room's turn, never reaches anybody."""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import dataclass, replace

import anyio

from securebench.errors import InfrastructureError, SandboxError
from securebench.sandboxes.base import Command, PythonProgram, Sandbox, SandboxResult, SandboxSpec
from securebench.verifiers.rooms.codec import MAX_FRAME, CodecError, Frames, frame

_CHUNK = 1 << 18
_LAST_SECONDS = 10.0


class RoomEnded(Exception):
    """The room's process is gone, or has closed its channel."""


class RoomSilent(Exception):
    """Nothing came in time."""


@dataclass(frozen=True, slots=True)
class RoomProgram:
    """A Python program that talks on its standard input and output."""

    name: str
    python: PythonProgram

    @property
    def command(self) -> Command:
        return Command(self.python.argv, python=self.python)


class Room:
    """A room. `live` runs it to its end, in a task of its own; the rest is for whoever talks with it."""

    def __init__(self, sandbox: Sandbox, spec: SandboxSpec, program: RoomProgram) -> None:
        """Raises SandboxError where this process has no descriptors left."""
        self.name = program.name
        self._sandbox, self._spec, self._program = sandbox, spec, program
        try:
            self._ours, self._theirs = socket.socketpair()
        except OSError as error:
            raise SandboxError(f"no channel for the {self.name}: {error.strerror}") from error
        self._ours.setblocking(False)
        self._line = Line(self._ours, Frames(MAX_FRAME + 1))
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self.result: SandboxResult | None = None
        self.error: InfrastructureError | None = None

    async def live(self) -> None:
        """Open the sandbox, run the program, and leave nothing. Its own faults are in `error`."""
        command = replace(self._program.command, channels={0: self._theirs, 1: self._theirs}, waits=True)
        try:
            with self._scope:
                async with self._sandbox.open(self._spec) as session:
                    self.result = await session.run(command)
        except InfrastructureError as error:
            self.error = error
        finally:
            self._theirs.close()
            self._ended.set()

    async def send(self, payload: bytes, until: float) -> None:
        """Raises RoomEnded, RoomSilent when it does not take the bytes before `until`."""
        data = frame(payload)
        try:
            sent = self._ours.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            raise RoomEnded from None
        if sent < len(data):
            await self._send_rest(memoryview(data)[sent:], until)

    async def _send_rest(self, view: memoryview, until: float) -> None:
        with anyio.move_on_at(_on_clock(until)):
            while view:
                await anyio.wait_writable(self._ours)
                try:
                    view = view[self._ours.send(view) :]
                except BlockingIOError:
                    continue
                except OSError:
                    raise RoomEnded from None
            return
        raise RoomSilent

    async def receive(self, until: float) -> bytes:
        """The next message. Raises RoomEnded, RoomSilent, and CodecError for one that is too long."""
        while (message := self._line.next()) is None:
            if not await self._line.heard(until):
                raise RoomSilent
        return message

    def has_spoken(self) -> bool:
        """Whether bytes are there that nobody asked for."""
        return self._line.has_bytes()

    async def leave(self, patience: float) -> None:
        """Hang up, give it a moment to end by itself, then end it. Idempotent."""
        self._line.close()
        with anyio.move_on_after(patience):
            await self._ended.wait()
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    def forget(self) -> None:
        """Close its channel, where it has not begun to live and never will."""
        self._line.close()
        self._theirs.close()

    async def wait_ended(self) -> bool:
        """Whether it ends by itself within a moment; then `result` or `error` says how."""
        with anyio.move_on_after(_LAST_SECONDS):
            await self._ended.wait()
        return self._ended.is_set()


class Line:
    """What arrives from a room, listened to all the time: waiting for it anew for every message would cost more than
    all the rest. Bytes are taken in as they come, at most a message and a piece ahead of who reads them."""

    def __init__(self, channel: socket.socket, frames: Frames) -> None:
        self._channel, self._frames = channel, frames
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[bool] | None = None
        self._listening = False
        self._over: Exception | None = None  # what is to be raised when all that came before it was read

    def next(self) -> bytes | None:
        """The next message, None while there is none. Raises RoomEnded, CodecError."""
        message = self._frames.next()
        if message is None and self._over is not None:
            raise self._over
        return message

    async def heard(self, until: float) -> bool:
        """Wait for more; false when none came before `until`."""
        self._listen()
        self._waiting = self._loop.create_future()
        timer = self._loop.call_later(max(0.0, until - time.monotonic()), self._wake, False)
        try:
            return await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def has_bytes(self) -> bool:
        """Whether there are bytes, of a message or of a part of one."""
        self._take()
        return bool(self._frames.buffer)

    def close(self) -> None:
        """Hang up. Idempotent."""
        self._rest()
        self._over = RoomEnded()
        self._channel.close()

    def _listen(self) -> None:
        if not self._listening:
            self._loop.add_reader(self._channel.fileno(), self._arrived)
            self._listening = True

    def _rest(self) -> None:
        if self._listening:
            self._loop.remove_reader(self._channel.fileno())
            self._listening = False

    def _arrived(self) -> None:
        self._take()
        if len(self._frames.buffer) > _CHUNK and self._waiting is None:
            self._rest()  # nobody asked for that much
        self._wake(True)

    def _wake(self, heard: bool) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(heard)

    def _take(self) -> None:
        if self._over is not None:
            return
        try:
            data = self._channel.recv(_CHUNK)
            if data:
                self._frames.add(data)
                return
            self._over = RoomEnded()
        except BlockingIOError:
            return
        except CodecError as error:
            self._over = error
        except OSError:
            self._over = RoomEnded()
        self._rest()


def _on_clock(until: float) -> float:
    """A moment of `time.monotonic` on the event loop's clock."""
    return anyio.current_time() + until - time.monotonic()
