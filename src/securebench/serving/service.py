"""What the server does, apart from HTTP: takes candidates in within its bounds, has them judged, counts."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import anyio

from securebench._schema import suggest
from securebench._tasks import one_error
from securebench.benchmark_pack import BenchmarkPack, candidate_kinds
from securebench.errors import ConfigError, SecureBenchError
from securebench.families.base import CandidateKind
from securebench.grading import Candidate, Grader
from securebench.grading.results import sample_line
from securebench.serving.access import Refusal
from securebench.serving.limits import ServeLimits
from securebench.serving.models import (
    BatchLine,
    ErrorBody,
    GradeRequest,
    State,
    TaskInfo,
    TaskList,
    Verdict,
)
from securebench.serving.pace import Pace

Notice = Callable[[str], None]
"""Called with one line for the operator."""

_NOT_READY = {
    "starting": "the server is starting",
    "stopping": "the server is stopping",
    "failed": "the server has failed and ends; nothing was scored",
    "ok": "the server was not ready",
}
_COMPARED = 20_000  # names that a misspelt one is compared with


@dataclass(slots=True)
class Counts:
    """What happened since the start."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # (endpoint, status)
    connections: int = 0
    lost: int = 0  # requests whose client went away before its answer
    seconds: float = 0.0  # spent on verdicts
    verdicts: int = 0


class Held:
    """Room that one request holds, and how many of its candidates are left to be judged."""

    def __init__(self, pace: Pace, more: int) -> None:
        self._pace, self._left = pace, more
        pace.change(more, time.monotonic())

    def judged(self, now: float) -> None:
        """One more."""
        self._pace.verdict(now)
        self._pace.change(-1, now)
        self._left -= 1

    def close(self) -> None:
        self._pace.change(-self._left, time.monotonic())


class Service:
    """Judges for one pack. `grader` is None until it is ready, and `stopping` when no more is taken."""

    def __init__(self, pack: BenchmarkPack, limits: ServeLimits, notice: Notice, *, details: bool = False) -> None:
        self.pack, self.limits, self.counts = pack, limits, Counts()
        self.grader: Grader | None = None
        self.stopping = False
        self.pending = 0  # candidates for which there is no room any more
        self._pace = Pace()
        self.connections = 0  # open now
        self._notice, self._details = notice, details

    @property
    def state(self) -> State:
        if self.grader is not None and self.grader.fault is not None:
            return State(status="failed")
        return State(status="stopping" if self.stopping else "starting" if self.grader is None else "ok")

    @cached_property
    def tasks(self) -> TaskList:
        """What can be asked for."""
        tasks = tuple(
            TaskInfo(id=entry.id, family=entry.family, candidate=str(self._kinds[entry.id]), tags=entry.tags)
            for entry in self.pack.entries
        )
        return TaskList(benchmark=self.pack.manifest.id, pack_digest=self.pack.digest, tasks=tasks)

    def check_room(self, more: int = 1) -> None:
        """Whether that many more candidates may be taken in. Raises Refusal."""
        if self.state.status != "ok":
            raise self._not_ready()
        if self.pending + more > self.limits.queue:
            raise self.busy(f"{self.pending} candidates are waiting, and {self.limits.queue} may; come back later")

    def busy(self, message: str) -> Refusal:
        """Whoever asked is to come back when about as many are judged as wait now."""
        return Refusal(429, "too_many", message, ("Retry-After", str(self._pace.seconds_left(time.monotonic()))))

    @contextmanager
    def room(self, more: int) -> Iterator[Held]:
        """That many places while the context lasts. Raises Refusal."""
        self.check_room(more)
        self.pending += more
        held = Held(self._pace, more)
        try:
            yield held
        finally:
            self.pending -= more
            held.close()

    async def grade(self, request: GradeRequest) -> Verdict:
        """One verdict. Raises Refusal."""
        with self.room(1) as held:
            return await self._judge(request, held)

    async def grade_batch(
        self,
        items: Sequence[GradeRequest],
        tell: Callable[[BatchLine], Awaitable[None]],
        why_ended: Callable[[], Refusal],
        held: Held,
    ) -> None:
        """A line for each item, in order of completion. When the work is ended early, the others are told why."""
        left = iter(enumerate(items))
        told: set[int] = set()
        speaking = anyio.Lock()

        async def say(line: BatchLine) -> None:
            async with speaking:
                told.add(line.index)
                await tell(line)

        async def lane() -> None:
            for index, item in left:
                try:
                    line = BatchLine(index=index, verdict=await self._judge(item, held))
                except Refusal as refusal:
                    line = BatchLine(index=index, error=error_body(refusal))
                await say(line)

        try:
            async with one_error(), anyio.create_task_group() as tasks:
                # No more than are judged at once: a batch leaves the other places to others.
                for _ in range(min(len(items), self._judging().places)):
                    tasks.start_soon(lane)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                for index in range(len(items)):
                    if index not in told:
                        await say(BatchLine(index=index, error=error_body(why_ended())))
            raise

    def check(self, items: Sequence[GradeRequest]) -> None:
        """Whether there are such tasks and these are candidates of theirs. Raises Refusal for the first that is not."""
        for index, item in enumerate(items):
            where = f"items[{index}]: " if len(items) > 1 else ""
            if item.task not in self._kinds:
                near = suggest(item.task[:100], islice(self._kinds, _COMPARED))
                raise Refusal(404, "unknown_task", f"{where}the pack has no task {item.task[:100]!r}{near}")
            try:
                sample_line(item.task, self._kinds[item.task], _candidate(item))
            except ConfigError as error:
                raise Refusal(422, "not_a_candidate", f"{where}{str(error)[:500]}") from None

    async def _judge(self, request: GradeRequest, held: Held) -> Verdict:
        began = time.monotonic()
        try:
            result = await self._judging().grade(request.task, _candidate(request))
        except SecureBenchError as error:
            raise self._failed(error) from error
        now = time.monotonic()
        self.counts.seconds += now - began
        self.counts.verdicts += 1
        held.judged(now)
        return Verdict.of(result, self._details)

    def _failed(self, error: SecureBenchError) -> Refusal:
        """Nobody's verdict: the operator is told what, whoever asked is told that it was not the candidate."""
        self._notice(f"no verdict: {error}")
        return Refusal(503, "infrastructure", "the host or the pack failed; nothing was scored")

    def tripped(self, error: Exception) -> None:
        """Our own code failed on a request: the operator is told where, and nothing of the request."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        self._notice(
            f"internal error: {type(error).__name__} in {where.name} (line {where.lineno}); please report this"
        )

    def _judging(self) -> Grader:
        """Also while it stops: what was taken in is judged. Raises Refusal."""
        if self.grader is None:
            raise self._not_ready()
        return self.grader

    def _not_ready(self) -> Refusal:
        return Refusal(503, "not_ready", _NOT_READY[self.state.status], ("Retry-After", "5"))

    @cached_property
    def _kinds(self) -> dict[str, CandidateKind]:
        return candidate_kinds(self.pack)


def _candidate(request: GradeRequest) -> Candidate:
    return request.candidate if isinstance(request.candidate, str) else request.candidate.model_dump()


def error_body(refusal: Refusal) -> ErrorBody:
    """What a refusal says."""
    return ErrorBody(code=refusal.code, message=str(refusal))
