"""HTTP/1.1 for an agent: the face of a broker session on a listener of its sandbox.

The agent is hostile: heads, bodies, connections and waiting are bounded, requests of a connection are answered one
after the other, and whatever is ambiguous ends the connection."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import h11

from securebench.egress.broker.admission import access_of, check_placeholder, check_upgrade, route
from securebench.egress.broker.body_rules import MAX_BODY
from securebench.egress.broker.passage import Interrupted
from securebench.egress.broker.refusal import Refused
from securebench.egress.broker.sockets import accept, hung_up, receive, send

if TYPE_CHECKING:
    from securebench.egress.broker.session import BrokerSession


FLUSH = 256 * 1024


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Bounds for one attempt's agent."""

    connections: int = 64
    head_bytes: int = 64 * 1024
    body_bytes: int = MAX_BODY
    bodies_bytes: int = 128 * 1024 * 1024  # of all requests under way together
    free_faults: int = 100  # refusals and empty connections before the agent is slowed down
    idle_seconds: float = 900.0
    head_seconds: float = 20.0
    body_seconds: float = 120.0
    write_seconds: float = 300.0


async def serve(session: BrokerSession, listener: socket.socket, limits: ServerLimits | None = None) -> None:
    """Answer on the (non-blocking) listener until cancelled or until it is closed; no connection can end it."""
    limits = limits or ServerLimits()
    places, shared = anyio.Semaphore(limits.connections), _Shared(limits.bodies_bytes, limits.free_faults)

    async def handle(connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError, Interrupted):
                await _Conversation(session, connection, limits, shared).run()
        finally:
            places.release()

    async with anyio.create_task_group() as tasks:
        while listener.fileno() >= 0:
            await places.acquire()
            await anyio.sleep(shared.delay / 10)
            try:
                connection = await accept(listener)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except anyio.ClosedResourceError:
                break  # while we waited
            except OSError:
                places.release()
                await anyio.sleep(0.05)  # out of descriptors, or a client that reset: neither lasts
                continue
            tasks.start_soon(handle, connection)
        tasks.cancel_scope.cancel()


class _Shared:
    """What all connections of an attempt have together: memory for bodies, and their faults.

    An agent that goes on asking for what it does not get is answered ever more slowly, or it would take the time of
    this process from other attempts."""

    def __init__(self, room: int, free_faults: int) -> None:
        self.room = room
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
        self._socket = connection
        self._limits = limits
        self.shared = shared
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        self._ended = False
        self._held = 0  # bytes of the body that is being read or answered
        self._outgoing: list[bytes] = []

    async def run(self) -> None:
        served = False
        while not self._ended:
            try:
                request = await self._head()
                if request is None:
                    if not served:
                        self.shared.fault()
                    return
                served = True
                await anyio.sleep(self.shared.delay)
                try:
                    await self._answer(request)
                finally:
                    self.shared.room += self._held
                    self._held = 0
            except h11.RemoteProtocolError as error:
                await self._say_malformed(error.error_status_hint)
                return
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _head(self) -> h11.Request | None:
        """The head of the next request, None where the connection ends or takes too long."""
        if not self._http.trailing_data[0]:
            with anyio.move_on_after(self._limits.idle_seconds) as idle:
                await anyio.wait_readable(self._socket)
            if idle.cancelled_caught:
                return None
        with anyio.move_on_after(self._limits.head_seconds):
            event = await self._event()
            if isinstance(event, h11.Request):
                return event
        return None

    async def _event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]  # mypy does not narrow by identity
            if self._http.they_are_waiting_for_100_continue:
                await send(self._socket, self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            self._http.receive_data(await receive(self._socket))

    async def _answer(self, request: h11.Request) -> None:
        method, target = request.method.decode("latin-1"), request.target.decode("latin-1")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers]
        sink = _Connection(self, method == "HEAD")
        access = access_of(self._session.accesses, target)
        body = b""
        try:
            if sum(len(name) + len(value) + 4 for name, value in headers) > self._limits.head_bytes:
                raise Refused(431, "invalid_request_error", "the headers are too large")
            if access is None:
                raise Refused(404, "not_found_error", "no provider is served at this path")
            check_upgrade(headers)
            way = route(access, method, target)
            check_placeholder(headers, self._session.placeholder)
            _check_framing(headers, self._limits.body_bytes)
            body = await self._body()
        except Refused as refused:
            # What is left of a body, or of another protocol, is not read: the connection ends with this answer.
            sink.closing = self._http.their_state is not h11.DONE and not _ends_with_its_head(headers)
            await self._session.refuse(access, method, target, refused, sink)
            if not sink.closing:
                await self._event()  # the end of a request without a body
            self._ended = sink.closing
            return
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                if await hung_up(self._socket):
                    tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            with suppress(OSError, Interrupted):
                await self._session.exchange(way, headers, body, sink)
            tasks.cancel_scope.cancel()
        self._ended = not sink.ended  # a reply that broke off can only be told by ending the connection

    async def _body(self) -> bytes:
        chunks: list[bytes] = []
        total = 0
        with anyio.move_on_after(self._limits.body_seconds) as scope:
            try:
                while not isinstance(event := await self._event(), h11.EndOfMessage):
                    if not isinstance(event, h11.Data):
                        raise Refused(400, "invalid_request_error", "the request broke off")
                    total += len(event.data)
                    if total > self._limits.body_bytes or len(event.data) > self.shared.room:
                        raise _too_large(self._limits.body_bytes)
                    self._held += len(event.data)
                    self.shared.room -= len(event.data)  # at once: bodies that never end count as well
                    chunks.append(bytes(event.data))
            except h11.RemoteProtocolError:
                raise Refused(400, "invalid_request_error", "the body is not framed as its head says") from None
        if scope.cancelled_caught:
            raise Refused(408, "request_timeout", "the body took too long to arrive")
        return b"".join(chunks)

    async def _say_malformed(self, status: int) -> None:
        """To bytes that are no request: nothing of them is repeated, the connection ends."""
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            refused = Refused(status, "invalid_request_error", "this is not a well-formed HTTP request")
            sink = _Connection(self, no_body=False)
            sink.closing = True
            await self._session.refuse(None, "", "", refused, sink)

    async def flush(self) -> None:
        if self._outgoing:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            with anyio.fail_after(self._limits.write_seconds):
                await send(self._socket, data)

    def put(self, event: h11.Event) -> None:
        """To be sent with the next flush: each sending wakes the agent, so few are better than many."""
        self._outgoing += self._http.send_with_data_passthrough(event) or ()


def _ends_with_its_head(headers: Sequence[tuple[str, str]]) -> bool:
    return not any(name in {"content-length", "transfer-encoding", "upgrade"} for name, _ in headers)


def _check_framing(headers: Sequence[tuple[str, str]], most: int) -> None:
    """Raises Refused for a body whose length is said twice, in another coding, or too large."""
    names = [name for name, _ in headers]
    if "transfer-encoding" in names and "content-length" in names:
        raise Refused(400, "invalid_request_error", "content-length and transfer-encoding exclude each other")
    if any(value.strip().lower() != "identity" for name, value in headers if name == "content-encoding"):
        raise Refused(415, "invalid_request_error", "bodies must not be compressed")
    if any(len(value) > 15 or int(value) > most for name, value in headers if name == "content-length"):
        raise _too_large(most)


def _too_large(most: int) -> Refused:
    return Refused(
        413, "request_too_large", f"requests may have {most} bytes, and all under way together a few of those"
    )


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
        self._conversation.put(h11.Response(status_code=status, headers=lines))

    async def chunk(self, data: bytes) -> None:
        if not self._no_body:
            self._conversation.put(h11.Data(data=data))
            self._waiting += len(data)
            if self._waiting >= FLUSH:
                await self.flush()

    async def flush(self) -> None:
        self._waiting = 0
        await self._conversation.flush()

    async def end(self) -> None:
        self._conversation.put(h11.EndOfMessage())
        await self._conversation.flush()
        self.ended = True
