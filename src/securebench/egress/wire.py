"""A connected socket, read and written without a buffer of our own: what is not sent on is not read."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
from anyio.lowlevel import checkpoint

CHUNK = 64 * 1024
_LINGER_BYTES = 256 * 1024
_LINGER_SECONDS = 2.0


class Wire:
    """Takes the socket over. Reading and writing raise OSError when the other side is gone."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock

    async def receive(self, size: int = CHUNK) -> bytes:
        """Some bytes; none at the end of the stream."""
        await checkpoint()  # two fast sides must not keep everybody else waiting
        while True:
            try:
                return self._sock.recv(size)
            except BlockingIOError:
                await anyio.wait_readable(self._sock)

    async def send(self, data: bytes) -> None:
        """All of `data`, as fast as the other side takes it."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._sock)

    def finish(self) -> None:
        """Nothing more will be sent; the other direction stays open."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    async def linger(self) -> None:
        """Finish, and let the other side read what was sent: closing with unread bytes would throw it away."""
        self.finish()
        taken = 0
        with anyio.move_on_after(_LINGER_SECONDS), suppress(OSError):
            while taken < _LINGER_BYTES and (data := await self.receive()):
                taken += len(data)

    def close(self) -> None:
        self._sock.close()


Dial = Callable[[str, int], Awaitable[Wire]]
"""A connection to a numeric address and port. Raises OSError."""


async def dial(address: str, port: int) -> Wire:
    """A connection to one numeric address. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        with suppress(BlockingIOError):
            sock.connect((address, port))
        await anyio.wait_writable(sock)
        if error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, "cannot connect")
    except BaseException:
        sock.close()
        raise
    return Wire(sock)
