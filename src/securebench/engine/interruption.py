"""How a run is stopped: once means agents end and what is being verified is finished, twice means now."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

from securebench._tasks import side_tasks


class Interruption:
    """The state of being stopped. `asked` ends production; `now` ends everything."""

    def __init__(self) -> None:
        self.asked = False
        self.now = anyio.CancelScope()
        self._producing: set[anyio.CancelScope] = set()

    def ask(self) -> None:
        """The first time: no new attempt, no agent any more. The second time: nothing any more."""
        if self.asked:
            self.now.cancel()
        self.asked = True
        for scope in self._producing:
            scope.cancel()

    @contextmanager
    def producing(self) -> Iterator[anyio.CancelScope]:
        """What is ended by the first request. `scope.cancelled_caught` says afterwards whether it was."""
        with anyio.CancelScope() as scope:
            self._producing.add(scope)
            if self.asked:
                scope.cancel()
            try:
                yield scope
            finally:
                self._producing.discard(scope)


@asynccontextmanager
async def interruptible(on_first: Callable[[], None]) -> AsyncIterator[Interruption]:
    """An interruption that SIGINT and SIGTERM ask for; outside the main thread there are no signals to catch."""
    state = Interruption()
    if threading.current_thread() is not threading.main_thread():
        with state.now:
            yield state
        return
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:

        async def watch() -> None:
            async for _ in signals:
                if not state.asked:
                    on_first()
                state.ask()

        async with side_tasks() as tasks:
            tasks.start_soon(watch)
            with state.now:
                yield state
