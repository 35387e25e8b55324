"""The scripted model as a real HTTP server on loopback: keys are checked, requests recorded, faults played."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
from anyio.from_thread import start_blocking_portal

from securebench import _json
from securebench._canonical import digest_value
from securebench._tasks import side_tasks
from securebench.testing.model_server.asked import PATHS, Asked, read
from securebench.testing.model_server.connection import Connection, Dropped, Request
from securebench.testing.model_server.replies import streamed, whole
from securebench.testing.model_server.reply import Reply
from securebench.testing.model_server.turns import Fault, Scene, Script, Turn, turn_for

KEY = "sk-real-0123456789abcdefghijklmnop"
MODEL = "scripted-1"


@dataclass(slots=True)
class ModelServer:
    """A running server. `requests` holds every request as it came, `asked` those that asked the model for a turn."""

    script: Script
    scenes: Sequence[Scene] = ()
    key: str | None = KEY  # None asks for no key, as local servers do
    models: Sequence[str] = (MODEL,)
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    _tries: Counter[str] = field(default_factory=Counter)

    @property
    def base_url(self) -> str:
        """As OpenAI's clients want it; Anthropic's want `url`."""
        return f"{self.url}/v1"

    async def handle(self, stream: anyio.abc.ByteStream) -> None:
        """Answer the requests of one connection until either side ends it."""
        try:
            async with stream:
                connection = Connection(stream)
                while (request := await connection.request()) is not None:
                    self.requests.append(request)
                    await self._answer(connection, request)
        except (Dropped, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    async def _answer(self, connection: Connection, request: Request) -> None:
        if self.key is not None and request.key != self.key:
            # What providers do: the error shows a part of the key that came.
            shown = (request.key or "")[:8]
            return await connection.send(401, _error("authentication_error", f"incorrect API key provided: {shown}***"))
        if request.method == "GET" and request.path == "/v1/models":
            models = [{"id": name, "object": "model", "type": "model", "display_name": name} for name in self.models]
            return await connection.send(200, {"object": "list", "data": models, "has_more": False})
        if request.method != "POST" or request.path not in {*PATHS, "/v1/messages/count_tokens"}:
            return await connection.send(404, _error("not_found_error", f"no {request.method} {request.path}"))
        try:
            body = _json.loads(request.body)
        except ValueError as error:
            return await connection.send(400, _error("invalid_request_error", str(error)))
        if not isinstance(body, dict):
            return await connection.send(400, _error("invalid_request_error", "the body is no object"))
        if request.path not in PATHS:
            return await connection.send(200, {"input_tokens": len(request.body) // 4})
        asked = read(PATHS[request.path], body)
        self.asked.append(asked)
        return await self._play(connection, request, asked)

    async def _play(self, connection: Connection, request: Request, asked: Asked) -> None:
        turn = turn_for(asked, self.scenes, self.script)
        conversation = digest_value([asked.text, asked.turn])
        tried = self._tries[conversation]
        self._tries[conversation] += 1
        fault = turn.faults[tried] if tried < len(turn.faults) else None
        await anyio.sleep(turn.delay)
        if fault is not None and fault.drop:
            raise Dropped
        if fault is not None and fault.status is not None:
            return await _fail(connection, request, fault)
        await _say(connection, asked, turn, None if fault is None else fault.cut_after)
        return None


async def _fail(connection: Connection, request: Request, fault: Fault) -> None:
    message = f"{fault.message}: {dict(request.headers)}" if fault.echo else fault.message
    headers = [] if fault.retry_after is None else [("Retry-After", fault.retry_after)]
    kind = "rate_limit_error" if fault.status == 429 else "api_error"
    await connection.send(fault.status or 500, _error(kind, message), headers)


async def _say(connection: Connection, asked: Asked, turn: Turn, cut: int | None) -> None:
    if turn.raw is not None or turn.status != 200:
        body = turn.raw if turn.raw is not None else _error("invalid_request_error", turn.text or "scripted error")
        return await connection.send(turn.status, body, content_type=turn.content_type, cut=cut)
    reply = Reply(asked, turn)
    if not asked.stream:
        return await connection.send(200, whole(reply), cut=cut)
    async with connection.stream() as send:
        for number, event in enumerate(streamed(reply)):
            if number == cut:
                raise Dropped
            await anyio.sleep(turn.pace)
            await send(event)
    return None


def _error(kind: str, message: str) -> dict[str, Any]:
    """In a shape that the clients of both providers read."""
    return {"type": "error", "error": {"type": kind, "code": kind, "message": message, "param": None}}


@asynccontextmanager
async def serve_model(
    script: Script = (), *, scenes: Sequence[Scene] = (), key: str | None = KEY, models: Sequence[str] = (MODEL,)
) -> AsyncIterator[ModelServer]:
    """Serve on a free port of loopback until the block ends."""
    server = ModelServer(script, scenes, key, models)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, side_tasks() as tasks:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 — no Django here
        server.url = f"http://127.0.0.1:{port}"
        tasks.start_soon(listener.serve, server.handle)
        yield server


@contextmanager
def model_server(
    script: Script = (), *, scenes: Sequence[Scene] = (), key: str | None = KEY, models: Sequence[str] = (MODEL,)
) -> Iterator[ModelServer]:
    """The same in a thread of its own, for code that is not async."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve_model(script, scenes=scenes, key=key, models=models)) as server,
    ):
        yield server
