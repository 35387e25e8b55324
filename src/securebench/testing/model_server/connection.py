"""One HTTP/1.1 connection of the model server, on h11."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import h11

from securebench import _json

MAX_HEADERS = 256 * 1024


class Dropped(Exception):
    """The connection ends here and now."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came. Names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def json(self) -> Any:
        return _json.loads(self.body)

    @property
    def key(self) -> str | None:
        """The credential it carries, in either provider's header."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else self.headers.get("x-api-key")


class Connection:
    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADERS)
        self._method = ""

    async def request(self) -> Request | None:
        """The next request; None when the client has none. Raises Dropped when it sends something else."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        elif self._http.our_state is not h11.IDLE:
            return None
        head = await self._event()
        if not isinstance(head, h11.Request):
            return None
        self._method = head.method.decode()
        body = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
        return Request(
            self._method,
            head.target.decode(),
            {name.decode(): value.decode("latin-1") for name, value in head.headers},
            bytes(body),
        )

    async def send(
        self,
        status: int,
        body: dict[str, Any] | bytes,
        headers: Sequence[tuple[str, str]] = (),
        content_type: str = "application/json",
        cut: int | None = None,
    ) -> None:
        """One whole reply, or its first `cut` bytes and the end of the connection."""
        data = body if isinstance(body, bytes) else _json.dumps(body).encode()
        fields = [("Content-Type", content_type), ("Content-Length", str(len(data))), *headers]
        await self._write(h11.Response(status_code=status, headers=fields))
        if self._method != "HEAD":
            await self._write(h11.Data(data=data if cut is None else data[:cut]))
        if cut is not None and cut < len(data):
            raise Dropped
        await self._write(h11.EndOfMessage())

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[Callable[[bytes], Awaitable[None]]]:
        """A reply of server-sent events, each sent as it is given."""
        fields = [("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache")]
        await self._write(h11.Response(status_code=200, headers=fields))

        async def send(data: bytes) -> None:
            await self._write(h11.Data(data=data))

        yield send
        await self._write(h11.EndOfMessage())

    async def _event(self) -> Any:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self._write(h11.InformationalResponse(status_code=100, headers=[]))
                try:
                    data = await self._stream.receive()
                except anyio.EndOfStream:
                    data = b""
                self._http.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise Dropped from error
        return event

    async def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            await self._stream.send(data)
