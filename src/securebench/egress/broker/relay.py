"""Passes a stream on in as few pieces as it can without ever waiting for more."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable

import anyio
import anyio.lowlevel

from securebench._tasks import side_tasks

AHEAD = 512 * 1024  # read before the other side has taken it


async def relay(
    source: AsyncIterable[bytes], hand_over: Callable[[bytes], Awaitable[None]], flush: Callable[[], Awaitable[None]]
) -> None:
    """What has arrived is handed over at once, together; before any waiting it is flushed.

    An error of the source comes after what was read before it."""
    store = _Store()
    async with side_tasks() as tasks:
        tasks.start_soon(store.fill, source)
        while (data := await store.take(flush)) is not None:
            await hand_over(data)
    if store.error is not None:
        raise store.error


class _Store:
    def __init__(self) -> None:
        self.error: Exception | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._change = anyio.Event()

    async def fill(self, source: AsyncIterable[bytes]) -> None:
        import httpx2

        try:
            async for piece in source:
                self._pieces.append(piece)
                self._size += len(piece)
                self._change.set()
                while self._size >= AHEAD:
                    self._change = anyio.Event()
                    await self._change.wait()
        except httpx2.TransportError as error:
            self.error = error
        except OSError as error:  # TLS that breaks in the middle
            self.error = httpx2.ReadError(type(error).__name__)
        self._ended = True
        self._change.set()

    async def take(self, flush: Callable[[], Awaitable[None]]) -> bytes | None:
        if not self._pieces and not self._ended:
            await anyio.lowlevel.checkpoint()  # more is often there already, and a short reply as a whole
        if not self._pieces and not self._ended:
            await flush()
        while not self._pieces and not self._ended:
            self._change = anyio.Event()
            await self._change.wait()
        if not self._pieces:
            return None
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._change.set()
        return data
