"""Producing and judging on other machines, behind the same two protocols as here: what makes an attempt of them does
not know the difference.

Text is judged where the head is: nothing is executed, so no answer has to leave it. So is whatever a model judges,
because that needs a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from pydantic import ValidationError

from securebench import _json
from securebench._canonical import digest_bytes
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.cluster import frames
from securebench.cluster.desk import ModelDesk, connection_places, open_desk
from securebench.cluster.documents import (
    Most,
    decoded,
    delta_bytes,
    evidence_bytes,
    judged_from,
    most_brought,
    pack_files,
    produce_order,
    production_from,
    too_large,
    trees_of,
    verify_order,
)
from securebench.cluster.members import Cluster, Member
from securebench.cluster.placement import Need
from securebench.cluster.shipping import Contents, Item, WithOneMore, items_from
from securebench.cluster.talk import LinkLost, Talk, asked_for
from securebench.egress.broker import Broker
from securebench.engine.admission import verifier_memory
from securebench.engine.attempt import PRODUCE_GUARD, VERIFY_GUARD, AttemptContext
from securebench.engine.court import Court, failed
from securebench.engine.executors.wire import MAX_FRAME, Frame, decode_fault
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError, InfrastructureError, IntegrityError, SecureBenchError
from securebench.families.registry import FAMILIES
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.factory import needs_sandbox
from securebench.records.nodes import PRODUCE, VERIFY, Statement, Voucher, vouch
from securebench.records.record import Judged, securebench_digest
from securebench.sandboxes.base import Limits
from securebench.tasks import SecureBenchTask
from securebench.tester_config import SandboxSection, TesterConfig

_ANSWER_SECONDS = 300.0  # that a node has at least before the attempt itself takes too long; nodes end theirs earlier
_VERDICT = ("status", "passed", "score", "assurance", "failure_reason")
Handler = Callable[[Talk, Frame], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Answer:
    """A result that its node vouches for, and whose contents are here."""

    result: Any
    voucher: Voucher
    brought: bool  # whether there were any


@dataclass(frozen=True, slots=True)
class _Order:
    """What a node is asked: the document, the contents it may ask for in turn, what its answer must be about, the
    contents that may come with it, how long it may take, and where the contents are."""

    kind: int
    data: bytes
    items: tuple[Item, ...]
    expected: Mapping[str, Any]
    brings: Most
    seconds: float
    contents: Contents

    @property
    def attempt(self) -> object:
        return tuple(self.expected[name] for name in ("phase", "task_id", "attempt"))


async def _ask(cluster: Cluster, member: Member, order: _Order, on: Handler) -> _Answer:
    """Raises LinkLost, what the node says went wrong, and IntegrityError for what cannot be believed and when it says
    nothing in time; then the node is not asked again."""
    with anyio.move_on_after(order.seconds):
        return await _asked(cluster, member, order, on)
    with _expelled(cluster, member):
        raise IntegrityError(f"node {member.name} has not answered for {order.seconds:.0f} s")


async def _asked(cluster: Cluster, member: Member, order: _Order, on: Handler) -> _Answer:
    async with member.talk(order.contents) as talk:
        await talk.say(order.kind, order.data)
        while (frame := await talk.hear()).kind != frames.RESULT:
            match frame.kind:
                case frames.NEED:
                    with _expelled(cluster, member):
                        items = asked_for(frame.data, order.items)
                    await talk.ship(items)
                case frames.FAULT:
                    with _expelled(cluster, member):
                        fault = decode_fault(frame.data)
                    cluster.failed_at(member, order.attempt)
                    raise fault
                case frames.CANCELLED:
                    raise InfrastructureError(f"node {member.name} stopped what it was at")
                case _:
                    with _expelled(cluster, member):
                        await on(talk, frame)
        with _expelled(cluster, member):
            answer = await _believed(cluster, member, talk, frame.data, order)
        member.faults.clear()
        return answer


@contextmanager
def _expelled(cluster: Cluster, member: Member) -> Iterator[None]:
    """A node that says what none of ours says gets nothing more. Whatever its words make our own code trip over is
    that, too: it is nobody's verdict, and least of all the candidate's."""
    try:
        yield
    except IntegrityError as error:
        cluster.expel(member, str(error))
        raise
    except SecureBenchError:
        raise
    except OSError as error:
        raise InfrastructureError(f"what node {member.name} sent cannot be kept: {error}") from error
    except Exception as error:
        why = f"not words of ours: {type(error).__name__}: {error}"
        cluster.expel(member, why)
        raise IntegrityError(why) from error


async def _believed(cluster: Cluster, member: Member, talk: Talk, data: bytes, order: _Order) -> _Answer:
    value: dict[str, Any] = decoded("a result", data, dict)
    try:
        statement = Statement.model_validate(value.get("statement"))
        signature = bytes.fromhex(str(value.get("signature")))
    except (ValidationError, ValueError):
        raise IntegrityError(f"node {member.name} sent a result without its word for it") from None
    voucher = vouch(cluster.node_of(member), statement, signature)
    result = value.get("result")
    if not isinstance(result, dict) or digest_bytes(evidence_bytes(result)) != statement.evidence:
        raise IntegrityError(f"node {member.name} vouches for another result than it sent")
    for name, wanted in order.expected.items():
        if getattr(statement, name) != wanted:
            raise IntegrityError(f"node {member.name} was asked about {name} {wanted!r} and answers about another")
    brings = items_from(value.get("brings"))
    if len(brings) > order.brings.items or any(item.kind not in ("b", "t") for item in brings):
        raise IntegrityError(f"node {member.name} brings what nobody asked for")
    async with cluster.fetching() if brings else nullcontext():
        await talk.fetch(brings, always=True, at_most=order.brings.size)
    return _Answer(result, voucher, bool(brings))


@dataclass(frozen=True, slots=True)
class RemoteProducer:
    """Has nodes produce. Nothing but the agent's view goes there; models are asked from here, with keys that stay."""

    cluster: Cluster
    run_id: str
    store: CandidateStore
    limits: SandboxSection
    cpus: float
    broker: Broker | None = None
    places: anyio.Semaphore = field(default_factory=connection_places)

    def memory(self, environment: TaskEnvironment) -> int:  # noqa: ARG002 — the protocol's shape
        return 0  # of this host

    async def produce(self, request: ProducerRequest) -> Production:
        self.cluster.contents.know(pack_files(request.view))
        order = _Order(
            frames.PRODUCE,
            produce_order(request),
            tuple(Item("p", file.digest) for file in pack_files(request.view)),
            {
                "phase": PRODUCE,
                "run_id": self.run_id,
                "task_id": request.task_id,
                "attempt": request.attempt,
                "securebench": securebench_digest(),
            },
            most_brought(request.kind),
            PRODUCE_GUARD - _ANSWER_SECONDS,
            self.cluster.contents,
        )

        async def on(desk: ModelDesk, talk: Talk, frame: Frame) -> None:
            match frame.kind:
                case frames.MODELS:
                    await desk.models(talk)
                case frames.ACCOUNT:
                    desk.account(talk)
                case frames.PROBE:
                    desk.probe(talk)
                case frames.STARTED:
                    if request.on_command is not None:
                        await request.on_command(decoded("a command", frame.data, _words))
                    await talk.say(frames.GO)
                case frames.OUTPUT if request.on_output is not None:
                    stream, _, data = frame.data.partition(b"\0")
                    request.on_output(stream.decode("ascii", "replace"), data)
                case frames.READING if request.on_progress is not None:
                    request.on_progress(*decoded("progress", frame.data, _reading))

        async with self.cluster.placed(self._need(request.environment), order.attempt) as member:
            try:
                async with open_desk(self.broker, request.task_id, self.places) as desk:
                    answer = await _ask(self.cluster, member, order, partial(on, desk))
            except LinkLost:
                raise InfrastructureError(f"node {member.name} was lost while it produced") from None
        with _expelled(self.cluster, member):
            if answer.brought:
                production = await anyio.to_thread.run_sync(production_from, answer.result, self.store)
            else:
                production = production_from(answer.result, self.store)
            candidate = production.candidate
            if (None if candidate is None else candidate.digest) != answer.voucher.statement.candidate:
                raise IntegrityError(f"node {member.name} vouches for another candidate than it sent")
            if candidate is not None and (candidate.task_id, candidate.kind) != (request.task_id, request.kind):
                raise IntegrityError(f"node {member.name} sent a candidate for something else")
            if candidate is not None and not all(map(self.store.has_tree, trees_of(candidate))):
                raise IntegrityError(f"node {member.name} did not send all that its candidate is made of")
            usage = desk.check(production)
        return replace(production, usage=usage, voucher=answer.voucher.model_dump(mode="json"))

    def _need(self, environment: TaskEnvironment) -> Need:
        section = self.limits
        memory = environment.memory or (section.memory if isinstance(section.memory, int) else None)
        disk = environment.disk or (section.disk if isinstance(section.disk, int) else None)
        return Need(
            PRODUCE,
            environment.cpus or section.cpus or self.cpus,
            memory or Limits().memory,
            disk or 0,
            environment.image,
        )


@dataclass(frozen=True, slots=True)
class RemoteCourt:
    """Has nodes judge what must be executed; `here` judges the rest."""

    cluster: Cluster
    run_id: str
    store: CandidateStore
    here: Court
    cpus: float

    async def judged(self, task: SecureBenchTask, candidate: CandidateArtifact | None, attempt: int = 1) -> Judged:
        if candidate is None or not FAMILIES[task.task_type].executes:
            return await self.here.judged(task, candidate)
        self.cluster.contents.know(pack_files(task.resources))
        try:
            if candidate.text is not None:
                order = self._order(task, candidate, attempt)
            else:
                order = await anyio.to_thread.run_sync(self._order, task, candidate, attempt)
        except CandidateError as error:
            return failed(error)
        environment = task.environment
        memory = verifier_memory(task.task_type, environment.memory)
        need = Need(VERIFY, environment.cpus or self.cpus, memory, environment.disk or 0, environment.image)
        async with self.cluster.placed(need, order.attempt) as member:
            try:
                answer = await _ask(self.cluster, member, order, _ignore)
            except LinkLost:
                raise InfrastructureError(f"node {member.name} was lost while it verified") from None
        with _expelled(self.cluster, member):
            judged, said = judged_from(answer.result), answer.voucher.statement
            if any(getattr(judged, name) != getattr(said, name) for name in _VERDICT):
                raise IntegrityError(f"node {member.name} vouches for another verdict than it sent")
        return replace(judged, voucher=answer.voucher.model_dump(mode="json"))

    def _order(self, task: SecureBenchTask, candidate: CandidateArtifact, attempt: int) -> _Order:
        """Raises CandidateError for a candidate that is too large to be sent."""
        brought = verify_order(task, attempt, candidate, self.here.seed, self.store)
        data = _json.dumps({**brought.document, "needs": [list(item) for item in brought.items]}).encode()
        if len(data) > MAX_FRAME:
            raise too_large("an order to verify it", len(data), MAX_FRAME)
        expected = {
            "phase": VERIFY,
            "run_id": self.run_id,
            "task_id": task.id,
            "attempt": attempt,
            "row": task.row_digest,
            "candidate": candidate.digest,
            "securebench": securebench_digest(),
        }
        contents: Contents = self.cluster.contents
        if candidate.delta is not None:
            item = Item("b", str(brought.document["delta"]))
            contents = WithOneMore(contents, item, partial(delta_bytes, candidate.delta))
        return _Order(
            frames.VERIFY, data, brought.items, expected, Most(0, 0), VERIFY_GUARD - _ANSWER_SECONDS, contents
        )


def _words(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value))


def _reading(value: Any) -> tuple[str, int, int]:
    doing, files, size = value
    return str(doing), int(files), int(size)


async def _ignore(talk: Talk, frame: Frame) -> None:
    """Nobody waits for what a verifier prints."""


def on_cluster(
    context: AttemptContext, cluster: Cluster, here: Court, config: TesterConfig, broker: Broker | None
) -> AttemptContext:
    """The same attempts, carried out by nodes. Whoever only asks a model, or has its candidates already, goes on
    producing here."""
    run_id, store, cpus = context.identity.run_id, context.store, config.executor.cpus
    producer = context.producer
    if needs_sandbox(config):
        producer = RemoteProducer(cluster, run_id, store, config.sandbox, cpus, broker)
    return replace(context, producer=producer, court=RemoteCourt(cluster, run_id, store, here, cpus))
