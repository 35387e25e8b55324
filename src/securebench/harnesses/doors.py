"""Who answers an agent's requests to models: the run's credential broker, here or through the machine that has it."""

from __future__ import annotations

import socket
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from securebench.egress.broker import Exchange, Usage


class ModelDoor(Protocol):
    """One attempt's access to models. `BrokerSession` is one."""

    @property
    def usage(self) -> Usage: ...

    @property
    def exchanges(self) -> list[Exchange]: ...

    @property
    def dropped_exchanges(self) -> int: ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be written down of this attempt."""
        ...

    @property
    def exhausted(self) -> str | None:
        """Which budget is used up, if one is."""
        ...

    @property
    def unanswered(self) -> bool: ...

    def environment(self, port: int) -> dict[str, str]:
        """The variables for an agent whose sandbox has the listener on that port."""
        ...

    async def serve(self, listener: socket.socket) -> None:
        """Answer on a listening socket until cancelled."""
        ...

    async def settled(self) -> None:
        """Returns when all that was asked is counted. To be called once nobody serves any more."""
        ...

    async def out_of_budget(self) -> str:
        """Returns when a budget is used up, and which."""
        ...

    async def probe(self) -> str | None:
        """What is wrong with the providers."""
        ...


class ModelDoors(Protocol):
    """What opens a door for each attempt. `Broker` is one."""

    @property
    def exhausted(self) -> str | None:
        """Which budget of the run is used up, if one is."""
        ...

    @property
    def hosts(self) -> frozenset[str]:
        """Where the providers are."""
        ...

    def session(self, label: str) -> AbstractAsyncContextManager[ModelDoor]: ...
