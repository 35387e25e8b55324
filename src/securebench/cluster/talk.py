"""One attempt's side of a conversation: its frames in order, and contents shipped either way."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import BinaryIO, cast

import anyio
import anyio.to_thread

from securebench import _json
from securebench.cluster.frames import ASIDE, NEED, PIECE, Link
from securebench.cluster.shipping import PIECE as PIECE_BYTES
from securebench.cluster.shipping import TOO_MUCH, Contents, Item, items_from, missing, sent_as, shipment
from securebench.engine.executors.wire import Frame
from securebench.errors import InfrastructureError, IntegrityError

_PIECE_SECONDS = 600.0
_WAITING = 64  # frames of an attempt that wait to be read before the whole link waits


class LinkLost(InfrastructureError):
    """The other end is gone, and with it what it was at."""


class Talk:
    """What is said about one attempt. Raises LinkLost when the other end is gone."""

    def __init__(self, link: Link, number: int, contents: Contents) -> None:
        self.number = number
        self._link = link
        self._contents = contents
        self.aside: Callable[[Frame], None] | None = None  # for what must not wait
        self._give, self._take = anyio.create_memory_object_stream[Frame](_WAITING)

    async def heard(self, frame: Frame) -> None:
        """A frame came for it. Waits while too many do; what comes when nobody listens any more is dropped."""
        if frame.kind in ASIDE:
            if self.aside is not None:
                self.aside(frame)
            return
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._give.send(frame)

    def end(self) -> None:
        """No frame will come any more."""
        self._give.close()

    def close(self) -> None:
        """Nobody listens any more: what still comes holds up nothing."""
        self._give.close()
        self._take.close()

    async def say(self, kind: int, data: bytes = b"") -> None:
        try:
            await self._link.send(kind, self.number, data)
        except ConnectionError:
            raise LinkLost("the connection was lost") from None

    async def hear(self) -> Frame:
        try:
            return await self._take.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise LinkLost("the connection was lost") from None

    async def fetch(self, items: Iterable[Item], *, always: bool = False, at_most: int | None = None) -> None:
        """Ask for what is missing here and keep it; `always` asks even if that is nothing. Raises IntegrityError for
        anything else, and as soon as it is more than `at_most` bytes in all."""
        listed = tuple(items)
        lacking = await anyio.to_thread.run_sync(missing, self._contents, listed) if listed else []
        if lacking or always:
            await self.say(NEED, _json.dumps([list(item) for item in lacking]).encode())
        if not lacking:
            return
        left = math.inf if at_most is None else sent_as(at_most, len(lacking))
        with self._contents.spool() as file:
            while (frame := await self._next_piece(at_most is not None)).data:
                if frame.kind != PIECE:
                    raise IntegrityError("something else came where contents were asked for")
                if (left := left - len(frame.data)) < 0:
                    raise IntegrityError(TOO_MUCH)
                file.write(frame.data)
            file.seek(0)
            bound = math.inf if at_most is None else at_most
            await anyio.to_thread.run_sync(self._contents.take, cast(BinaryIO, file), lacking, bound)

    async def _next_piece(self, hurry: bool) -> Frame:
        """Others may wait for the place in which this is taken in."""
        with anyio.move_on_after(_PIECE_SECONDS if hurry else None):
            return await self.hear()
        raise IntegrityError(f"contents that were promised have not come for {_PIECE_SECONDS:.0f} s")

    async def ship(self, items: Collection[Item]) -> None:
        """Send what the other side asked for."""
        if not items:
            return
        stream = shipment(self._contents, items)
        while data := await anyio.to_thread.run_sync(_batch, stream):
            await self.say(PIECE, data)
        await self.say(PIECE)


def asked_for(data: bytes, offered: Collection[Item]) -> tuple[Item, ...]:
    """What the other side needs of what it was offered. Raises IntegrityError when it asks for anything else."""
    try:
        items = items_from(_json.loads(data))
    except _json.JsonError as error:
        raise IntegrityError(f"not a list of contents: {error}") from error
    if not set(items) <= set(offered):
        raise IntegrityError("it asks for contents that have nothing to do with its attempt")
    return items


def _batch(stream: Iterable[bytes]) -> bytes:
    """The next half a mebibyte or so."""
    data = bytearray()
    for piece in stream:
        data += piece
        if len(data) >= PIECE_BYTES:
            break
    return bytes(data)
