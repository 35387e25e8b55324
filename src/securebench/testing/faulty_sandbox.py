"""A real backend that fails when it is told to, as hosts do: sandboxes that do not open, commands that are lost."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from securebench.errors import SandboxError
from securebench.sandboxes.base import Capabilities, Command, Root, Sandbox, SandboxResult, SandboxSpec, Session


class FaultySandbox:
    """Wraps a backend. The `opens`-th sandboxes do not open and the `runs`-th commands are not run, counted from one
    over the life of this object; `opened` and `ran` say how far it has come."""

    def __init__(self, inner: Sandbox, *, opens: Collection[int] = (), runs: Collection[int] = ()) -> None:
        self._inner, self._opens, self._runs = inner, opens, runs
        self.opened = 0
        self.ran = 0

    @property
    def name(self) -> str:
        return self._inner.name

    async def offers(self, root: Root) -> bool:
        return await self._inner.offers(root)

    async def clean(self) -> list[str]:
        return await self._inner.clean()

    async def probe(self) -> Capabilities:
        return await self._inner.probe()

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A session of the backend underneath. Raises SandboxError when it is the turn of a fault."""
        return self._open(spec)

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        self.opened += 1
        if self.opened in self._opens:
            raise SandboxError(f"scripted fault: sandbox {self.opened} does not open")
        async with self._inner.open(spec) as session:
            yield _FaultySession(self, session)

    def next_run_fails(self) -> bool:
        """Count one more command."""
        self.ran += 1
        return self.ran in self._runs


class _FaultySession:
    def __init__(self, sandbox: FaultySandbox, inner: Session) -> None:
        self._sandbox, self._inner = sandbox, inner

    async def run(self, command: Command) -> SandboxResult:
        if self._sandbox.next_run_fails():
            raise SandboxError(f"scripted fault: command {self._sandbox.ran} is lost")
        return await self._inner.run(command)

    async def stop(self) -> None:
        await self._inner.stop()

    def scratch(self, target: str) -> int:
        return self._inner.scratch(target)

    def listener(self, port: int) -> socket.socket:
        return self._inner.listener(port)
