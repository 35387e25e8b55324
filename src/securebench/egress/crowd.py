"""How many connections are dealt with at once, and who has to go when more come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio


class Crowd:
    """A bounded number of visitors. When it is full, the one goes that has been undecided for longest.

    So a flood of connections that never say what they want cannot keep out one that does."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._undecided: dict[int, anyio.CancelScope] = {}
        self._tickets = 0
        self._left = anyio.Event()

    async def room(self) -> None:
        """Returns when one more may enter."""
        while self._inside >= self._most:
            if self._undecided:
                self._undecided.pop(next(iter(self._undecided))).cancel()
            await self._left.wait()

    def enter(self) -> None:
        self._inside += 1

    def leave(self) -> None:
        self._inside -= 1
        self._left.set()
        self._left = anyio.Event()

    def dismiss(self) -> None:
        """All go that are undecided."""
        while self._undecided:
            self._undecided.popitem()[1].cancel()

    async def empty(self) -> None:
        """Returns when nobody is inside."""
        while self._inside:
            await self._left.wait()

    @contextmanager
    def waiting(self) -> Iterator[Callable[[], bool]]:
        """The time in which a visitor is undecided; the value says afterwards whether it was cut short."""
        self._tickets += 1
        ticket = self._tickets
        with anyio.CancelScope() as scope:
            self._undecided[ticket] = scope
            try:
                yield lambda: scope.cancelled_caught
            finally:
                self._undecided.pop(ticket, None)
