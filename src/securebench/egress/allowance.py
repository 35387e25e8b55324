"""What is left of an attempt's budgets, shared by all its connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf

import anyio

from securebench.egress.decisions import Reason, Refused
from securebench.egress.rules import EgressLimits

WAIT_FOR_A_PLACE = 60.0
HALF_CLOSED_SECONDS = 120.0


class Allowance:
    """Budgets of one attempt, counted from when it is made."""

    def __init__(self, limits: EgressLimits) -> None:
        self.limits = limits
        self.deadline = inf if limits.seconds is None else anyio.current_time() + limits.seconds
        self.connections = 0
        self.bytes = 0
        self._places = anyio.Semaphore(limits.open)

    def check(self) -> None:
        """Whether another connection may be made now. Raises Refused."""
        if anyio.current_time() >= self.deadline:
            raise Refused(Reason.SECONDS_SPENT)
        if self.bytes >= self.limits.bytes:
            raise Refused(Reason.BYTES_SPENT)
        if self.connections >= self.limits.connections:
            raise Refused(Reason.CONNECTIONS_SPENT)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Flow]:
        """One of the places for open connections, waited for a while, and one connection less. Raises Refused."""
        got = False
        with anyio.move_on_after(WAIT_FOR_A_PLACE):
            await self._places.acquire()
            got = True
        if not got:
            raise Refused(Reason.TOO_MANY_OPEN)
        try:
            self.check()  # again: it may have been a long wait
            self.connections += 1
            yield Flow(self)
        finally:
            self._places.release()


class Flow:
    """The bytes of one connection, and when the last of them moved."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self.up = 0
        self.down = 0
        self.half_closed = False
        self.started = self._last = anyio.current_time()

    def sends(self, count: int) -> None:
        """So many bytes are about to go out. Raises Refused when that would be too many."""
        self._spend(count)
        self.up += count

    def returns(self, count: int) -> None:
        """So many bytes are about to come in. Raises Refused when that would be too many."""
        self._spend(count)
        self.down += count

    def _spend(self, count: int) -> None:
        allowance = self._allowance
        if allowance.bytes + count > allowance.limits.bytes:
            allowance.bytes = allowance.limits.bytes  # so that a chunk of another size does not still fit
            raise Refused(Reason.BYTES_SPENT)
        allowance.bytes += count
        self._last = anyio.current_time()

    async def idle(self) -> None:
        """Returns when nothing has moved for too long."""
        while True:
            patience = self._allowance.limits.idle_seconds
            if self.half_closed:
                patience = min(patience, HALF_CLOSED_SECONDS)
            if (left := self._last + patience - anyio.current_time()) <= 0:
                return
            await anyio.sleep(min(left, 5.0))  # not all of it: the patience may shrink meanwhile

    @property
    def seconds(self) -> float:
        return anyio.current_time() - self.started
