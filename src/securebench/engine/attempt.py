"""One attempt at one task, from nothing to a record. Total: whatever happens, there is exactly one record.

Whose fault it was decides the status. What the candidate can cause is `failed`; what the host or the pack caused
is `error`; and where our own code trips over candidate bytes, that is `failed` too, so that crashing us is never
a way out of the score.

Only the host's faults are tried again, a bounded number of times, and each repeat is recorded: producing only as long
as the agent had not started, verifying only on the same stored candidate."""

from __future__ import annotations

import codecs
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from securebench import _json
from securebench.candidates.store import CandidateStore
from securebench.engine.court import Judging, failed, tripped
from securebench.engine.executors.base import Done
from securebench.engine.shelf import Shelf
from securebench.engine.stopwatch import Stopwatch
from securebench.errors import (
    CandidateError,
    ConfigError,
    FailureReason,
    InfrastructureError,
    IntegrityError,
)
from securebench.families.registry import family
from securebench.harnesses.base import HarnessProducer, ProducerRequest, Production
from securebench.progress import Event, Progress, ProgressEvent
from securebench.records.record import Identity, Judged, candidate_record
from securebench.records.redaction import Redactor
from securebench.records.store import MAX_LINE, encode_record, line_size
from securebench.resources import Component
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Status

_SMALL = 16 * 1024  # characters that are scrubbed in no time
_SHELF = 4 * 2**20  # characters of private values whose scrubbing is kept prepared
REPEATS = 2
_WAITS = (1.0, 5.0)
PRODUCE_GUARD = 26 * 3600.0
VERIFY_GUARD = 2 * 3600.0
"""Seconds after which a phase is ended although everything in it has limits of its own. What made it so slow is then
the candidate, so that is who fails."""


class Unmendable(InfrastructureError):
    """A fault of the host that is the same at every repeat."""


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What all attempts of a run share."""

    identity: Identity
    producer: HarnessProducer
    progress: Progress
    store: CandidateStore
    court: Judging
    longest_record: int = MAX_LINE
    redactors: Shelf[str, Redactor] = field(default_factory=lambda: Shelf(_SHELF))  # by the digest of the task's row


@dataclass(slots=True)
class Attempt:
    """One attempt on its way. `lost` counts starts of its agent that a killed engine left without a record."""

    context: AttemptContext
    task: SecureBenchTask
    number: int
    lost: int = 0
    sample: bytes | None = None  # a candidate that was produced elsewhere
    line: int | None = None  # of its file
    repeats: list[Mapping[str, Any]] = field(default_factory=list)
    production: Production = field(default_factory=lambda: Production(candidate=None))
    judged: Judged | None = None
    evidence: dict[str, dict[str, Any]] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=lambda: {"started_at": time.time()})
    agent_started: bool = False

    def emit(self, event: Event, **data: Any) -> None:
        self.context.progress(ProgressEvent(event, self.task.id, self.number, data))

    async def produce(self) -> None:
        """Ends in a production, or in a verdict where producing already decided it."""
        self.emit(Event.TASK_START, task_type=self.task.task_type)
        self.emit(Event.PRODUCER_START)
        watch = Stopwatch(PRODUCE_GUARD)
        with watch.running():
            self.judged = await self._faults_repeated("produce", self._produce, lambda: not self.agent_started)
        if watch.expired:
            self.judged = failed(CandidateError(FailureReason.PRODUCER_TIMEOUT, "producing took too long in all"))
        self.timings["produce_seconds"] = watch.seconds
        reason = self.judged and self.judged.failure_reason
        self.emit(Event.PRODUCER_DONE, seconds=round(self.timings["produce_seconds"], 3), failure_reason=reason)

    async def verify(self) -> None:
        """Ends in a verdict. Nothing to do where there is one already."""
        self.timings["verify_seconds"] = 0.0
        if self.judged is not None:
            return
        self.emit(Event.VERIFIER_START)
        watch = Stopwatch(VERIFY_GUARD)
        with watch.running():
            self.judged = await self._faults_repeated("verify", self._verify, lambda: True)
        if watch.expired or self.judged is None:
            self.judged = failed(CandidateError(FailureReason.WORKER_TIMEOUT, "verifying took too long in all"))
        self.timings["verify_seconds"] = watch.seconds
        self.emit(Event.VERIFIER_DONE, status=self.judged.status)

    async def record(self) -> Done:
        """The one record of this attempt. Made in a thread unless it is small: scrubbing what a candidate wrote can
        take long, and nobody else's time may run out meanwhile."""
        judged = self.judged
        quick = judged is None or _length(judged) <= _SMALL
        if quick and not self.repeats and self.task.row_digest in self.context.redactors:
            return self._record()
        return await anyio.to_thread.run_sync(self._record)

    def _record(self) -> Done:
        """One that cannot be written because of what the candidate made is written without it: otherwise a candidate
        could end the run."""
        judged = self.judged or failed(CandidateError(FailureReason.NO_CANDIDATE, "nothing was produced"))
        try:
            record = self._recorded(judged, _produced(self.production))
            body = encode_record(record)
            if (size := line_size(body)) > self.context.longest_record:
                message = f"its record has {size} bytes; at most {self.context.longest_record} are kept"
                raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, message)
        except Exception as error:  # noqa: BLE001 — what trips over a candidate never ends the run
            judged = failed(error) if isinstance(error, CandidateError) else tripped(error)
            record = self._recorded(judged, {"usage": dict(self.production.usage)})
            body = encode_record(record)
        return Done(body, record)

    def _recorded(self, judged: Judged, produced: dict[str, Any]) -> dict[str, Any]:
        history = {"repeats": self.repeats, "lost_starts": self.lost}
        produced = produced | {"evidence": self.evidence}
        redact = self.context.redactors.get(self.task.row_digest, self._redactor)
        return candidate_record(
            self.context.identity, self.task, self.number, produced, judged, self.timings, history, redact
        )

    def _redactor(self) -> tuple[Redactor, int]:
        secrets = self.task.resources.secrets()
        return Redactor(secrets, self.task.resources.public()), len(_json.dumps(secrets))

    async def _faults_repeated(
        self, phase: str, work: Callable[[], Awaitable[Judged | None]], may_repeat: Callable[[], bool]
    ) -> Judged | None:
        for wait in (*_WAITS[:REPEATS], None):
            try:
                return await work()
            except (ConfigError, IntegrityError, Unmendable) as error:
                return Judged(Status.ERROR, message=str(error))
            except InfrastructureError as error:
                if wait is None or not may_repeat():
                    return Judged(Status.ERROR, message=str(error))
                self.repeats.append({"phase": phase, "fault": str(error)[:2000], "waited_seconds": wait})
                await anyio.sleep(wait)
            except CandidateError as error:
                return failed(error)
            except Exception as error:  # noqa: BLE001 — the boundary that keeps one task from ending the run
                return tripped(error)
        raise AssertionError  # the last round returns

    async def _produce(self) -> Judged | None:
        decoders: dict[str, codecs.IncrementalDecoder] = defaultdict(
            partial(codecs.getincrementaldecoder("utf-8"), "replace")
        )  # a piece may end in a character

        def show(stream: str, data: bytes) -> None:
            if text := decoders[stream].decode(data):
                self.emit(Event.PRODUCER_OUTPUT, stream=stream, text=text)

        async def started(argv: tuple[str, ...]) -> None:
            self.agent_started = True
            self.emit(Event.AGENT_STARTED)
            self.emit(Event.SANDBOX_COMMAND, argv=list(argv))

        def reading(doing: str, files: int, size: int) -> None:
            self.emit(Event.WORKSPACE_PROGRESS, doing=doing, files=files, bytes=size)

        task, store = self.task, self.context.store
        request = ProducerRequest(
            task_id=task.id,
            attempt=self.number,
            kind=family(task.task_type).candidate,
            payload=task.agent_payload(),
            view=task.view_for(Component.AGENT),
            environment=task.environment,
            store=store,
            sample=self.sample,
            line=self.line,
            on_output=show,
            on_command=started,
            on_progress=reading,
        )
        self.production = await self.context.producer.produce(request)
        self.evidence = {
            name: {"digest": store.put(data), "size": len(data)} for name, data in self.production.evidence.items()
        }
        if self.production.fault is not None:
            return Judged(Status.ERROR, message=self.production.fault)
        return None if self.production.failure is None else failed(self.production.failure)

    async def _verify(self) -> Judged:
        return await self.context.court.judged(self.task, self.production.candidate, self.number)


def _length(judged: Judged) -> int:
    """How much there is to scrub, about."""
    texts = (judged.message, judged.stdout, judged.stderr, repr(judged.metadata), repr(judged.controls))
    return sum(map(len, texts))


def _produced(production: Production) -> dict[str, Any]:
    candidate = production.candidate
    return {
        "text": candidate and candidate.text,
        "patch": candidate and candidate.patch,
        "workspace": candidate and candidate.workspace,
        "digest": candidate and candidate.digest,
        "stdout": production.stdout,
        "stderr": production.stderr,
        "metadata": dict(production.metadata),
        "usage": dict(production.usage),
        "voucher": production.voucher,
    }
