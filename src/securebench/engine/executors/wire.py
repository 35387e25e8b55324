"""Frames between the engine and its processes: a length, a kind, the number of an order, and bytes. Both ends are ours.

To the process: `SETUP` once, then `ORDER` and `CANCEL`. Back: `READY` once, then for each order one of `RECORD`,
`CANCELLED` or `FAULT`; a `FAULT` with the number 0 is about the setup. When either end closes, the other one ends."""

from __future__ import annotations

import socket
import struct
from typing import Any, NamedTuple

import anyio

from securebench import _json
from securebench.errors import (
    ConfigError,
    InfrastructureError,
    IntegrityError,
    PackError,
    SandboxError,
    SandboxUnavailable,
    SecureBenchError,
    StoreError,
)

SETUP, READY, ORDER, CANCEL, RECORD, CANCELLED, FAULT = range(1, 8)
MAX_FRAME = 256 * 2**20
_HEAD = struct.Struct("<IBI")
_CHUNK = 256 * 1024
_LOOK_AGAIN = 0.2
_KINDS = {kind.__name__: kind for kind in (ConfigError, PackError, IntegrityError, SandboxError, StoreError)}


class FrameTooLarge(InfrastructureError):
    """What was to be sent would not be taken for a frame."""


class Frame(NamedTuple):
    kind: int
    number: int
    data: bytes


def encode_frame(kind: int, number: int = 0, data: bytes = b"") -> bytes:
    """Raises FrameTooLarge."""
    if len(data) > MAX_FRAME:
        raise FrameTooLarge(f"{len(data)} bytes were to be sent at once; at most {MAX_FRAME} are")
    return _HEAD.pack(len(data), kind, number) + data


class Frames:
    """Bytes as they come, and the whole frames that are in them."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> None:
        self._received += data

    def next(self) -> Frame | None:
        """The next whole frame. Raises IntegrityError for what is no frame."""
        received = self._received
        if len(received) < _HEAD.size:
            return None
        size, kind, number = _HEAD.unpack_from(received)
        if size > MAX_FRAME:
            raise IntegrityError("a process of ours was sent what is no frame")
        end = _HEAD.size + size
        if len(received) < end:
            return None
        data = bytes(memoryview(received)[_HEAD.size : end])
        del received[:end]
        return Frame(kind, number, data)


class Connection:
    """One end. For one reader and any number of writers, in one event loop."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._frames = Frames()
        self._sending = anyio.Lock()

    async def receive(self) -> Frame | None:
        """The next frame; None when the other end is gone. Raises IntegrityError for what is no frame."""
        while (frame := self._frames.next()) is None:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                try:
                    await anyio.wait_readable(self._socket)
                except anyio.ClosedResourceError:
                    return None
                continue
            except OSError:
                return None
            if not data:
                return None
            self._frames.feed(data)
        return frame

    async def gone(self) -> None:
        """Returns when the other end is gone and nothing that it sent waits to be read."""
        while True:
            await anyio.wait_readable(self._socket)
            try:
                if not self._socket.recv(1, socket.MSG_PEEK):
                    return
            except BlockingIOError:
                continue
            except OSError:
                return
            await anyio.sleep(_LOOK_AGAIN)

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None:
        """Once it has begun, a frame goes out whole, also when the sender is cancelled. Raises ConnectionError,
        FrameTooLarge."""
        frame = memoryview(encode_frame(kind, number, data))
        if self._sending.locked() or (frame := frame[self._send(frame) :]):
            with anyio.CancelScope(shield=True):
                async with self._sending:
                    while frame:
                        frame = frame[self._send(frame) :]
                        if frame:
                            await self._writable()

    def close(self) -> None:
        """Whoever waits to send or to receive learns of it."""
        if self._socket.fileno() >= 0:
            anyio.notify_closing(self._socket)
        self._socket.close()

    async def _writable(self) -> None:
        try:
            await anyio.wait_writable(self._socket)
        except anyio.ClosedResourceError as error:
            raise ConnectionError("this end was closed") from error

    def _send(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except ConnectionError:
            raise
        except OSError as error:  # this end was closed
            raise ConnectionError(error.errno, error.strerror) from error


def encode_fault(error: SecureBenchError) -> bytes:
    """An error as bytes: whose fault it is, and the words."""
    remedy = error.remedy if isinstance(error, SandboxUnavailable) else None
    message = str(error) if remedy is None else str(error).removesuffix(f"\n{remedy}")
    kind = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS), "")
    return _json.dumps({"kind": kind, "message": message, "remedy": remedy}).encode()


def decode_fault(data: bytes) -> SecureBenchError:
    """The error that `encode_fault` wrote down. Raises IntegrityError for what is none."""
    try:
        value: Any = _json.loads(data)
        kind, message, remedy = str(value["kind"]), str(value["message"]), value["remedy"]
    except (_json.JsonError, KeyError, TypeError) as error:
        raise IntegrityError(f"not a fault of ours: {type(error).__name__}: {error}") from error
    if remedy is not None:
        return SandboxUnavailable(message, str(remedy))
    return _KINDS.get(kind, InfrastructureError)(message)
