"""`Grader`: candidates for the tasks of one pack, judged side by side, with a bounded queue before it."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from securebench._schema import suggest
from securebench._tasks import side_tasks
from securebench.benchmark_pack import BenchmarkPack, find_pack, load_benchmark_pack
from securebench.engine.executors.base import Executor, Order
from securebench.engine.interruption import Interruption
from securebench.errors import ConfigError, InfrastructureError, QueueFull, SecureBenchError
from securebench.families.registry import FAMILIES
from securebench.grading.bench import open_bench
from securebench.grading.results import Candidate, Task, sample_line, verdict
from securebench.grading.window import Window, each
from securebench.tasks import SecureBenchTask
from securebench.tester_config import TesterConfig
from securebench.verifiers.base import VerificationResult

if TYPE_CHECKING:
    from securebench.grading.sync import SyncGrader

_WAITING_PER_PROCESS = 4
_CLOSING_SECONDS = 60.0  # for calls to end that closing ends
_COMPARED = 20_000  # ids that a misspelt one is compared with


@dataclass(frozen=True, slots=True)
class GraderMetrics:
    """How a grader stands at one moment. `waiting` callers have no place in the queue yet."""

    processes: int
    queue: int  # places
    waiting: int
    queued: int
    running: int
    done: int  # verdicts, by status below
    statuses: Mapping[str, int]
    errors: int  # calls that a fault of the host or the pack ended
    cancelled: int
    refused: int  # calls that did not want to wait
    restarts: int  # of processes


@dataclass(slots=True)
class _Counts:
    waiting: int = 0
    inside: int = 0
    errors: int = 0
    cancelled: int = 0
    refused: int = 0
    statuses: Counter[str] = field(default_factory=Counter)


class Grader:
    """Judges candidates for the tasks of `pack`: a directory, a manifest, or a pack that is loaded.

    `processes` do it, as many as there are cores unless said otherwise; 0 does it in this one. Behind those being
    judged at most `queue` candidates wait, and callers beyond that wait for a place. `config` brings the verification
    policy, the sandbox and the judge of a tester file; without one the defaults hold, and no model judges. `unsafe`
    goes without the audit of the walls, and every verdict says so.

    Use it as an asynchronous context manager. Entering raises ConfigError, SandboxUnavailable, AuditFailed."""

    def __init__(
        self,
        pack: Path | str | BenchmarkPack,
        *,
        processes: int | None = None,
        queue: int | None = None,
        config: TesterConfig | None = None,
        unsafe: bool = False,
    ) -> None:
        self.pack = pack if isinstance(pack, BenchmarkPack) else load_benchmark_pack(*find_pack(Path(pack)))
        self.processes = len(os.sched_getaffinity(0)) if processes is None else processes
        self.queue = _WAITING_PER_PROCESS * max(1, self.processes) if queue is None else queue
        if self.processes < 0 or self.queue < 0:
            raise ConfigError("a grader has 0 or more processes and 0 or more places in its queue")
        self._config, self._unsafe = config, unsafe
        self._rows = {entry.id: row for row, entry in enumerate(self.pack.entries)}
        self._counts = _Counts()
        self._owner = 0  # the process that entered it
        self._executor: Executor | None = None
        self._open = AsyncExitStack()
        self._calls: set[anyio.CancelScope] = set()

    @classmethod
    def sync(
        cls,
        pack: Path | str | BenchmarkPack,
        *,
        processes: int | None = None,
        queue: int | None = None,
        config: TesterConfig | None = None,
        unsafe: bool = False,
    ) -> SyncGrader:
        """The same for ordinary threads, as an ordinary context manager."""
        from securebench.grading.sync import SyncGrader

        return SyncGrader(cls(pack, processes=processes, queue=queue, config=config, unsafe=unsafe))

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            bench = open_bench(self.pack, self._config, self.processes, secrets.token_bytes(32), unsafe=self._unsafe)
            self._executor = await stack.enter_async_context(bench)
            self._places = anyio.Semaphore(self._executor.places + self.queue)
            self._tasks = await stack.enter_async_context(side_tasks())
            self._interruption, self._left = Interruption(), anyio.Event()
            self._owner = os.getpid()
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What is still being judged is ended, and whoever waits for it told."""
        self._executor = None
        for scope in self._calls:
            scope.cancel()
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            await anyio.sleep(0)  # those that have not begun find it closed
            while self._calls:  # none of them may find half of what it needs
                await self._left.wait()
        await self._open.__aexit__(kind, error, trace)

    async def grade(self, task: Task, candidate: Candidate, *, wait: bool = True) -> VerificationResult:
        """The verdict on one candidate. Whatever the candidate causes is one; cancelling the call ends its work.

        Raises QueueFull where all places are taken and `wait` is False; ConfigError for a task that the pack does not
        have, for what is no candidate of it and for a task that needs a judge where none is named; InfrastructureError
        where the host or the pack failed, or the grader was closed."""
        executor = self._entered()
        with self._call() as scope:
            await self._take_place(wait)
            self._counts.inside += 1
            try:
                result = await self._judged(executor, self._order(task, candidate))
            except InfrastructureError:
                self._counts.errors += 1
                raise
            except anyio.get_cancelled_exc_class():
                self._counts.cancelled += not scope.cancel_called
                raise
            finally:
                self._counts.inside -= 1
                self._places.release()
            self._counts.statuses[str(result.status)] += 1
            return result
        self._counts.errors += 1
        raise InfrastructureError("the grader was closed")

    async def _judged(self, executor: Executor, order: Order) -> VerificationResult:
        done = await executor.carry_out(order, self._interruption)
        if done is None:
            raise InfrastructureError("the grader was stopped")
        return verdict(done.record)

    @contextmanager
    def _call(self) -> Iterator[anyio.CancelScope]:
        """A call under way, which closing ends."""
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                yield scope
            finally:
                self._calls.remove(scope)
                self._left.set()
                self._left = anyio.Event()

    async def grade_many(
        self, pairs: Iterable[tuple[Task, Candidate]] | AsyncIterable[tuple[Task, Candidate]]
    ) -> AsyncIterator[VerificationResult]:
        """A verdict for each pair, in their order. Not more pairs are under way than there are places, and not more
        than 16 times as many are taken before the first of them is shown, so an endless source is fine. Raises what
        `grade` raises, at the place of the pair that raised it."""
        window = Window(self.places)
        items = window.items
        try:
            async for task, candidate in each(pairs):
                self._tasks.start_soon(window.add().run, self.grade, task, candidate)
                while window.is_full:
                    if items[0].is_done or window.is_long:
                        yield await items[0].result()
                        items.popleft()
                    else:
                        await window.changed()
            while items:
                yield await items[0].result()
                items.popleft()
        finally:
            for waiting in items:
                waiting.scope.cancel()

    @property
    def places(self) -> int:
        """How many candidates are judged or wait in the queue at once."""
        return self._entered().places + self.queue

    @property
    def fault(self) -> SecureBenchError | None:
        """What keeps it from judging anything any more, such as a pack that changed; None while it judges."""
        return None if self._executor is None else self._executor.fault

    @property
    def metrics(self) -> GraderMetrics:
        """How it stands now."""
        counts, executor = self._counts, self._executor
        running = 0 if executor is None else executor.running
        return GraderMetrics(
            processes=self.processes,
            queue=self.queue,
            waiting=counts.waiting,
            queued=max(0, counts.inside - running),
            running=running,
            done=counts.statuses.total(),
            statuses=MappingProxyType(dict(counts.statuses)),
            errors=counts.errors,
            cancelled=counts.cancelled,
            refused=counts.refused,
            restarts=0 if executor is None else executor.restarts,
        )

    def _entered(self) -> Executor:
        if self._executor is None:
            raise ConfigError("a grader is used within its context: async with Grader(…) as grader")
        if self._owner != os.getpid():
            raise ConfigError("a grader cannot be used in a forked process; open one there")
        return self._executor

    async def _take_place(self, wait: bool) -> None:
        try:
            self._places.acquire_nowait()
            return
        except anyio.WouldBlock:
            if not wait:
                self._counts.refused += 1
                raise QueueFull(f"{self.queue} candidates are waiting already; come back later") from None
        self._counts.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._counts.waiting -= 1

    def _order(self, task: Task, candidate: Candidate) -> Order:
        """Raises ConfigError."""
        name = str(task.id if isinstance(task, SecureBenchTask) else task)
        row = self._rows.get(name)
        if row is None:
            shown = name[:100]
            raise ConfigError(f"the pack has no task {shown!r}{suggest(shown, islice(self._rows, _COMPARED))}")
        entry = self.pack.entries[row]
        if isinstance(task, SecureBenchTask) and task.row_digest != self.pack.row_digest(entry):
            raise ConfigError(f"task {name} is another one in this grader's pack")
        return Order(row, 1, sample=sample_line(name, FAMILIES[entry.family].candidate, candidate))
