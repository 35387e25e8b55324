"""The time of a phase, without the time that it only waited for a place: nobody is to blame for that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio

_running: ContextVar[Stopwatch | None] = ContextVar("stopwatch", default=None)


class Stopwatch:
    """Runs while its context lasts, and ends what takes longer than `limit` seconds; then `expired` is true."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._scope = anyio.CancelScope()
        self._began = 0.0
        self._waited = 0.0

    @property
    def seconds(self) -> float:
        return anyio.current_time() - self._began - self._waited

    @property
    def expired(self) -> bool:
        return self._scope.cancelled_caught

    @contextmanager
    def running(self) -> Iterator[None]:
        self._began = anyio.current_time()
        self._scope.deadline = self._began + self._limit
        token = _running.set(self)
        try:
            with self._scope:
                yield
        finally:
            _running.reset(token)

    def pause(self) -> float:
        self._scope.deadline = math.inf
        return anyio.current_time()

    def go_on(self, since: float) -> None:
        self._waited += anyio.current_time() - since
        self._scope.deadline = self._began + self._waited + self._limit


@contextmanager
def waiting() -> Iterator[None]:
    """What is done in here is waiting, and counts for nobody."""
    watch = _running.get()
    if watch is None:
        yield
        return
    since = watch.pause()
    try:
        yield
    finally:
        watch.go_on(since)
