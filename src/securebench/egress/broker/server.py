"""HTTP/1.1 for an agent: the face of a broker session on a listener of its sandbox.

The agent is hostile: heads, bodies, connections and waiting are bounded, requests of a connection are answered one
after the other, and whatever is ambiguous ends the connection."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import anyio
import h11

from securebench._http import (
    HttpConnection,
    HttpLimits,
    Room,
    Unacceptable,
    check_framing,
    decoded_headers,
    ends_with_its_head,
)
from securebench._sockets import accept_each, hung_up
from securebench.egress.broker.admission import access_of, check_placeholder, check_upgrade, route
from securebench.egress.broker.body_rules import MAX_BODY
from securebench.egress.broker.passage import Interrupted
from securebench.egress.broker.refusal import Refused

if TYPE_CHECKING:
    from securebench.egress.broker.session import BrokerSession


FLUSH = 256 * 1024
_KINDS: Mapping[int, str] = MappingProxyType({408: "request_timeout", 413: "request_too_large"})


@dataclass(frozen=True, slots=True)
class ServerLimits(HttpLimits):
    """Bounds for one attempt's agent."""

    head_bytes: int = 64 * 1024
    body_bytes: int = MAX_BODY
    idle_seconds: float = 900.0
    head_seconds: float = 20.0
    body_seconds: float = 120.0
    write_seconds: float = 300.0
    connections: int = 64
    bodies_bytes: int = 128 * 1024 * 1024  # of all requests under way together
    free_faults: int = 100  # refusals and empty connections before the agent is slowed down


async def serve(session: BrokerSession, listener: socket.socket, limits: ServerLimits | None = None) -> None:
    """Answer on the (non-blocking) listener until cancelled or until it is closed; no connection can end it."""
    counter = Counter(session, limits)
    await accept_each(listener, counter.limits.connections, counter.converse, counter.pause)


class Counter:
    """Where the connections of one attempt are answered, wherever they were accepted."""

    def __init__(self, session: BrokerSession, limits: ServerLimits | None = None) -> None:
        self.limits = limits or ServerLimits()
        self._session = session
        self._shared = _Shared(self.limits.bodies_bytes, self.limits.free_faults)
        self._turn = anyio.Lock()

    async def pause(self) -> None:
        """Before the next connection; one after the other, so that many at once are no way around it."""
        async with self._turn:
            await anyio.sleep(self._shared.delay / 10)

    async def converse(self, connection: socket.socket) -> None:
        """Answer on one (non-blocking) connection until it ends."""
        with suppress(OSError, Interrupted):
            await _Conversation(self._session, connection, self.limits, self._shared).run()


class _Shared(Room):
    """What all connections of an attempt have together: memory for bodies, and their faults.

    An agent that goes on asking for what it does not get is answered ever more slowly, or it would take the time of
    this process from other attempts."""

    def __init__(self, free: int, free_faults: int) -> None:
        super().__init__(free)
        self._free_faults = free_faults

    @property
    def delay(self) -> float:
        return min(1.0, max(0, -self._free_faults) / 50)

    def fault(self) -> None:
        self._free_faults -= 1


class _Conversation:
    """One connection: requests in, replies out, strictly in turn."""

    def __init__(
        self, session: BrokerSession, connection: socket.socket, limits: ServerLimits, shared: _Shared
    ) -> None:
        self._session = session
        self._limits = limits
        self.shared = shared
        self.http = HttpConnection(connection, limits, shared)
        self._ended = False

    async def run(self) -> None:
        served = False
        while not self._ended:
            try:
                request = await self.http.head()
                if request is None:
                    if not served:
                        self.shared.fault()
                    return
                served = True
                await anyio.sleep(self.shared.delay)
                try:
                    await self._answer(request)
                finally:
                    self.http.release()
            except h11.RemoteProtocolError as error:
                await self._say_malformed(error.error_status_hint)
                return
            if not self.http.start_next():
                return

    async def _answer(self, request: h11.Request) -> None:
        method, target = request.method.decode("latin-1"), request.target.decode("latin-1")
        headers = decoded_headers(request)
        sink = _Connection(self, method == "HEAD")
        access = access_of(self._session.accesses, target)
        body = b""
        try:
            if access is None:
                raise Refused(404, "not_found_error", "no provider is served at this path")
            check_upgrade(headers)
            way = route(access, method, target)
            check_placeholder(headers, self._session.placeholder)
            try:
                check_framing(headers, self._limits.body_bytes)
                body = await self.http.body()
            except Unacceptable as error:
                raise Refused(error.status, _KINDS.get(error.status, "invalid_request_error"), str(error)) from None
        except Refused as refused:
            # What is left of a body, or of another protocol, is not read: the connection ends with this answer.
            sink.closing = not self.http.has_read_all and not ends_with_its_head(headers)
            await self._session.refuse(access, method, target, refused, sink)
            if not sink.closing:
                await self.http.event()  # the end of a request without a body
            self._ended = sink.closing
            return
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                if await hung_up(self.http.socket):
                    tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            with suppress(OSError, Interrupted):
                await self._session.exchange(way, headers, body, sink)
            tasks.cancel_scope.cancel()
        self._ended = not sink.ended  # a reply that broke off can only be told by ending the connection

    async def _say_malformed(self, status: int) -> None:
        """To bytes that are no request: nothing of them is repeated, the connection ends."""
        if self.http.may_answer:
            refused = Refused(status, "invalid_request_error", "this is not a well-formed HTTP request")
            sink = _Connection(self, no_body=False)
            sink.closing = True
            await self._session.refuse(None, "", "", refused, sink)


class _Connection:
    """A reply on its way to the agent."""

    def __init__(self, conversation: _Conversation, no_body: bool) -> None:
        self._conversation = conversation
        self._no_body = no_body
        self._waiting = 0
        self.closing = False
        self.ended = False

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if 400 <= status < 500:
            self._conversation.shared.fault()
        if self.closing:
            lines.append((b"connection", b"close"))
        self._conversation.http.put(h11.Response(status_code=status, headers=lines))

    async def chunk(self, data: bytes) -> None:
        if not self._no_body:
            self._conversation.http.put(h11.Data(data=data))
            self._waiting += len(data)
            if self._waiting >= FLUSH:
                await self.flush()

    async def flush(self) -> None:
        self._waiting = 0
        await self._conversation.http.flush()

    async def end(self) -> None:
        self._conversation.http.put(h11.EndOfMessage())
        await self._conversation.http.flush()
        self.ended = True
