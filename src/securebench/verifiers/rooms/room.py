"""One process in a sandbox of its own, and the host's end of its channel.

The room's standard input and output are one socket. Everything that arrives on it is metered here: what is longer than
a frame may be, or comes when it is not the room's turn, never reaches anybody."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

import anyio

from securebench.errors import InfrastructureError
from securebench.sandboxes.base import Command, Sandbox, SandboxResult, SandboxSpec
from securebench.verifiers.rooms.codec import MAX_FRAME, CodecError, Frames, frame

PYTHON = ("python3", "-I", "-S", "-B", "-c")
_CHUNK = 1 << 18
_LAST_SECONDS = 2.0


class RoomEnded(Exception):
    """The room's process is gone, or has closed its channel."""


class RoomSilent(Exception):
    """Nothing came in time."""


@dataclass(frozen=True, slots=True)
class RoomProgram:
    """A Python program that talks on its standard input and output."""

    name: str
    text: str

    @property
    def argv(self) -> tuple[str, ...]:
        return (*PYTHON, self.text, "0", "1")


class Room:
    """A room. `live` runs it to its end, in a task of its own; the rest is for whoever talks with it."""

    def __init__(self, sandbox: Sandbox, spec: SandboxSpec, program: RoomProgram) -> None:
        self.name = program.name
        self._sandbox, self._spec, self._program = sandbox, spec, program
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._frames = Frames(MAX_FRAME + 1)
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self.result: SandboxResult | None = None
        self.error: InfrastructureError | None = None

    async def live(self) -> None:
        """Open the sandbox, run the program, and leave nothing. Its own faults are in `error`."""
        command = Command(self._program.argv, channels={0: self._theirs, 1: self._theirs})
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
        view = memoryview(frame(payload))
        with anyio.move_on_at(_on_clock(until)):
            while view:
                try:
                    view = view[self._ours.send(view) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._ours)
                except OSError:
                    raise RoomEnded from None
            return
        raise RoomSilent

    async def receive(self, until: float) -> bytes:
        """The next message. Raises RoomEnded, RoomSilent, and CodecError for one that is too long."""
        with anyio.move_on_at(_on_clock(until)):
            while (message := self._frames.next()) is None:
                await anyio.wait_readable(self._ours)
                self._take()
            return message
        raise RoomSilent

    def has_spoken(self) -> bool:
        """Whether bytes are there that nobody asked for."""
        try:
            self._take()
        except (RoomEnded, CodecError):
            return bool(self._frames.buffer)
        return bool(self._frames.buffer)

    async def leave(self, patience: float) -> None:
        """Hang up, give it a moment to end by itself, then end it. Idempotent."""
        self._ours.close()
        with anyio.move_on_after(patience):
            await self._ended.wait()
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    async def wait_ended(self) -> bool:
        """Whether it ends by itself within a moment; then `result` or `error` says how."""
        with anyio.move_on_after(_LAST_SECONDS):
            await self._ended.wait()
        return self._ended.is_set()

    def _take(self) -> None:
        try:
            data = self._ours.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            raise RoomEnded from None
        if not data:
            raise RoomEnded
        self._frames.add(data)


def _on_clock(until: float) -> float:
    """A moment of `time.monotonic` on the event loop's clock."""
    return anyio.current_time() + until - time.monotonic()
