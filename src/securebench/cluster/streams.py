"""Connections carried as frames of an attempt's conversation, many at a time.

Neither side sends more than the other one said it has room for, and what arrives is put aside at once: a connection
that nobody reads from keeps what is its own, and holds up neither the others nor the link.

    OPEN    node to head   a connection was accepted in the agent's sandbox; numbers only rise
    BYTES   both ways      at most as many as there is room for
    TAKEN   both ways      so much room is there again
    END     node to head   the agent sends no more
    CLOSE   both ways      nobody is there any more; the head always says it, last of all"""

from __future__ import annotations

import socket
import struct

import anyio

from securebench._sockets import receive, send
from securebench.cluster import frames
from securebench.cluster.talk import Talk
from securebench.errors import IntegrityError

WINDOW = 256 * 1024  # bytes of a connection that are under way or wait, in each direction
PIECE = 64 * 1024
_NUMBER = struct.Struct("<I")


def stream_of(data: bytes) -> tuple[int, bytes]:
    """The number of the connection that a frame is about, and the rest. Raises IntegrityError."""
    if len(data) < _NUMBER.size:
        raise IntegrityError("a frame about no connection")
    return _NUMBER.unpack_from(data)[0], data[_NUMBER.size :]


class Stream:
    """One connection: a socket here, frames there."""

    def __init__(self, number: int, talk: Talk) -> None:
        self.number = number
        self._talk = talk
        self._room = WINDOW  # at the other side
        self._arrived = bytearray()
        self._owed = 0  # came, and was not yet said to be taken
        self._ended = self._closed = False
        self._bell = anyio.Event()

    @property
    def closed(self) -> bool:
        """Whether the other side said that nobody is there any more."""
        return self._closed

    def heard(self, kind: int, data: bytes) -> None:
        """Raises IntegrityError for more than there is room for."""
        match kind:
            case frames.BYTES:
                self._arrived += data
                self._owed += len(data)
            case frames.TAKEN:
                self._room += stream_of(data)[0]
            case frames.END:
                self._ended = True
            case frames.CLOSE:
                self._ended = self._closed = True
        if self._owed > WINDOW or self._room > WINDOW:
            raise IntegrityError("a connection carries more than there is room for")
        self._bell.set()
        self._bell = anyio.Event()

    async def say(self, kind: int, data: bytes = b"") -> None:
        await self._talk.say(kind, _NUMBER.pack(self.number) + data)

    async def outward(self, connection: socket.socket) -> None:
        """From the socket to the other side, until nothing more comes. Raises OSError, LinkLost."""
        while True:
            while not self._room:
                await self._bell.wait()
            data = await receive(connection, min(self._room, PIECE))
            if not data:
                return
            self._room -= len(data)
            await self.say(frames.BYTES, data)

    async def inward(self, connection: socket.socket) -> None:
        """From the other side to the socket, until nothing more comes. Raises OSError, LinkLost."""
        taken = 0
        while await self._more():
            data = bytes(self._arrived)
            self._arrived.clear()
            await send(connection, data)
            taken += len(data)
            if taken >= WINDOW // 4:
                self._owed -= taken
                await self.say(frames.TAKEN, _NUMBER.pack(taken))
                taken = 0

    async def until_closed(self) -> None:
        """What still arrives is for nobody."""
        while not self._closed:
            self._arrived.clear()
            await self._bell.wait()

    async def _more(self) -> bool:
        while not self._arrived:
            if self._ended:
                return False
            await self._bell.wait()
        return True
