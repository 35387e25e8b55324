"""Of many candidates those that were taken and whose verdicts were not shown yet."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable

import anyio

from securebench.errors import InfrastructureError
from securebench.grading.results import Candidate, Task
from securebench.verifiers.base import VerificationResult

SHOWN_LATER = 16
"""How many times as many candidates as there are places are taken while the first of them is not shown."""


class Waiting:
    """One of many whose turn to be shown has not come. `finished` is called when its verdict, or what it raises, is
    there."""

    def __init__(self, finished: Callable[[], None]) -> None:
        self.scope = anyio.CancelScope()
        self._done, self._finished = anyio.Event(), finished
        self._result: VerificationResult | None = None
        self._error: Exception | None = None

    async def run(
        self, grade: Callable[[Task, Candidate], Awaitable[VerificationResult]], task: Task, candidate: Candidate
    ) -> None:
        try:
            with self.scope:
                self._result = await grade(task, candidate)
        except Exception as error:  # noqa: BLE001 — raised where its turn comes
            self._error = error
        finally:
            self._done.set()
            self._finished()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    async def result(self) -> VerificationResult:
        await self._done.wait()
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise InfrastructureError("the grader was closed")
        return self._result


class Window:
    """Of many those that were taken and not shown yet: at most `most` under way, and of those that wait to be shown so
    many that a slow one keeps no core idle."""

    def __init__(self, most: int) -> None:
        self.items: deque[Waiting] = deque()
        self._most, self._under_way, self._changed = most, 0, anyio.Event()

    def add(self) -> Waiting:
        self._under_way += 1
        self.items.append(added := Waiting(self._one_less))
        return added

    @property
    def is_full(self) -> bool:
        return self._under_way >= self._most or self.is_long

    @property
    def is_long(self) -> bool:
        return len(self.items) >= SHOWN_LATER * self._most

    async def changed(self) -> None:
        await self._changed.wait()

    def _one_less(self) -> None:
        self._under_way -= 1
        self._changed.set()
        self._changed = anyio.Event()


async def each(
    pairs: Iterable[tuple[Task, Candidate]] | AsyncIterable[tuple[Task, Candidate]],
) -> AsyncIterator[tuple[Task, Candidate]]:
    if isinstance(pairs, AsyncIterable):
        async for pair in pairs:
            yield pair
    else:
        for pair in pairs:
            yield pair
