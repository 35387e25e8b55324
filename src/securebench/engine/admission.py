"""Who may start now: no more than the memory they may use together allows.

Limits are counted, not use: four agents that may use 4 GiB each do not run on 8 GiB, even while they are small."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from securebench.families.registry import FAMILIES
from securebench.sandboxes.base import Limits

_SHARE = 0.9  # of what is free now; the rest is the engine's own
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Memory:
    """So many bytes. First come, first served: a large one waits, and is not overtaken for ever by small ones.

    What needs more than there is in all runs alone."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._used = 0
        self._queue: deque[anyio.Event] = deque()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """That many bytes while the context lasts. Who needs none does not wait."""
        if size <= 0:
            yield
            return
        size = min(size, self.total)
        turn = anyio.Event()
        self._queue.append(turn)
        try:
            while self._queue[0] is not turn or self._used + size > self.total:
                await turn.wait()
                turn = self._renew(turn)
        finally:
            self._queue.remove(turn)
            self._wake()
        self._used += size
        try:
            yield
        finally:
            self._used -= size
            self._wake()

    def _renew(self, turn: anyio.Event) -> anyio.Event:
        """An event rings once; the next waiting needs another in the same place of the queue."""
        fresh = anyio.Event()
        self._queue[self._queue.index(turn)] = fresh
        return fresh

    def _wake(self) -> None:
        if self._queue:
            self._queue[0].set()


def verifier_memory(task_type: str, limit: int | None) -> int:
    """Bytes that judging a candidate may use on this host, for a task of this type with this limit of its own."""
    return (limit or Limits().memory) if FAMILIES[task_type].executes else 0


def memory_for_attempts() -> int:
    """Bytes that attempts may use together on this host now."""
    available = 8 * 2**30
    for line in Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else ():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    for name in _CGROUP_LIMITS:
        path = Path(name)
        if path.exists() and (text := path.read_text().strip()).isdigit():
            available = min(available, int(text))
    return int(available * _SHARE)
