"""Plays the catalogue: each attack, its honest twin and its control, on every ground; a few at a time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from securebench._leftovers import staging_directory
from securebench._text import visible
from securebench.audit.suite.attack import Attack, End, Ground, NotHere, Play, Seen, Stopped
from securebench.audit.suite.catalogue import Catalogue
from securebench.audit.suite.result import NO_BACKEND, Row, SuiteResult, Verdict
from securebench.sandboxes.base import Root, Sandbox
from securebench.sandboxes.warm import warmed

PLAY_SECONDS = 180.0
"""No play may take longer; every limit inside of one is shorter."""
MOST_DETAIL = 2000
"""Characters of what a row says; some of it may be a candidate's."""
OnRow = Callable[[Row], None]


@dataclass(frozen=True, slots=True)
class Backend:
    """One column: a backend, and the root its plays use, which holds python3. Rooms are warm, as they are where
    verdicts are made, unless it is to be played on without."""

    name: str
    sandbox: Sandbox
    root: Root
    warm: bool = True


async def run_suite(
    catalogue: Catalogue,
    attacks: Sequence[Attack],
    backends: Sequence[Backend],
    *,
    host: Mapping[str, str],
    at_once: int,
    on_row: OnRow | None = None,
) -> SuiteResult:
    """Play `attacks` on every backend; those that meet none once, on the first backend's machine.

    Raises KeyboardInterrupt when a play was stopped by the operator."""
    began, now = time.monotonic(), time.time()
    grounds = [(attack, backend, backend.name) for backend in backends for attack in attacks if attack.isolated]
    grounds += [(attack, backends[0], NO_BACKEND) for attack in attacks if not attack.isolated]
    rows: dict[int, Row] = {}
    limiter = anyio.CapacityLimiter(at_once)
    players = {name: Player(backend, name) for _, backend, name in grounds}

    async def play(number: int, attack: Attack, column: str) -> None:
        async with limiter:
            rows[number] = await players[column].play(attack, catalogue.threat(attack.threat).title)
            if on_row is not None:
                on_row(rows[number])

    stopped = False
    try:
        async with AsyncExitStack() as stack:
            for player in players.values():
                await stack.enter_async_context(player.ready())
            async with anyio.create_task_group() as tasks:
                for number, (attack, _, column) in enumerate(grounds):
                    tasks.start_soon(play, number, attack, column)
    except* Stopped:
        stopped = True
    if stopped:
        raise KeyboardInterrupt
    return SuiteResult(now, time.monotonic() - began, host, tuple(rows[number] for number in range(len(grounds))))


class Player:
    """Plays attacks on one backend. Plays that several attacks share are played once."""

    def __init__(self, backend: Backend, column: str | None = None) -> None:
        self._backend, self._column = backend, column or backend.name
        self._known: dict[Play, Seen] = {}
        self._locks: dict[Play, anyio.Lock] = {}

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        """With warm rooms, where it is to have them, for as long as the context lasts."""
        if not self._backend.warm:
            yield
            return
        async with warmed(self._backend.sandbox) as sandbox:
            self._backend = replace(self._backend, sandbox=sandbox)
            yield

    async def play(self, attack: Attack, title: str = "") -> Row:
        """The row of one attack. Never raises for anything a play does."""
        began = time.monotonic()
        try:
            verdict, detail = await self._judge(attack)
        except NotHere as missing:
            verdict, detail = Verdict.NOT_PLAYED, str(missing)
        seconds = time.monotonic() - began
        return Row(attack.id, attack.threat, title, self._column, verdict, visible(detail)[:MOST_DETAIL], seconds)

    async def _judge(self, attack: Attack) -> tuple[Verdict, str]:
        seen = await self._see(attack.attack)
        if seen.end is End.REACHED:
            return Verdict.SUCCEEDED, seen.detail
        if seen.end is End.FAULT:
            return Verdict.FAULT, seen.detail
        if attack.expect and seen.reason not in attack.expect:
            wanted = " or ".join(sorted(attack.expect))
            return Verdict.FAULT, f"refused as {seen.reason or 'nothing in particular'}, not as {wanted}: {seen.detail}"
        twin = await self._see_once(attack.honest)
        if twin.end is not End.REACHED:
            return Verdict.TWIN_FAILED, f"the honest twin ended as {twin.reason or twin.end}: {twin.detail}"
        control = await self._see_once(attack.control)
        if control.end is not End.REACHED:
            return Verdict.BROKEN, f"against the weak one it ended as {control.reason or control.end}: {control.detail}"
        return Verdict.HELD, seen.reason or seen.detail

    async def _see_once(self, play: Play) -> Seen:
        async with self._locks.setdefault(play, anyio.Lock()):
            if play not in self._known:
                self._known[play] = await self._see(play)
            return self._known[play]

    async def _see(self, play: Play) -> Seen:
        with staging_directory() as directory:
            ground = Ground(self._backend.name, self._backend.sandbox, self._backend.root, directory)
            try:
                with anyio.fail_after(PLAY_SECONDS):
                    return await play.on(ground)
            except (NotHere, Stopped):
                raise
            except Exception as error:  # noqa: BLE001 - whatever it was, it is not a success of ours
                return Seen(End.FAULT, f"{type(error).__name__}: {error}")
