"""Sandboxes that stand ready before anybody asks for them. Each is used once and destroyed.

`prepared_ahead` wraps any backend. A spec that was asked for more than once is opened again in the background, so that
the next one to ask finds it done; where its command waits for input (`Command.waits`), even that has been started.

1. Nothing is shared between two uses: a session is handed to one caller, once, and ended when that caller is done. What
   is left of it then (containers that have ended, directories) is removed in the background.
2. What is handed out was opened with an equal spec. Only the seeds of scratch directories may differ: they are filled
   in when it is handed out, by backends that can.
3. What died, was stopped or was started again while it waited is never handed out; a fresh one is opened instead.
4. How many wait follows how many were asked for at once, up to a number, and only while the host has memory to spare.
   What nobody asks for any more is let go, the least recently asked for first.
5. Everything is gone when the context ends. Whatever a killed engine leaves is the backend's `clean` to find: what
   waits is in no way different from what is in use.
"""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from securebench._tasks import side_tasks
from securebench.errors import SandboxError, SecureBenchError
from securebench.sandboxes._shelves import Kept, Key, Shelf, key_of, seeds_of, waiting_command, without_seeds
from securebench.sandboxes.base import (
    Capabilities,
    Command,
    Keepable,
    Preparable,
    Root,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Session,
)

MOST_WAITING = 16
IDLE_SECONDS = 60.0
_MOST_SHELVES = 256  # kinds of sandboxes that are remembered
_SERVED_FIRST_SECONDS = 0.25
_MOST_ENDING = 16  # sessions whose remains may be under removal before somebody has to wait for it


@asynccontextmanager
async def prepared_ahead(
    sandbox: Sandbox,
    *,
    most: int = MOST_WAITING,
    idle_seconds: float = IDLE_SECONDS,
    spare: Callable[[], int] | None = None,
) -> AsyncIterator[PreparedAhead]:
    """The same backend with sandboxes prepared ahead: at most `most` of them, for as long as the context lasts.

    `spare` tells how many bytes of memory the host could give away now; nothing is opened ahead that might need more.
    What is not asked for within `idle_seconds` is let go."""
    async with side_tasks() as tasks:
        ahead = PreparedAhead(sandbox, tasks, most, idle_seconds, spare)
        tasks.start_soon(ahead.let_go)
        yield ahead


@dataclass(slots=True)
class Counts:
    """How it went, for whoever looks."""

    hits: int = 0  # opened before they were asked for
    misses: int = 0  # opened when asked for
    spoilt: int = 0  # no longer intact when their turn came
    unused: int = 0  # let go because nobody asked


class PreparedAhead:
    """A `Sandbox`. Made by `prepared_ahead`."""

    def __init__(
        self, inner: Sandbox, tasks: TaskGroup, most: int, idle_seconds: float, spare: Callable[[], int] | None
    ) -> None:
        self._inner, self._tasks = inner, tasks
        self._most, self._idle, self._spare = most, idle_seconds, spare
        self._shelves: OrderedDict[Key, Shelf] = OrderedDict()
        self._ending: set[Kept] = set()
        self.counts = Counts()

    @property
    def name(self) -> str:
        return self._inner.name

    async def offers(self, root: Root) -> bool:
        return await self._inner.offers(root)

    async def probe(self) -> Capabilities:
        return await self._inner.probe()

    async def clean(self) -> list[str]:
        return await self._inner.clean()

    def backend(self, root: Root) -> Sandbox:  # noqa: ARG002 — of the protocol; there is only one
        """The backend underneath."""
        return self._inner

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A session that was opened ahead, or a fresh one. Raises as the backend does."""
        return self._open(spec)

    async def prepare(self, spec: SandboxSpec, command: Command | None = None) -> None:
        """Have one ready for the next to ask, and wait until it is. Raises as opening does."""
        shelf = self._shelf(spec, command)
        shelf.depth, shelf.last = max(1, shelf.depth), anyio.current_time()
        if not shelf.waiting:
            shelf.waiting.append(self._start(shelf.spec, shelf.command))
        await shelf.waiting[0].session()

    async def let_go(self) -> None:
        """Look now and then at what nobody asks for any more. Never ends."""
        while True:
            await anyio.sleep(self._idle / 2)
            now = anyio.current_time()
            for key, shelf in list(self._shelves.items()):
                if now - shelf.last >= self._idle:
                    del self._shelves[key]
                    self._trim(shelf, 0)
                else:
                    # What stood there all the time was one too many.
                    shelf.depth = max(min(shelf.depth, 1), shelf.depth - shelf.least)
                    self._trim(shelf, shelf.depth)
                    shelf.least = len(shelf.waiting)

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        use = _Use(self, spec)
        try:
            # Where nothing is shared between commands, which session it is need only be known when it is run.
            if spec.scratches or spec.listeners or not self._has_begun(spec):
                await use.take(None)
            yield use
        finally:
            await use.close()

    async def take(self, spec: SandboxSpec, command: Command | None) -> tuple[Kept, Session, bool]:
        """A session for one use, and whether it was ready: prepared ahead and intact, or opened now. Raises as the
        backend does."""
        shelf, seeds = self._shelf(spec, command), seeds_of(spec)
        shelf.last = anyio.current_time()
        while shelf.waiting:
            ready = next((kept for kept in shelf.waiting if kept.is_ready), shelf.waiting[0])
            shelf.waiting.remove(ready)
            shelf.least, found = min(shelf.least, len(shelf.waiting)), ready.is_ready
            if (session := await self._checked(ready, seeds)) is not None:
                self.counts.hits += 1
                return ready, session, found
        self.counts.misses += 1
        kept = self._start(spec, None)
        return kept, await kept.session(), False

    def note(
        self, spec: SandboxSpec, command: Command | None, session: Session, found: bool, over: anyio.Event
    ) -> None:
        """What was asked for, so that the next to ask finds it; `over` comes when it is no longer in use."""
        if not isinstance(session, Keepable) or (seeds_of(spec) and not isinstance(session, Preparable)):
            return
        shelf = self._shelf(spec, command)
        shelf.last, shelf.asked = anyio.current_time(), shelf.asked + 1
        if shelf.asked > 1 and not (found and shelf.depth):
            shelf.depth = min(self._most, shelf.depth + 1)
        self._tasks.start_soon(self._replenish, shelf, over)

    async def _replenish(self, shelf: Shelf, over: anyio.Event) -> None:
        # Who is being served goes first: opening another one takes the processor away from it.
        with anyio.move_on_after(_SERVED_FIRST_SECONDS):
            await over.wait()
        while len(shelf.waiting) < shelf.depth and self._has_room(shelf):
            shelf.waiting.append(self._start(shelf.spec, shelf.command))

    async def ended(self, kept: Kept) -> None:
        """A use is over and its processes have ended; what is left goes in the background, within bounds."""
        kept.let_go()
        self._ending = {one for one in self._ending if not one.gone.is_set()} | {kept}
        if len(self._ending) > _MOST_ENDING:
            await kept.gone.wait()

    async def _checked(self, kept: Kept, seeds: Mapping[str, Path]) -> Session | None:
        """The session, filled, unless it did not open or is not intact any more. Raises as opening with the seeds."""
        usable = False
        try:
            with suppress(SecureBenchError):  # what was wrong with it is not the next one's; a fresh one is opened
                session = await kept.session()
                usable = isinstance(session, Keepable) and await session.intact()
            if usable and seeds:
                usable = False
                if isinstance(session, Preparable):
                    await session.fill(seeds)
                    usable = True
            return session if usable else None
        finally:
            if not usable:
                self.counts.spoilt += 1
                kept.let_go()

    def _has_room(self, shelf: Shelf) -> bool:
        """Whether one more may wait on this shelf; those nobody asked for longest make room."""
        if self._spare is not None and self._spare() < shelf.spec.limits.memory:
            return False
        others = (other for other in self._shelves.values() if other is not shelf and other.waiting)
        while sum(len(other.waiting) for other in self._shelves.values()) >= self._most:
            oldest = next(others, None)
            if oldest is None or oldest.last >= shelf.last:
                return False
            oldest.depth = 0
            self._trim(oldest, 0)
        return True

    def _trim(self, shelf: Shelf, depth: int) -> None:
        while len(shelf.waiting) > depth:
            self.counts.unused += 1
            shelf.waiting.pop().let_go()

    def _start(self, spec: SandboxSpec, command: Command | None) -> Kept:
        kept = Kept(self._inner, spec, command)
        self._tasks.start_soon(kept.live)
        return kept

    def _shelf(self, spec: SandboxSpec, command: Command | None) -> Shelf:
        bare = without_seeds(spec)
        begun = None if command is None or not command.waits else waiting_command(command)
        key = key_of(bare, begun)
        if key not in self._shelves:
            self._shelves[key] = Shelf(bare, begun)
            for old, shelf in list(self._shelves.items())[:-_MOST_SHELVES]:
                del self._shelves[old]
                self._trim(shelf, 0)
        self._shelves.move_to_end(key)
        return self._shelves[key]

    def _has_begun(self, spec: SandboxSpec) -> bool:
        """Whether sessions of this spec wait that have begun something."""
        return any(
            shelf.command is not None and shelf.waiting and shelf.spec == spec for shelf in self._shelves.values()
        )


class _Use:
    """What one caller gets: a `Session`."""

    def __init__(self, ahead: PreparedAhead, spec: SandboxSpec) -> None:
        self._ahead, self._spec = ahead, spec
        self._kept: Kept | None = None
        self._session: Session | None = None
        self._found = self._noted = self._taking = self._stopped = False
        self._over = anyio.Event()

    async def take(self, command: Command | None) -> Session:
        """The session behind it, from now on the same. Raises as opening does."""
        if self._session is None:
            if self._taking:
                raise SandboxError("this sandbox is running another command")
            self._taking = True
            try:
                self._kept, self._session, self._found = await self._ahead.take(self._spec, command)
            finally:
                self._taking = False
        return self._session

    async def run(self, command: Command) -> SandboxResult:
        """As the backend's. Raises SandboxError when it failed or the session was stopped."""
        try:
            if self._stopped:
                raise SandboxError("this sandbox was stopped")
            session = await self.take(command)
            if self._stopped:
                await session.stop()
                raise SandboxError("the sandbox was stopped while a command ran")
        except BaseException:
            for number in command.channels.keys() & {0, 1}:
                command.channels[number].close()  # taken over, whatever became of the command
            raise
        if not self._noted:
            self._noted = True
            self._ahead.note(self._spec, command, session, self._found, self._over)
        return await session.run(command)

    async def stop(self) -> None:
        self._stopped = True
        if self._session is not None:
            await self._session.stop()

    def scratch(self, target: str) -> int:
        return self._present().scratch(target)

    def listener(self, port: int) -> socket.socket:
        return self._present().listener(port)

    def _present(self) -> Session:
        if self._session is None:
            raise SandboxError("this sandbox has neither scratch directories nor listeners")
        return self._session

    async def close(self) -> None:
        """End what runs in it; not interrupted by cancellation."""
        kept, session = self._kept, self._session
        self._over.set()
        if kept is None or session is None:
            return
        with anyio.CancelScope(shield=True):
            if isinstance(session, Keepable):
                try:
                    await session.end()
                finally:
                    kept.let_go()  # also where it could not be ended: nobody else knows of it
                await self._ahead.ended(kept)
            else:
                kept.let_go()
                await kept.gone.wait()
