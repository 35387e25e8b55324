"""`python -m securebench.cluster.node FD`: a node of the cluster. Looks at its own walls, then carries out what is
ordered, over a socket that it inherited. It ends when the head does, and leaves nothing.

Its key is made when it starts and never leaves it; the head decides whether to enrol it."""

from __future__ import annotations

import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from securebench import _json
from securebench._canonical import digest_bytes
from securebench._leftovers import clean_directories, staging_directory
from securebench._tasks import one_error, side_tasks
from securebench.candidates._blob_writing import STORED
from securebench.candidates.store import CandidateStore
from securebench.cluster import frames
from securebench.cluster.documents import (
    Brought,
    VerifyOrder,
    decoded,
    evidence_bytes,
    judged_json,
    pack_files,
    produced,
    producer_request,
    too_large,
    verify_order_from,
)
from securebench.cluster.doors import RemoteDoors
from securebench.cluster.images import Images
from securebench.cluster.setup import Machine, NodeReport, NodeSetup
from securebench.cluster.shipping import Item, StoredContents, items_from
from securebench.cluster.talk import LinkLost, Talk, asked_for
from securebench.engine.attempt import PRODUCE_GUARD, VERIFY_GUARD
from securebench.engine.court import Court, failed, open_court, tripped
from securebench.engine.executors.wire import MAX_FRAME, Connection, Frame, encode_fault
from securebench.errors import CandidateError, FailureReason, InfrastructureError, IntegrityError, SecureBenchError
from securebench.harnesses.base import HarnessProducer, ProducerRequest, Production
from securebench.harnesses.doors import ModelDoors
from securebench.harnesses.factory import build_harness_producer, check_program, needs_sandbox, prepare_overlays
from securebench.preparation import Prepared, prepare_sandbox
from securebench.records.keys import SigningKey, signing_key_from
from securebench.records.nodes import PRODUCE, VERIFY, Statement
from securebench.records.record import Judged, securebench_digest
from securebench.sandboxes.base import root_of

_EARLIER = 600.0  # seconds by which a node ends what takes too long before the head takes the node for lost
_FAREWELL = 30  # seconds to clean up after the head has gone


def main(descriptor: int) -> int:
    """Serve the head at the other end of `descriptor` until it goes away."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the head decides when to stop
    anyio.run(serve, Connection(socket.socket(fileno=descriptor)))
    return 0


async def serve(head: Connection) -> None:
    first = await head.receive()
    if first is None or first.kind != frames.SETUP:
        return
    try:
        async with one_error(), _open(NodeSetup.decode(first.data), head) as service:
            await head.send(frames.READY, 0, service.report.encode())
            await _Attempts(head, service).serve()
    except SecureBenchError as error:
        await head.send(frames.FAULT, 0, encode_fault(error))
    except ConnectionError:
        return


@dataclass(frozen=True, slots=True)
class _Service:
    """What a node carries attempts out with."""

    setup: NodeSetup
    report: NodeReport
    key: SigningKey
    store: CandidateStore
    contents: StoredContents
    producer: Callable[[ModelDoors | None], HarnessProducer] | None
    court: Court

    def signed(self, statement: Statement, brought: Brought) -> bytes:
        """A result: what came of it, what it brings, and our word for it."""
        document = {
            "statement": statement.model_dump(mode="json"),
            "signature": self.key.sign(statement.encode()).hex(),
            "brings": [list(item) for item in brought.items],
            "result": brought.document,
        }
        return _json.dumps(document).encode()

    def produced(self, request: ProducerRequest, production: Production) -> tuple[bytes, tuple[Item, ...]]:
        """A result of producing, and what it brings. Raises CandidateError for what is too large to be told."""
        brought = produced(production, self.store)
        candidate = production.candidate
        statement = Statement(
            phase=PRODUCE,
            run_id=self.setup.run_id,
            task_id=request.task_id,
            attempt=request.attempt,
            candidate=None if candidate is None else candidate.digest,
            securebench=self.setup.securebench,
            evidence=digest_bytes(evidence_bytes(brought.document)),
        )
        return _bounded(self.signed(statement, brought)), brought.items

    def judged(self, order: VerifyOrder, judged: Judged) -> bytes:
        """A result of verifying. Raises CandidateError for what is too large to be told."""
        # The number used once keeps anybody from trying out which private words were scrubbed from a record.
        document = {**judged_json(judged), "nonce": secrets.token_hex(16)}
        statement = Statement(
            phase=VERIFY,
            run_id=self.setup.run_id,
            task_id=order.task.id,
            attempt=order.attempt,
            row=order.task.row_digest,
            candidate=order.candidate.digest,
            status=str(judged.status),
            passed=judged.passed,
            score=judged.score,
            assurance=None if judged.assurance is None else str(judged.assurance),
            failure_reason=None if judged.failure_reason is None else str(judged.failure_reason),
            securebench=self.setup.securebench,
            evidence=digest_bytes(evidence_bytes(document)),
        )
        return _bounded(self.signed(statement, Brought(document)))


def _bounded(result: bytes) -> bytes:
    """The head would take more for no frame, and this node for none of its own."""
    if len(result) > MAX_FRAME:
        raise too_large("what came of it", len(result), MAX_FRAME)
    return result


@asynccontextmanager
async def _open(setup: NodeSetup, head: Connection) -> AsyncIterator[_Service]:
    """Raises ConfigError, IntegrityError, AuditFailed."""
    if setup.securebench != (ours := securebench_digest()):
        raise IntegrityError(f"this node has SecureBench {ours}, the head has {setup.securebench}; install the same")
    clean_directories()
    images = Images(image.sent() for image in setup.offered)
    key = signing_key_from(secrets.token_bytes(32))
    await _fetch_images(setup, images, head)
    config = setup.config()
    roots = [root_of(image) for image in setup.images]
    async with side_tasks() as tasks:
        tasks.start_soon(_notice_end, head)
        prepared, why_not = await _prepare(setup)
        notices: list[str] = list(prepared.notices)
        overlays = await prepare_overlays(config, prepared.sandbox, roots, notices.append) if setup.produces else {}
        if setup.produces and prepared.sandbox is not None:
            await check_program(config, prepared.sandbox, prepared.roots)
    producer = None
    if setup.produces and prepared.sandbox is not None and needs_sandbox(config):
        producer = partial(build_harness_producer, config, prepared.sandbox, overlays=overlays)
        producer(None)  # what cannot be built is said now
    report = NodeReport(
        key=key.id,
        machine=Machine.here(),
        backend=None if prepared.sandbox is None else prepared.sandbox.name,
        why_not=why_not,
        roots=tuple(image for image in setup.images if root_of(image) in prepared.roots),
        images=dict(prepared.images),
        audit=None if prepared.audit is None else dict(prepared.audit),
        tools={overlay.label: overlay.digest for overlay in overlays.values()},
        notices=tuple(notices),
    )
    with staging_directory() as private:
        private.chmod(0o700)
        store = CandidateStore(private / "candidates")
        contents = StoredContents(store, private / "pack", images)
        async with open_court(prepared.sandbox, store, b"", None, setup.policy(), warm=setup.sandbox.warm) as court:
            yield _Service(setup, report, key, store, contents, producer, court)


async def _notice_end(head: Connection) -> None:
    """Raises ConnectionError when the head is gone: then nobody needs what is being prepared."""
    await head.gone()
    raise ConnectionError


async def _fetch_images(setup: NodeSetup, images: Images, head: Connection) -> None:
    """Images of the run that are not here under any digest; one that is here under another stays as it is, and keeps
    this node from taking part. Docker's images are Docker's."""
    if setup.sandbox.backend == "docker" or not images.offered:
        return
    with staging_directory() as private:
        talk = Talk(head, 0, StoredContents(CandidateStore(private), images=images))

        async def listen() -> None:
            while (frame := await head.receive()) is not None:
                await talk.heard(frame)
            talk.end()

        async with side_tasks() as tasks:
            tasks.start_soon(listen)
            await talk.fetch(Item("i", digest) for digest in images.offered)


async def _prepare(setup: NodeSetup) -> tuple[Prepared, str | None]:
    """A sandbox for all the images, or for those that work here one by one; without one, why."""
    notices: list[str] = []

    async def prepared(images: Iterable[str | None]) -> Prepared:
        roots = [root_of(image) for image in images]
        return await prepare_sandbox(setup.sandbox, roots, notices.append, unsafe=setup.unsafe)

    try:
        return await prepared(setup.images), None
    except InfrastructureError as error:
        why = str(error)
    alone: dict[str | None, Prepared] = {}
    for image in setup.images if len(setup.images) > 1 else ():
        with suppress(InfrastructureError):
            alone[image] = await prepared([image])
    if len(alone) > 1:
        with suppress(InfrastructureError):
            return await prepared(alone), why
    return next(iter(alone.values()), Prepared(notices=tuple(notices))), why


class _Attempts:
    """Attempts under way, by number."""

    def __init__(self, head: Connection, service: _Service) -> None:
        self._head = head
        self._service = service
        self._talks: dict[int, Talk] = {}
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._full = False

    async def serve(self) -> None:
        """Until the head goes away; then everything is ended."""
        async with anyio.create_task_group() as group:
            while (frame := await self._head.receive()) is not None:
                match frame.kind:
                    case frames.PING:
                        group.start_soon(self._say, frames.PING)
                    case frames.PRODUCE | frames.VERIFY:
                        talk = Talk(self._head, frame.number, self._service.contents)
                        self._talks[frame.number], self._scopes[frame.number] = talk, anyio.CancelScope()
                        group.start_soon(self._carry_out, talk, frame)
                    case frames.CANCEL if frame.number in self._scopes:
                        self._scopes[frame.number].cancel()
                    case _ if frame.number in self._talks:
                        await self._talks[frame.number].heard(frame)
            signal.alarm(_FAREWELL)  # what hangs in being ended or in cleaning up must not stay for ever
            group.cancel_scope.cancel()

    async def _say(self, kind: int) -> None:
        with suppress(ConnectionError):
            await self._head.send(kind)

    async def _carry_out(self, talk: Talk, order: Frame) -> None:
        kind, answer = frames.CANCELLED, b""
        try:
            with self._scopes[talk.number]:
                try:
                    work = self._produce if order.kind == frames.PRODUCE else self._verify
                    result, items = await work(talk, order.data)
                    await talk.say(frames.RESULT, result)
                    while (frame := await talk.hear()).kind != frames.NEED:
                        pass
                    await talk.ship(asked_for(frame.data, items))
                    return
                except SecureBenchError as error:
                    kind, answer = frames.FAULT, encode_fault(error)
                except Exception as error:  # noqa: BLE001 — other attempts go on
                    fault = InfrastructureError(f"a node of ours failed: {type(error).__name__}: {error}")
                    kind, answer = frames.FAULT, encode_fault(fault)
            await talk.say(kind, answer)
        except LinkLost:
            return
        finally:
            del self._talks[talk.number], self._scopes[talk.number]
            talk.close()
            await self._look_at_cache()

    async def _look_at_cache(self) -> None:
        """Once more lies here than may, the head gives this node no more work and has it begin anew."""
        if not self._full and STORED.bytes > self._service.setup.cache:
            self._full = True
            await self._say(frames.DRAIN)

    async def _produce(self, talk: Talk, data: bytes) -> tuple[bytes, tuple[Item, ...]]:
        service = self._service
        request = producer_request(data, service.contents.place, service.store)
        await talk.fetch(Item("p", file.digest) for file in pack_files(request.view))
        await anyio.to_thread.run_sync(service.contents.lay_out, pack_files(request.view))
        doors = await RemoteDoors.asked(talk) if service.setup.models else None

        async def started(argv: tuple[str, ...]) -> None:
            """The head writes down that the agent starts before it does."""
            await talk.say(frames.STARTED, _json.dumps(list(argv)).encode())
            while (await talk.hear()).kind != frames.GO:
                pass

        said = _Said(talk)
        async with side_tasks() as tasks:
            tasks.start_soon(said.pass_on)
            request = replace(request, on_output=said.output, on_command=started, on_progress=said.reading)
            production = await _produced(service, request, doors)
            await said.end()
        return await anyio.to_thread.run_sync(_told, service, request, production)

    async def _verify(self, talk: Talk, data: bytes) -> tuple[bytes, tuple[Item, ...]]:
        service = self._service
        if not service.setup.verifies:
            raise InfrastructureError("this node does not verify")
        value: Any = decoded("an order to verify", data, dict)
        await talk.fetch(items_from(value.get("needs")))
        place, store = service.contents.place, service.store
        order = await anyio.to_thread.run_sync(
            decoded, "an order to verify", data, lambda value: verify_order_from(value, place, store)
        )
        await anyio.to_thread.run_sync(service.contents.lay_out, pack_files(order.task.resources))
        judged = failed(CandidateError(FailureReason.WORKER_TIMEOUT, "verifying took too long in all"))
        with anyio.move_on_after(VERIFY_GUARD - _EARLIER):
            judged = await replace(service.court, seed=order.seed).judged(order.task, order.candidate)
        try:
            return service.judged(order, judged), ()
        except CandidateError as error:
            return service.judged(order, failed(error)), ()


async def _produced(service: _Service, request: ProducerRequest, doors: RemoteDoors | None) -> Production:
    """Where our own code trips over what an agent left, that is the agent's failure, here as on the head."""
    if service.producer is None:
        raise InfrastructureError("this node does not produce")
    try:
        with anyio.move_on_after(PRODUCE_GUARD - _EARLIER):
            return await service.producer(doors).produce(request)
        failure = CandidateError(FailureReason.PRODUCER_TIMEOUT, "producing took too long in all")
    except CandidateError as error:
        failure = error
    except SecureBenchError:
        raise
    except Exception as error:  # noqa: BLE001 — as above
        failure = CandidateError(FailureReason.INTERNAL_ERROR, tripped(error).message)
    return Production(None, failure=failure)


def _told(service: _Service, request: ProducerRequest, production: Production) -> tuple[bytes, tuple[Item, ...]]:
    """What cannot be told is the candidate's failure, too."""
    try:
        return service.produced(request, production)
    except CandidateError as error:
        failure = error
    except SecureBenchError:
        raise
    except Exception as error:  # noqa: BLE001 — as above
        failure = CandidateError(FailureReason.INTERNAL_ERROR, tripped(error).message)
    without = Production(None, failure=failure, fault=production.fault, usage=production.usage)
    return service.produced(request, without)


class _Said:
    """What an agent prints, on its way to the head. Bounded: what the head does not take in time is not shown; the
    record has it all the same."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._give, self._take = anyio.create_memory_object_stream[tuple[int, bytes]](256)
        self._all = anyio.Event()

    def output(self, stream: str, data: bytes) -> None:
        self._put(frames.OUTPUT, stream.encode() + b"\0" + data)

    def reading(self, doing: str, files: int, size: int) -> None:
        self._put(frames.READING, _json.dumps([doing, files, size]).encode())

    def _put(self, kind: int, data: bytes) -> None:
        try:
            self._give.send_nowait((kind, data))
        except (anyio.WouldBlock, anyio.ClosedResourceError):
            return

    async def end(self) -> None:
        """Returns when everything has been passed on."""
        self._give.close()
        await self._all.wait()

    async def pass_on(self) -> None:
        try:
            with self._give, self._take:
                async for kind, data in self._take:
                    await self._talk.say(kind, data)
        finally:
            self._all.set()


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
