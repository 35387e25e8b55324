"""Attempts carried out in this process: producing and verifying each have places of their own, so that they overlap
across tasks and what is produced never piles up before the verifiers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio

from securebench.benchmark_compiler import CompiledTasks
from securebench.engine.admission import Memory, verifier_memory
from securebench.engine.attempt import Attempt, AttemptContext
from securebench.engine.executors.base import Done, Order
from securebench.engine.interruption import Interruption
from securebench.engine.shelf import Shelf
from securebench.errors import SecureBenchError
from securebench.records.record import Judged
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Status

_SHELF = 8 * 2**20  # bytes of rows whose tasks are kept for further attempts


class LocalExecutor:
    """`tasks` are those of the whole pack, by the number of their row; `fault` tells when nothing can be done."""

    def __init__(
        self,
        context: AttemptContext,
        tasks: CompiledTasks,
        memory: Memory,
        producers: int,
        verifiers: int,
        fault: Callable[[], SecureBenchError | None] = lambda: None,
    ) -> None:
        self.lanes, self.places = producers + verifiers, verifiers
        self.running = self.restarts = 0
        self._context = context
        self._tasks = tasks
        self._shelf: Shelf[int, SecureBenchTask] = Shelf(_SHELF)
        self._memory = memory
        self._fault = fault
        self._producing = anyio.CapacityLimiter(producers)
        self._verifying = anyio.CapacityLimiter(verifiers)

    @property
    def fault(self) -> SecureBenchError | None:
        return self._fault()

    async def carry_out(self, order: Order, interruption: Interruption) -> Done | None:
        """Raises IntegrityError when the pack changed, StoreError when candidates cannot be kept, and the fault that
        keeps all attempts from being carried out."""
        if (fault := self.fault) is not None:
            raise fault
        context, task = self._context, self._shelf.get(order.row, partial(self._compile, order.row))
        attempt = Attempt(context, task, order.attempt, order.lost, order.sample, order.line, list(order.repeats))
        if order.fault is not None:
            attempt.judged = Judged(Status.ERROR, message=order.fault)
            return await attempt.record()
        with interruption.producing() as scope:
            async with self._producing, self._memory.hold(context.producer.memory(task.environment)):
                await attempt.produce()
        if scope.cancelled_caught:
            return None
        if attempt.judged is None:
            async with self._verifying, self._memory.hold(verifier_memory(task.task_type, task.environment.memory)):
                self.running += 1
                try:
                    await attempt.verify()
                finally:
                    self.running -= 1
        done: Done | None = None
        with anyio.CancelScope(shield=True):  # an attempt that is done is recorded, whatever happens meanwhile
            done = await attempt.record()
        return done  # noqa: RET504 — mypy: a scope may swallow what ends it

    def _compile(self, row: int) -> tuple[SecureBenchTask, int]:
        return self._tasks[row], self._tasks.entries[row].length
