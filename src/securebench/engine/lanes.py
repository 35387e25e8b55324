"""All attempts of a run, side by side: a lane has the next attempt carried out and writes its record, then the next."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from securebench._tasks import one_error
from securebench.benchmark_compiler import CompiledTasks
from securebench.engine.executors.base import Done, Executor, Order
from securebench.engine.interruption import Interruption, interruptible
from securebench.errors import SecureBenchError, StoreError
from securebench.harnesses.sample_file import SampleFile
from securebench.progress import Event, Progress, ProgressEvent
from securebench.records.store import RecordStore
from securebench.records.summary import Tally

LEAST_FREE = 64 * 2**20
"""Bytes that must be free before an attempt begins: what it brings must have a place, and so must the seal."""


@dataclass(frozen=True, slots=True)
class Todo:
    """An attempt that has no record yet. `lost` counts starts of its agent that have none either."""

    number: int  # of the task
    attempt: int
    lost: int = 0


def order_for(tasks: CompiledTasks, todo: Todo) -> Order:
    """The order of an attempt at one of these tasks, whose candidate is still to be produced."""
    return Order(tasks.indexes[todo.number], todo.attempt, todo.lost)


def order_from(samples: SampleFile, tasks: CompiledTasks, todo: Todo) -> Order:
    """The order of an attempt whose candidate is in a file. Raises IntegrityError when that changed."""
    order, line = order_for(tasks, todo), samples.line(tasks.entries[todo.number].id, todo.attempt)
    return order if line is None else replace(order, sample=line.data, line=line.number or None)


@dataclass(slots=True)
class Lanes:
    """What the lanes share. `order` says of an attempt what whoever carries it out has to know."""

    executor: Executor
    store: RecordStore
    tally: Tally
    statuses: Counter[str]  # of all records in the file
    faults: dict[tuple[str, int], dict[str, Any]]  # earlier records `error` that nothing came after yet
    todo: Iterator[Todo]
    order: Callable[[Todo], Order]
    progress: Progress
    fault: SecureBenchError | None = field(default=None, init=False)

    async def run(self) -> None:
        """Until all is done or the run is stopped; the tally says which. Raises StoreError when records cannot be
        written, IntegrityError when the pack changed, after what was being verified has been finished where it can."""
        self.tally.interrupted = True  # until every attempt has come to its end
        async with (
            interruptible(self._say_how_to_stop_now) as interruption,
            one_error(),
            anyio.create_task_group() as group,
        ):
            for _ in range(self.executor.lanes):
                group.start_soon(self._until_fault, interruption)
        self.tally.interrupted = interruption.asked
        if self.fault is not None:
            raise self.fault

    async def _until_fault(self, interruption: Interruption) -> None:
        """What ends one lane ends the run. Often it hits many lanes at once; the first to say so is enough."""
        try:
            await self._lane(interruption)
        except SecureBenchError as error:
            self.fault = self.fault or error
            if not interruption.asked:
                interruption.ask()

    async def _lane(self, interruption: Interruption) -> None:
        for todo in self.todo:
            if interruption.asked:
                return
            _check_room(self.store.directory)
            done = await self.executor.carry_out(self.order(todo), interruption)
            if done is None:
                return
            await self._write(done)

    async def _write(self, done: Done) -> None:
        record = done.record
        key = record["task_id"], record["attempt"]
        self.progress(done.event())
        with anyio.CancelScope(shield=True):  # an attempt that is done is recorded, whatever happens meanwhile
            await self.store.append_encoded(done.body)
        self.faults.pop(key, None)
        self.tally.add(record)
        self.statuses[record["verification_status"]] += 1
        self.progress(ProgressEvent(Event.RECORD_WRITTEN, *key))

    def _say_how_to_stop_now(self) -> None:
        message = "stopping: agents are ended, what is being verified is finished; once more to stop now"
        self.progress(ProgressEvent(Event.RUN_NOTICE, data={"message": message}))


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
