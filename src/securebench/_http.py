"""HTTP/1.1 as a server speaks it with somebody it does not trust, on h11: one connection, requests strictly in turn.

Heads, bodies and waiting are bounded; what all bodies under way take together comes out of one `Room`. Whatever is
ambiguous is refused, and nothing of it is repeated."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio
import h11

from securebench._sockets import receive, send

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of one connection."""

    head_bytes: int
    body_bytes: int
    idle_seconds: float  # between two requests
    head_seconds: float
    body_seconds: float
    write_seconds: float


class Unacceptable(Exception):
    """A request that cannot be taken, with the status that says so. The message repeats nothing of it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NoRoom(Unacceptable):
    """One that could be taken if others were not under way. The status is for who cannot say so."""


class Room:
    """Bytes that the bodies of all connections may take together."""

    def __init__(self, free: int) -> None:
        self.free = free


class HttpConnection:
    """One connection. The socket is the caller's to close; every method raises OSError when the other side is gone."""

    def __init__(self, connection: socket.socket, limits: HttpLimits, room: Room) -> None:
        self.socket = connection
        self._limits, self._room = limits, room
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        self._held = 0  # bytes of the body that was read
        self._outgoing: list[bytes] = []

    @property
    def may_answer(self) -> bool:
        """Whether no answer to the present request, or to what was to be one, has begun."""
        return self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}

    @property
    def has_read_all(self) -> bool:
        """Whether nothing of the present request is left unread."""
        return self._http.their_state is h11.DONE

    async def head(self) -> h11.Request | None:
        """The head of the next request, None where the connection ends or takes too long. Raises
        h11.RemoteProtocolError for what is none or is too large, also where it came all at once."""
        if not self._http.trailing_data[0]:
            with anyio.move_on_after(self._limits.idle_seconds) as idle:
                await anyio.wait_readable(self.socket)
            if idle.cancelled_caught:
                return None
        with anyio.move_on_after(self._limits.head_seconds):
            event = await self.event()
            if isinstance(event, h11.Request):
                if sum(len(name) + len(value) + 4 for name, value in event.headers) > self._limits.head_bytes:
                    raise h11.RemoteProtocolError("the head is too large", error_status_hint=431)
                return event
        return None

    async def event(self) -> h11.Event | type[h11.PAUSED]:
        """What comes next. Raises h11.RemoteProtocolError."""
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]  # mypy does not narrow by identity
            if self._http.they_are_waiting_for_100_continue:
                await send(self.socket, self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            self._http.receive_data(await receive(self.socket))

    async def body(self) -> bytes:
        """The whole body of the present request; its room is given back by `release`. Raises Unacceptable."""
        chunks: list[bytes] = []
        total = 0
        with anyio.move_on_after(self._limits.body_seconds) as scope:
            try:
                while not isinstance(event := await self.event(), h11.EndOfMessage):
                    if not isinstance(event, h11.Data):
                        raise Unacceptable(400, "the request broke off")
                    total += len(event.data)
                    if total > self._limits.body_bytes:
                        raise _too_large(self._limits.body_bytes)
                    if len(event.data) > self._room.free:
                        raise NoRoom(413, "requests under way take all the bytes that they may together")
                    self._held += len(event.data)
                    self._room.free -= len(event.data)  # at once: bodies that never end count as well
                    chunks.append(bytes(event.data))
            except h11.RemoteProtocolError:
                raise Unacceptable(400, "the body is not framed as its head says") from None
        if scope.cancelled_caught:
            raise Unacceptable(408, "the body took too long to arrive")
        return b"".join(chunks)

    def release(self) -> None:
        """The body that was read is not needed any more."""
        self._room.free += self._held
        self._held = 0

    async def skip(self, most: int, seconds: float) -> bool:
        """Read on and forget, within these bounds; whether that was all of the request."""
        with anyio.move_on_after(seconds):
            try:
                while not self.has_read_all and most >= 0:
                    event = await self.event()
                    if isinstance(event, h11.Data):
                        most -= len(event.data)
                    elif not isinstance(event, h11.EndOfMessage):
                        return False
            except h11.RemoteProtocolError:
                return False
        return self.has_read_all

    async def drop(self, most: int, seconds: float) -> None:
        """After the last answer: read what still comes and forget it, within these bounds."""
        with anyio.move_on_after(seconds), suppress(OSError):
            while most > 0 and (data := await receive(self.socket)):
                most -= len(data)

    def put(self, event: h11.Event) -> None:
        """To be sent with the next flush: each sending wakes the other side, so few are better than many."""
        self._outgoing += self._http.send_with_data_passthrough(event) or ()

    async def flush(self) -> None:
        """Send what was put. Raises TimeoutError where the other side does not take it."""
        if self._outgoing:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            with anyio.fail_after(self._limits.write_seconds):
                await send(self.socket, data)

    def start_next(self) -> bool:
        """Whether request and answer are complete, and another request may come."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True


def decoded_headers(request: h11.Request) -> list[tuple[str, str]]:
    """The headers as text, names in lower case."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers]


def ends_with_its_head(headers: Headers) -> bool:
    """Whether nothing follows the head."""
    return not any(name in {"content-length", "transfer-encoding", "upgrade"} for name, _ in headers)


def check_framing(headers: Headers, most: int) -> None:
    """Raises Unacceptable for a body whose length is said twice, in another coding, or too large."""
    names = [name for name, _ in headers]
    if "transfer-encoding" in names and "content-length" in names:
        raise Unacceptable(400, "content-length and transfer-encoding exclude each other")
    if any(value.strip().lower() != "identity" for name, value in headers if name == "content-encoding"):
        raise Unacceptable(415, "bodies must not be compressed")
    if any(len(value) > 15 or int(value) > most for name, value in headers if name == "content-length"):
        raise _too_large(most)


def _too_large(most: int) -> Unacceptable:
    return Unacceptable(413, f"requests may have {most} bytes")
