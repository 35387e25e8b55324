"""The head's side of an agent on a node that asks models: the attempt's own session with the broker, which answers on
connections that the node carries here. Keys stay where they are."""

from __future__ import annotations

import resource
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from securebench import _json
from securebench._tasks import side_tasks
from securebench.cluster import frames
from securebench.cluster.streams import Stream, stream_of
from securebench.cluster.talk import LinkLost, Talk
from securebench.egress.broker import Broker, BrokerSession
from securebench.egress.broker.server import Counter
from securebench.engine.executors.wire import Frame
from securebench.errors import IntegrityError
from securebench.harnesses.base import Production
from securebench.harnesses.outlets import BROKER_PORT

_DESCRIPTORS = 2**18
_OTHERS = 512  # descriptors that this process needs besides
_EACH = 3  # of a connection: both ends of its socket pair, and the provider's
_LEAST = 64


@asynccontextmanager
async def open_desk(broker: Broker | None, label: str, places: anyio.Semaphore) -> AsyncIterator[ModelDesk]:
    """For one attempt; when the context is left, everything that was under way for it is over."""
    async with AsyncExitStack() as stack, side_tasks() as tasks:
        yield ModelDesk(broker, label, places, stack, tasks)


def connection_places() -> anyio.Semaphore:
    """For the connections of all attempts together: others need descriptors, too, and records are written here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return anyio.Semaphore(max(_LEAST, (max(soft, wanted) - _OTHERS) // _EACH))


class ModelDesk:
    """Answers what a node says about models. `session` is there once it has asked for one."""

    def __init__(
        self, broker: Broker | None, label: str, places: anyio.Semaphore, stack: AsyncExitStack, tasks: TaskGroup
    ) -> None:
        self.session: BrokerSession | None = None
        self._broker, self._label, self._places, self._stack, self._tasks = broker, label, places, stack, tasks
        self._asked = self._accounted = self._probed = False
        self._connections: _Connections | None = None

    async def models(self, talk: Talk) -> None:
        """The node asks how its agent reaches models. Raises IntegrityError when it has none, or asks twice."""
        if self._broker is None or self._asked:
            raise IntegrityError("a node asks for models that are not its agent's")
        self._asked = True
        spent = self._broker.exhausted
        told: dict[str, Any] = {"spent": spent, "hosts": sorted(self._broker.hosts)}
        if spent is None:
            session = self.session = await self._stack.enter_async_context(self._broker.session(self._label))
            self._connections = _Connections(talk, session, self._places)
            talk.aside = self._connections.heard
            await self._tasks.start(self._connections.run)
            told |= {"placeholder": session.placeholder, "environment": session.environment(BROKER_PORT)}
        await talk.say(frames.MODELS, _json.dumps(told).encode())

    def account(self, talk: Talk) -> None:
        """The agent has ended, and the node asks what came of its requests."""
        if self.session is None or self._connections is None or self._accounted:
            raise IntegrityError("a node asks what was used, and nothing was asked for, or asks again")
        self._accounted = True
        self._tasks.start_soon(_tell_account, talk, self.session, self._connections)

    def probe(self, talk: Talk) -> None:
        """The node asks what is wrong with the providers. That takes a while, in which others are heard."""
        if self.session is None or self._probed:
            raise IntegrityError("a node asks about providers that are not its agent's, or again")
        self._probed = True
        self._tasks.start_soon(_tell_fault, talk, self.session)

    def check(self, production: Production) -> dict[str, Any]:
        """What models were used, as counted here. Raises IntegrityError when the node says otherwise."""
        if self.session is None:
            used: dict[str, Any] = {}
        else:
            used = self.session.usage.as_json()
        if production.usage and dict(production.usage) != used:
            raise IntegrityError("a node states another use of models than the broker counted")
        if self.session is not None and self.session.exhausted and production.failure is None:
            raise IntegrityError("a node passes over that the budget was used up")
        return used


async def _tell_account(talk: Talk, session: BrokerSession, connections: _Connections) -> None:
    await connections.end()
    session.close()
    told = {
        "usage": asdict(session.usage),
        "exchanges": [asdict(exchange) for exchange in session.exchanges],
        "dropped": session.dropped_exchanges,
        "exhausted": session.exhausted,
        "unanswered": session.unanswered,
    }
    with suppress(LinkLost):
        await talk.say(frames.ACCOUNT, _json.dumps(told).encode())


async def _tell_fault(talk: Talk, session: BrokerSession) -> None:
    fault = await session.probe()
    with suppress(LinkLost):
        await talk.say(frames.PROBE, _json.dumps(fault).encode())


class _Connections:
    """Those that are open, each with its own conversation with the session."""

    def __init__(self, talk: Talk, session: BrokerSession, places: anyio.Semaphore) -> None:
        self._talk, self._session, self._counter = talk, session, Counter(session)
        self._places = places
        self._streams: dict[int, tuple[Stream, anyio.CancelScope]] = {}
        self._last = 0
        self._tasks: TaskGroup | None = None
        self._over = anyio.Event()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Until `end`. Says when a budget is used up."""
        try:
            async with anyio.create_task_group() as self._tasks:
                task_status.started()
                budget = await self._session.out_of_budget()
                with suppress(LinkLost):
                    await self._talk.say(frames.SPENT, budget.encode())
                await anyio.sleep_forever()
        finally:
            self._tasks = None
            self._over.set()

    async def end(self) -> None:
        """Returns when everything that was asked has been counted."""
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
        await self._over.wait()

    def heard(self, frame: Frame) -> None:
        """Raises IntegrityError for what no node of ours says."""
        number, data = stream_of(frame.data)
        if frame.kind == frames.OPEN:
            self._open(number)
        elif number in self._streams:
            stream, scope = self._streams[number]
            stream.heard(frame.kind, data)
            if stream.closed:
                scope.cancel()  # whoever is being answered is gone

    def _open(self, number: int) -> None:
        if number <= self._last or len(self._streams) >= self._counter.limits.connections:
            raise IntegrityError("a node opens more connections than its agent may have, or one of them twice")
        self._last = number
        if self._tasks is not None:
            self._streams[number] = Stream(number, self._talk), anyio.CancelScope()
            self._tasks.start_soon(self._carry, number)

    async def _carry(self, number: int) -> None:
        stream, scope = self._streams[number]
        try:
            with scope:
                async with self._places:
                    await self._converse(stream)
        finally:
            del self._streams[number]
        with suppress(LinkLost):
            await stream.say(frames.CLOSE)

    async def _converse(self, stream: Stream) -> None:
        """The session sees a connection as any other."""
        try:
            ours, theirs = socket.socketpair()
        except OSError:
            await anyio.sleep(0.05)  # out of descriptors, which does not last
            return
        with ours, theirs:
            ours.setblocking(False)
            theirs.setblocking(False)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._answer, theirs)
                tasks.start_soon(_inward, stream, ours)
                with suppress(OSError, LinkLost):
                    await stream.outward(ours)
                tasks.cancel_scope.cancel()

    async def _answer(self, theirs: socket.socket) -> None:
        with theirs:
            await self._counter.pause()
            await self._counter.converse(theirs)


async def _inward(stream: Stream, ours: socket.socket) -> None:
    with suppress(OSError, LinkLost):
        await stream.inward(ours)
        ours.shutdown(socket.SHUT_WR)
