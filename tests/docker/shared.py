"""A `Box` that makes one sandbox per spec and not one per command.

Each command has a container of its own either way; what is shared is what a session keeps: scratch directories,
`/tmp`, and the container that holds them. For backends whose sessions are checked elsewhere one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from tests.conformance.sandbox.box import Box

from securebench.sandboxes.base import Command, Limits, Sandbox, SandboxResult, SandboxSpec, Session

_MOST = 3


@dataclass
class Sessions:
    """Live sessions, the longest unused one closed when there are too many."""

    sandbox: Sandbox
    _open: dict[str, tuple[Session, AsyncExitStack]] = field(default_factory=dict)

    async def run(self, spec: SandboxSpec, command: Command) -> SandboxResult:
        key = repr(spec)
        if key not in self._open:
            stack = AsyncExitStack()
            self._open[key] = (await stack.enter_async_context(self.sandbox.open(spec)), stack)
            await self.close(_MOST)
        self._open[key] = self._open.pop(key)
        return await self._open[key][0].run(command)

    async def close(self, keep: int = 0) -> None:
        while len(self._open) > keep:
            _, stack = self._open.pop(next(iter(self._open)))
            await stack.aclose()


@dataclass(frozen=True)
class SharedBox(Box):
    """`session` and what opens sandboxes by itself make their own."""

    portal: BlockingPortal = None  # type: ignore[assignment]
    sessions: Sessions = None  # type: ignore[assignment]

    def run(
        self, *argv: str, limits: Limits | None = None, command: dict[str, Any] | None = None, **spec: Any
    ) -> SandboxResult:
        made = SandboxSpec(limits=limits or Limits(wall_seconds=60), **spec)
        return self.portal.call(self.sessions.run, made, Command(tuple(argv), **(command or {})))


@contextmanager
def shared(sandbox: Sandbox, at_once: int) -> Iterator[SharedBox]:
    with start_blocking_portal() as portal:
        sessions = Sessions(sandbox)
        try:
            yield SharedBox(sandbox, at_once, portal, sessions)
        finally:
            portal.call(sessions.close)
