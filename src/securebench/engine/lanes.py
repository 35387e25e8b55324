"""All attempts of a run, side by side: producing and verifying overlap across tasks, each with places of its own.

A lane takes the next attempt from the start to its record, then the next. There are as many lanes as places for
producing and verifying together, so what is produced never piles up before the verifiers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from securebench._tasks import one_error
from securebench.benchmark_compiler import CompiledTasks
from securebench.engine.admission import Memory
from securebench.engine.attempt import Attempt, AttemptContext
from securebench.engine.interruption import Interruption, interruptible
from securebench.errors import SecureBenchError, StoreError
from securebench.families.registry import family
from securebench.progress import Event, ProgressEvent
from securebench.records.store import RecordStore
from securebench.records.summary import Tally
from securebench.sandboxes.base import Limits
from securebench.tasks import SecureBenchTask

LEAST_FREE = 64 * 2**20
"""Bytes that must be free before an attempt begins: what it brings must have a place, and so must the seal."""


@dataclass(frozen=True, slots=True)
class Todo:
    """An attempt that has no record yet. `lost` counts starts of its agent that have none either."""

    number: int  # of the task
    attempt: int
    lost: int = 0


@dataclass(slots=True)
class Lanes:
    """What the lanes share."""

    context: AttemptContext
    store: RecordStore
    tally: Tally
    statuses: Counter[str]  # of all records in the file
    faults: dict[tuple[str, int], dict[str, Any]]  # earlier records `error` that nothing came after yet
    tasks: CompiledTasks
    todo: Iterator[Todo]
    producers: int
    verifiers: int
    memory: Memory
    fault: SecureBenchError | None = field(default=None, init=False)

    async def run(self) -> None:
        """Until all is done or the run is stopped; the tally says which. Raises StoreError when records cannot be
        written, IntegrityError when the pack changed, after what was being verified has been finished where it can."""
        self.tally.interrupted = True  # until every attempt has come to its end
        producing, verifying = anyio.CapacityLimiter(self.producers), anyio.CapacityLimiter(self.verifiers)
        async with (
            interruptible(self._say_how_to_stop_now) as interruption,
            one_error(),
            anyio.create_task_group() as group,
        ):
            for _ in range(self.producers + self.verifiers):
                group.start_soon(self._until_fault, interruption, producing, verifying)
        self.tally.interrupted = interruption.asked
        if self.fault is not None:
            raise self.fault

    async def _until_fault(
        self, interruption: Interruption, producing: anyio.CapacityLimiter, verifying: anyio.CapacityLimiter
    ) -> None:
        """What ends one lane ends the run. Often it hits many lanes at once; the first to say so is enough."""
        try:
            await self._lane(interruption, producing, verifying)
        except SecureBenchError as error:
            self.fault = self.fault or error
            if not interruption.asked:
                interruption.ask()

    async def _lane(
        self, interruption: Interruption, producing: anyio.CapacityLimiter, verifying: anyio.CapacityLimiter
    ) -> None:
        for todo in self.todo:
            if interruption.asked:
                return
            _check_room(self.store.directory)
            task = self.tasks[todo.number]
            attempt = Attempt(self.context, task, todo.attempt, todo.lost)
            with interruption.producing() as scope:
                async with producing, self.memory.hold(self.context.producer.memory(task.environment)):
                    await attempt.produce()
            if scope.cancelled_caught:
                return
            if attempt.judged is None:
                async with verifying, self.memory.hold(verifier_memory(task)):
                    await attempt.verify()
            await self._write(attempt)

    async def _write(self, attempt: Attempt) -> None:
        with anyio.CancelScope(shield=True):  # an attempt that is done is recorded, whatever happens meanwhile
            record = await attempt.record()
            await self.store.append(record)
        self.faults.pop((record["task_id"], record["attempt"]), None)
        self.tally.add(record)
        self.statuses[record["verification_status"]] += 1
        self.context.progress(ProgressEvent(Event.RECORD_WRITTEN, record["task_id"], record["attempt"]))

    def _say_how_to_stop_now(self) -> None:
        message = "stopping: agents are ended, what is being verified is finished; once more to stop now"
        self.context.progress(ProgressEvent(Event.RUN_NOTICE, data={"message": message}))


def _check_room(directory: Path) -> None:
    """What an attempt brings must have a place. Raises StoreError."""
    try:
        status = os.statvfs(directory)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(f"{directory}: {reason}, but this run is written there") from error
    free = status.f_bavail * status.f_frsize
    if free < LEAST_FREE:
        raise StoreError(
            f"{directory}: only {free // 2**20} MiB are free, too little to begin another attempt; "
            "make room and use --resume"
        )


def verifier_memory(task: SecureBenchTask) -> int:
    """Bytes that judging a candidate of such a task may use on this host."""
    if not family(task.task_type).executes:
        return 0
    return task.environment.memory or Limits().memory
