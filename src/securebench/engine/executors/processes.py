"""Attempts carried out by processes of ours: one engine in Python cannot keep many cores busy.

Each process loads the pack itself, has its own sandbox and court, judges, and builds records; this side hands out
orders and takes records. A process that dies is replaced, and what it was at is done again on the same candidate, a
bounded number of times: that is a fault of the host, stated in the record, and never the candidate's."""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import anyio

from securebench._leftovers import owner_mark
from securebench._proc import TOOL_ENV, Process, start
from securebench._tasks import side_tasks
from securebench.benchmark_pack import RowIndex
from securebench.engine.admission import Memory, verifier_memory
from securebench.engine.executors.base import Done, Order
from securebench.engine.executors.setup import Setup
from securebench.engine.executors.wire import (
    CANCEL,
    FAULT,
    ORDER,
    READY,
    RECORD,
    SETUP,
    Connection,
    Frame,
    decode_fault,
)
from securebench.engine.interruption import Interruption
from securebench.errors import InfrastructureError, IntegrityError, SecureBenchError
from securebench.progress import Event, Progress, ProgressEvent, silent

REPEATS = 2
"""How often an attempt is done again after the process it was in died."""
_STARTS = 3  # in a row that may fail
_FAREWELL = 40.0  # seconds for a process to clean up and end
_LAST_WORDS = 2000
_MODULE = "securebench.engine.executors.child"
PASSED = (
    "TMPDIR", "SECUREBENCH_HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH", "CONTAINER_HOST", "CONTAINERS_CONF", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
)  # fmt: skip
"""What a process gets of our environment besides path and home: where images and daemons are. No keys."""


class _Ended(Exception):
    """The process is gone, and with it what it was at."""


@dataclass(slots=True)
class _Answer:
    """What somebody waits for."""

    frame: Frame | None = None
    ended: str = ""
    there: anyio.Event = field(default_factory=anyio.Event)


class _Child:
    """One process and the orders it has."""

    def __init__(self, core: int | None) -> None:
        ours, theirs = socket.socketpair()
        self._said = os.memfd_create("securebench", os.MFD_CLOEXEC)  # its standard error
        path = os.pathsep.join(entry for entry in sys.path if Path(entry).is_absolute())
        env = {**TOOL_ENV, **{name: os.environ[name] for name in PASSED if name in os.environ}, **owner_mark()}
        argv = [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()), *([] if core is None else [str(core)])]
        with theirs:
            try:
                self.process: Process = start(
                    argv, env={**env, "PYTHONPATH": path}, stderr=self._said, pass_fds=(theirs.fileno(),)
                )
            except BaseException:
                ours.close()
                os.close(self._said)
                raise
        self.connection = Connection(ours)
        self.alive = True
        self.answers: dict[int, _Answer] = {}
        self._numbers = count(1)

    async def ask(self, data: bytes) -> Frame:
        """The answer to an order. Raises _Ended."""
        number, answer = next(self._numbers), _Answer()
        self.answers[number] = answer
        try:
            await self.connection.send(ORDER, number, data)
            await answer.there.wait()
        except ConnectionError:
            await answer.there.wait()  # whoever reads from it learns of its end, too
        except anyio.get_cancelled_exc_class():
            if not answer.there.is_set():
                with anyio.CancelScope(shield=True):
                    await self._cancel(number)
            raise
        if answer.frame is None:
            raise _Ended(answer.ended)
        return answer.frame

    async def _cancel(self, number: int) -> None:
        try:
            await self.connection.send(CANCEL, number)
        except ConnectionError:
            return

    async def close(self) -> str:
        """Let it clean up and end, and end it where it does not; its last words."""
        self.alive = False
        self.connection.close()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_FAREWELL):
                await self.process.wait()
            await self.process.close()
            how = await self.process.wait()
        said = os.pread(self._said, _LAST_WORDS, max(0, os.fstat(self._said).st_size - _LAST_WORDS))
        os.close(self._said)
        words = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        ended = f"ended by signal {-how}" if how < 0 else f"ended with status {how}"
        for answer in self.answers.values():
            answer.ended = f"a process of the engine {ended}"
            answer.there.set()
        return f"{ended}{f': {words}' if words else ''}"


class ProcessExecutor:
    """What `open_processes` gives. `entries` are the rows of the pack."""

    def __init__(
        self, setup: Setup, entries: Sequence[RowIndex], number: int, memory: Memory, progress: Progress
    ) -> None:
        self.places, self.lanes = number, 2 * number + 2  # so that a process never waits for a record to be synced
        self.running = self.restarts = 0
        self.ready = anyio.Event()  # one is there, or none will be
        self._setup = setup
        self._entries = entries
        self._memory = memory
        self._progress = progress
        self.fault: SecureBenchError | None = None  # what keeps all of them from working
        self._give, self._idle = anyio.create_memory_object_stream[_Child](math.inf)

    async def carry_out(self, order: Order, interruption: Interruption) -> Done | None:
        """Raises what processes say that ends a run: IntegrityError when the pack changed, StoreError; and
        InfrastructureError when none can be started."""
        entry = self._entries[order.row]
        async with AsyncExitStack() as held:
            with interruption.producing() as scope:
                await held.enter_async_context(self._memory.hold(verifier_memory(entry.family, entry.memory)))
                child = await self._take()
            if scope.cancelled_caught:
                return None
            data = {"task_type": entry.family, "phase": "verifying"}
            self._progress(ProgressEvent(Event.TASK_START, entry.id, order.attempt, data))
            while True:
                try:
                    return await self._ask(child, order)
                except _Ended as ended:
                    order = _again(order, str(ended))
                child = await self._take()

    async def _ask(self, child: _Child, order: Order) -> Done:
        self.running += 1
        try:
            frame = await child.ask(order.encode())
        finally:
            self.running -= 1
        if frame.kind == RECORD:
            return Done.decode(frame.data)
        raise decode_fault(frame.data) if frame.kind == FAULT else InfrastructureError("an order was cancelled")

    async def _take(self) -> _Child:
        """The process that is free for longest. Raises the error that keeps all of them from working."""
        while True:
            try:
                child = await self._idle.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                raise self.fault or InfrastructureError("the engine's processes are gone") from None
            if child.alive:
                return child

    async def keep_one(self, core: int | None) -> None:
        """A process, and another one whenever it ends."""
        failed = 0
        while self.fault is None:
            child, words = _Child(core), ""
            try:
                served = await self._serve(child, clean=failed > 0 or self.restarts > 0)
            except SecureBenchError as error:
                self._stop(error)
                return
            finally:
                words = await child.close()
            failed = 0 if served else failed + 1
            if failed == _STARTS:
                self._stop(InfrastructureError(f"the engine's processes cannot be started: the last one {words}"))
                return
            self.restarts += 1

    async def _serve(self, child: _Child, clean: bool) -> bool:
        """Until it ends; whether it got as far as being ready. Raises the error that it could not begin for."""
        try:
            await child.connection.send(SETUP, data=self._setup.model_copy(update={"clean": clean}).encode())
        except ConnectionError:
            return False
        frame = await child.connection.receive()
        if frame is not None and frame.kind == FAULT:
            raise decode_fault(frame.data)
        if frame is None or frame.kind != READY:
            return False
        self.ready.set()
        self._free(child)
        while (frame := await _heard(child)) is not None and (answer := child.answers.pop(frame.number, None)):
            answer.frame = frame
            answer.there.set()
            self._free(child)
        return True  # ended, or says what answers no order: another one takes its place

    def _free(self, child: _Child) -> None:
        if self.fault is None:
            self._give.send_nowait(child)

    def _stop(self, error: SecureBenchError) -> None:
        """Nobody waits any longer: no process can be had."""
        self.fault = self.fault or error
        self.ready.set()
        self._give.close()

    def close(self) -> None:
        self._give.close()
        self._idle.close()


async def _heard(child: _Child) -> Frame | None:
    """What a process says next; None where it says nothing any more that could be understood."""
    try:
        return await child.connection.receive()
    except IntegrityError:
        return None


def _again(order: Order, fault: str) -> Order:
    """The order for the next process, which says what happened to the last."""
    if order.fault is not None:
        raise InfrastructureError(f"not even a fault could be recorded: {fault}")
    if len(order.repeats) >= REPEATS:
        return replace(order, fault=f"{fault}, {REPEATS + 1} times")
    return replace(order, repeats=(*order.repeats, {"phase": "verify", "fault": fault, "waited_seconds": 0.0}))


def _cores(number: int) -> list[int | None]:
    """A core for each process, where there is exactly one for each. It and its rooms talk in turns, never at the same
    time; on one core each finds the last one's words in its cache, and nobody has to be woken on another. Fewer are not
    bound: others who ask for as few would choose the same cores."""
    cores = sorted(os.sched_getaffinity(0))
    return [*cores] if number == len(cores) else [None] * number


@asynccontextmanager
async def open_processes(
    setup: Setup, entries: Sequence[RowIndex], number: int, memory: Memory, progress: Progress = silent
) -> AsyncIterator[ProcessExecutor]:
    """An executor with so many processes while the context lasts. Raises what keeps the first one from starting:
    ConfigError, IntegrityError, SandboxUnavailable, InfrastructureError."""
    executor = ProcessExecutor(setup, entries, number, memory, progress)
    with closing(executor):
        async with side_tasks() as tasks:
            for core in _cores(number):
                tasks.start_soon(executor.keep_one, core)
            await executor.ready.wait()
            if executor.fault is not None:
                raise executor.fault
            yield executor
