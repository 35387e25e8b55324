"""One connection of a client: each request is let in, carried out and answered, or refused; one after the other."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TypeVar

import anyio
import anyio.to_thread
import h11
from pydantic import ValidationError

from securebench import _json
from securebench._http import (
    Headers,
    HttpConnection,
    NoRoom,
    Room,
    Unacceptable,
    check_framing,
    decoded_headers,
    ends_with_its_head,
)
from securebench._schema import ClosedModel
from securebench._sockets import hung_up
from securebench._tasks import side_tasks
from securebench.egress.crowd import Crowd
from securebench.serving.access import Gate, Refusal
from securebench.serving.metrics import metrics_text
from securebench.serving.models import BatchLine, BatchRequest, GradeRequest, Problem
from securebench.serving.openapi import openapi_document
from securebench.serving.routes import JSON, LINES, METRICS, Route, route_for
from securebench.serving.service import Held, Service, error_body

T = TypeVar("T")
_CODES = {400: "bad_request", 408: "too_slow", 413: "too_large", 415: "unsupported", 431: "head_too_large"}
_FIXED = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
_SKIPPED_BYTES, _SKIPPED_SECONDS = 256 * 1024, 2.0
_SHOWN_PROBLEMS = 3


class _Gone(Exception):
    """The client went away."""


class Conversation:
    """One connection. `over` is set when the server waits for nobody any more."""

    def __init__(
        self, service: Service, gate: Gate, crowd: Crowd, room: Room, over: anyio.Event, connection: socket.socket
    ) -> None:
        self._service, self._gate, self._crowd, self._over = service, gate, crowd, over
        self._http = HttpConnection(connection, service.limits, room)
        self._route: Route | None = None
        self._only_head = False

    async def run(self) -> None:
        """Until either side ends it. Raises OSError when the client is gone."""
        try:
            while not self._service.stopping:
                with self._crowd.waiting() as cut_short:
                    request = await self._http.head()
                if cut_short() or request is None:
                    return
                try:
                    await self._answer(request)
                finally:
                    self._http.release()
                if not self._http.start_next():
                    return
        except h11.RemoteProtocolError as error:
            if self._http.may_answer:
                status = error.error_status_hint
                words = "this is not a well-formed HTTP request"
                await self._refuse(Refusal(status, _CODES.get(status, "bad_request"), words), closing=True)
        except (_Gone, OSError):
            self._service.counts.lost += self._route is not None

    async def _answer(self, request: h11.Request) -> None:
        self._route, self._only_head = None, request.method == b"HEAD"
        headers = decoded_headers(request)
        try:
            if request.http_version not in (b"1.0", b"1.1"):
                raise h11.RemoteProtocolError("another version", error_status_hint=505)
            self._gate.check(headers)
            self._route = route = route_for(request.method.decode("latin-1"), request.target.decode("latin-1"))
            body = await self._body(route, headers)
            await self._carry_out(route, body)
        except Refusal as refusal:
            if self._route is not None:
                await self._turn_away(refusal, headers)
                return
            with self._crowd.waiting() as cut_short:  # not let in: makes room for others, as who has said nothing
                await self._turn_away(refusal, headers)
            if cut_short():
                raise _Gone from None
        except (_Gone, OSError, h11.RemoteProtocolError):
            raise
        except Exception as error:
            self._service.tripped(error)
            if not self._http.may_answer:
                raise _Gone from error
            await self._refuse(Refusal(500, "internal", "the server failed; nothing was scored"), closing=True)

    async def _body(self, route: Route, headers: Headers) -> bytes:
        """The body of an endpoint that takes one. Raises Refusal."""
        try:
            check_framing(headers, self._service.limits.body_bytes)
            if route.request is None:
                body = await self._http.body() if not ends_with_its_head(headers) else b""
                if body:
                    raise Refusal(400, "bad_request", "this endpoint takes no body")
                await self._http.skip(0, _SKIPPED_SECONDS)
                return b""
            kinds = [value.partition(";")[0].strip().lower() for name, value in headers if name == "content-type"]
            if kinds != [JSON]:
                raise Refusal(415, "unsupported", f"send {JSON}")
            self._service.check_room()  # before anything is taken in
            return await self._http.body()
        except NoRoom as error:
            raise self._service.busy(f"{error}; come back later") from None
        except Unacceptable as error:
            raise Refusal(error.status, _CODES.get(error.status, "bad_request"), str(error)) from None

    async def _carry_out(self, route: Route, body: bytes) -> None:
        service = self._service
        match route.name:
            case "grade":
                asked = await _parsed(GradeRequest, body)
                await anyio.to_thread.run_sync(service.check, [asked])
                await self._reply(200, await self._while_there(lambda: service.grade(asked)))
            case "grade_batch":
                batch = await _parsed(BatchRequest, body)
                if len(batch.items) > service.limits.batch:
                    raise Refusal(413, "too_large", f"a batch has at most {service.limits.batch} items")
                await anyio.to_thread.run_sync(service.check, batch.items)
                with service.room(len(batch.items)) as held:
                    await self._stream(batch, held)
            case "list_tasks":
                await self._reply(200, service.tasks)
            case "live":
                await self._reply(200, service.state)
            case "ready":
                await self._reply(200 if service.state.status == "ok" else 503, service.state)
            case "metrics":
                await self._send(200, metrics_text(service).encode(), METRICS)
            case "openapi":
                await self._send(200, _json.dumps(openapi_document()).encode(), JSON)

    async def _stream(self, batch: BatchRequest, held: Held) -> None:
        """Lines as they come. What goes wrong from now on can only be said in a line, or by ending the connection."""
        self._count(200)
        self._http.put(h11.Response(status_code=200, headers=[("Content-Type", LINES), *_FIXED], reason="OK"))
        await self._http.flush()

        async def tell(line: BatchLine) -> None:
            self._http.put(h11.Data(data=_encoded(line) + b"\n"))
            with anyio.CancelScope(shield=True):  # half a line could not be taken back
                await self._http.flush()

        with suppress(Refusal):  # told in the lines
            await self._while_there(lambda: self._service.grade_batch(batch.items, tell, self._why_ended, held))
        self._http.put(h11.EndOfMessage())
        await self._http.flush()

    async def _while_there(self, work: Callable[[], Awaitable[T]]) -> T:
        """The work's result, while the client is there, within its time, and as long as the server waits.

        Raises Refusal, _Gone."""
        gone = False

        async def watch() -> None:
            nonlocal gone
            if await hung_up(self._http.socket):
                gone = True
                scope.cancel()

        async def stop() -> None:
            await self._over.wait()
            scope.cancel()

        async with side_tasks() as tasks:
            with anyio.move_on_after(self._service.limits.request_seconds) as scope:
                tasks.start_soon(watch)
                tasks.start_soon(stop)
                return await work()
        if gone:
            raise _Gone
        raise self._why_ended()

    def _why_ended(self) -> Refusal:
        if self._over.is_set():
            return Refusal(503, "not_ready", "the server stopped; nothing was scored")
        seconds = self._service.limits.request_seconds
        return Refusal(504, "too_slow", f"there was no verdict within {seconds:g} s; nothing was scored")

    async def _turn_away(self, refusal: Refusal, headers: Headers) -> None:
        await self._refuse(refusal, closing=not await self._is_read(headers))

    async def _is_read(self, headers: Headers) -> bool:
        """Whether a refused request is read to its end, so that the connection can go on: only where that is little."""
        if self._http.has_read_all:
            return True
        sizes = [value for name, value in headers if name == "content-length"]
        small = all(len(value) <= 6 and int(value) <= _SKIPPED_BYTES for value in sizes)
        if not small or any(name in {"expect", "transfer-encoding", "upgrade"} for name, _ in headers):
            return False
        return await self._http.skip(_SKIPPED_BYTES, _SKIPPED_SECONDS)

    async def _refuse(self, refusal: Refusal, *, closing: bool) -> None:
        problem = _encoded(Problem(error=error_body(refusal)))
        headers = [*refusal.headers, *([("Connection", "close")] if closing else [])]
        await self._send(refusal.status, problem, JSON, *headers)
        if closing:
            # Closing with unread bytes would throw the answer away before the client has it.
            with suppress(OSError):
                self._http.socket.shutdown(socket.SHUT_WR)
            await self._http.drop(_SKIPPED_BYTES, _SKIPPED_SECONDS)

    async def _reply(self, status: int, model: ClosedModel) -> None:
        await self._send(status, _encoded(model), JSON)

    async def _send(self, status: int, body: bytes, media: str, *headers: tuple[str, str]) -> None:
        self._count(status)
        fields = [("Content-Type", media), ("Content-Length", str(len(body))), *_FIXED, *headers]
        if self._service.stopping and ("Connection", "close") not in headers:
            fields.append(("Connection", "close"))
        self._http.put(h11.Response(status_code=status, headers=fields, reason=HTTPStatus(status).phrase))
        if not self._only_head:
            self._http.put(h11.Data(data=body))
        self._http.put(h11.EndOfMessage())
        await self._http.flush()

    def _count(self, status: int) -> None:
        self._service.counts.requests[self._route.name if self._route else "none", status] += 1


Request = TypeVar("Request", bound=ClosedModel)


async def _parsed(model: type[Request], body: bytes) -> Request:
    """Strict JSON of that form. Raises Refusal, which repeats no value."""

    def parse() -> Request:
        return model.model_validate(_json.loads(body))

    try:
        return await anyio.to_thread.run_sync(parse)  # many megabytes take their time
    except _json.JsonError as error:
        raise Refusal(422, "not_json", str(error)) from None
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        shown = "; ".join(f"{_where(one['loc'])}: {one['msg']}" for one in found[:_SHOWN_PROBLEMS])
        more = f"; and {len(found) - _SHOWN_PROBLEMS} more" if len(found) > _SHOWN_PROBLEMS else ""
        raise Refusal(422, "not_a_request", shown + more) from None


def _where(place: tuple[int | str, ...]) -> str:
    """The place of a problem. Keys are the client's, so each is shown short."""
    return ".".join(str(part)[:40] for part in place) or "the request"


def _encoded(model: ClosedModel) -> bytes:
    return _json.dumps(model.model_dump(mode="json")).encode()
