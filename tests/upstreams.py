"""A provider that answers as a test tells it, a broker in front of it, and an agent's view of that broker."""

from __future__ import annotations

import json
import math
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import h11
import httpx2

from securebench._tasks import side_tasks
from securebench.egress.broker import Broker, BrokerSession, BudgetLimits, ModelAccess, OnExchange
from securebench.egress.broker.server import ServerLimits, serve
from securebench.egress.broker.upstream import Patience
from securebench.egress.providers import Provider, load_provider

KEY = "sk-real-0123456789abcdefghijklmnop"
FAST = Patience(tries=3, first_wait_seconds=0.01, longest_wait_seconds=0.2)
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the certificates of the host takes long
MODELS = {"openai": "gpt-5", "anthropic": "claude-sonnet-4-5", "openai_compatible": "llama3"}
PATHS = {"openai": "/chat/completions", "anthropic": "/v1/messages", "openai_compatible": "/chat/completions"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the provider got it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Send = Callable[[bytes], Awaitable[None]]
Answer = Callable[[Asked, Send], Awaitable[None]]


@dataclass(slots=True)
class Simulator:
    """Answers each request by `answer`, which writes raw bytes; counts who hung up before the end."""

    answer: Answer
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    hung_up: int = 0
    scheme: str = "http"

    async def handle(self, stream: anyio.abc.ByteStream) -> None:
        http = h11.Connection(h11.SERVER)
        async with stream:
            try:
                while (asked := await _request(http, stream)) is not None:
                    self.asked.append(asked)
                    await self.answer(asked, stream.send)
                    if b"close" in asked.headers.get("connection", "").encode():
                        return
                    http = h11.Connection(h11.SERVER)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                self.hung_up += 1
            except Hangup:
                pass


class Hangup(Exception):
    """Raised by an answer that wants its connection closed."""


async def _request(http: h11.Connection, stream: anyio.abc.ByteStream) -> Asked | None:
    head, body = None, b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            try:
                http.receive_data(await stream.receive(65536))
            except anyio.EndOfStream:
                return None
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
            return Asked(head.method.decode(), head.target.decode(), headers, body)
        else:
            return None


def reply(body: Any, status: int = 200, kind: str = "application/json", headers: str = "") -> bytes:
    """A whole reply; plain values become JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


OK = {"id": "x", "choices": [{"message": {"content": "4"}}], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}


async def fine(asked: Asked, send: Send) -> None:
    """A small good reply with the usage of both providers' kinds: 10 tokens in, 5 out."""
    usage = {"input_tokens": 10, "output_tokens": 5} if "messages" in asked.target else OK["usage"]
    await send(reply(OK | {"usage": usage}))


@asynccontextmanager
async def provider_like(answer: Answer, tls: Any = None) -> AsyncIterator[Simulator]:
    from anyio.streams.tls import TLSListener

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, side_tasks() as tasks:
        simulator = Simulator(answer, listener.extra(anyio.abc.SocketAttribute.local_port))
        if tls is not None:
            simulator.scheme = "https"
            tasks.start_soon(TLSListener(listener, tls, standard_compatible=False).serve, simulator.handle)
        else:
            tasks.start_soon(listener.serve, simulator.handle)
        yield simulator


@dataclass(slots=True)
class Agent:
    """What an agent has: an address, a placeholder and a network stack."""

    session: BrokerSession
    broker: Broker
    access: ModelAccess
    simulator: Simulator
    port: int
    client: httpx2.AsyncClient

    @property
    def asked(self) -> list[Asked]:
        return self.simulator.asked

    @property
    def root(self) -> str:
        return f"/{self.access.provider.name}{self.access.provider.agent.mount}"

    def url(self, path: str | None = None) -> str:
        return f"http://127.0.0.1:{self.port}{self.root}{path or PATHS[self.access.provider.name]}"

    def body(self, **more: Any) -> dict[str, Any]:
        least = {"max_tokens": 100} if self.access.provider.name == "anthropic" else {}
        return {"model": self.access.model, "messages": [{"role": "user", "content": "2+2"}]} | least | more

    async def post(
        self, body: Any = None, path: str | None = None, key: str | None = None, **headers: str
    ) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.dumps(self.body() if body is None else body).encode()
        sent = {"authorization": f"Bearer {key or self.session.placeholder}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(self.url(path), content=content, headers=sent)

    async def raw(self, *parts: bytes, seconds: float = 5, replies: int = 0) -> bytes:
        """Bytes on a fresh connection, and all that comes back until it is closed or nothing comes any more; so many
        replies are waited for however long it takes."""
        got = b""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            for part in parts:
                await stream.send(part)
                await anyio.sleep(0.01)
            with anyio.move_on_after(math.inf if replies else seconds) as scope:
                try:
                    while True:
                        got += await stream.receive()
                        if replies and got.count(b"HTTP/1.1 ") >= replies:
                            scope.deadline = anyio.current_time() + seconds
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    pass
        return got

    def request(self, body: Any = None, *, headers: str = "", length: bool = True, target: str | None = None) -> bytes:
        """A well-formed request in bytes, to be spoilt by a test."""
        data = body if isinstance(body, bytes) else json.dumps(self.body() if body is None else body).encode()
        path = target or self.root + PATHS[self.access.provider.name]
        framing = f"content-length: {len(data)}\r\n" if length else ""
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self.session.placeholder}\r\n"
        return f"{head}{framing}{headers}\r\n".encode() + data


@asynccontextmanager
async def agent_of(
    answer: Answer = fine,
    provider: str | Provider = "openai",
    *,
    run: BudgetLimits | None = None,
    attempt: BudgetLimits | None = None,
    limits: ServerLimits | None = None,
    patience: Patience = FAST,
    on_exchange: OnExchange | None = None,
    tls: tuple[Any, Any] = (None, None),
    model: str | None = None,
    models: Sequence[str] = (),
    features: Sequence[str] = (),
    key: str | None = KEY,
) -> AsyncIterator[Agent]:
    """An agent behind a broker in front of a provider; `tls` is the provider's context and the broker's."""
    loaded = load_provider(provider) if isinstance(provider, str) else provider
    async with provider_like(answer, tls[0]) as simulator:
        host = "localhost" if tls[0] else "127.0.0.1"
        base = f"{simulator.scheme}://{host}:{simulator.port}{loaded.agent.mount}"
        access = ModelAccess(
            loaded, model or MODELS[loaded.name], base, key, models=frozenset(models), features=frozenset(features)
        )
        broker = Broker(
            [access], run=run, attempt=attempt, patience=patience, ssl_context=tls[1] if tls[0] else _NO_TLS
        )
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            async with (
                broker,
                broker.session("task-1", on_exchange) as session,
                httpx2.AsyncClient(trust_env=False, timeout=120, verify=_NO_TLS) as client,
                side_tasks() as tasks,
            ):
                tasks.start_soon(serve, session, listener, limits)
                yield Agent(session, broker, access, simulator, listener.getsockname()[1], client)
