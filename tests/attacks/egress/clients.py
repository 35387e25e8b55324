"""The proxy under test, and clients that do not keep to any rule."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from securebench.egress.decisions import Decision, EgressLog, Kind
from securebench.egress.proxy import serve_proxy
from securebench.egress.resolver import Resolve, system_resolver
from securebench.egress.rules import EgressLimits, EgressRules

T = TypeVar("T")
ALLOWED = "allowed.lab.test"
PATIENCE = 60.0


@dataclass(frozen=True)
class Running:
    """A proxy that runs, and where."""

    port: int
    log: EgressLog = field(default_factory=EgressLog)

    def reasons(self, kind: Kind = Kind.REFUSED) -> list[str]:
        return [decision.reason for decision in self.log.decisions if decision.kind is kind]

    async def ended(self, count: int = 1) -> list[Decision]:
        """The connections that have come to their end, as soon as there are so many."""
        with anyio.fail_after(PATIENCE):
            while True:
                found = [decision for decision in self.log.decisions if decision.kind is Kind.ENDED]
                if len(found) >= count:
                    return found
                await anyio.sleep(0.01)


@asynccontextmanager
async def proxy(
    domains: Iterable[str] = (ALLOWED,),
    *,
    private: Iterable[str] = (),
    limits: EgressLimits | None = None,
    resolve: Resolve = system_resolver,
) -> AsyncIterator[Running]:
    rules = EgressRules(frozenset(domains), limits=limits or EgressLimits(), private_domains=frozenset(private))
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        listener.setblocking(False)
        running = Running(listener.getsockname()[1])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_proxy, listener, rules, running.log, resolve=resolve))
            yield running
            tasks.cancel_scope.cancel()


async def away(function: Callable[..., T], *args: Any) -> T:
    """A blocking client in a thread."""
    return await anyio.to_thread.run_sync(function, *args)


def everything(sock: socket.socket) -> bytes:
    """What comes until the other side has finished or broken off."""
    data = bytearray()
    with suppress(ConnectionResetError):
        while chunk := sock.recv(65536):
            data += chunk
    return bytes(data)


def raw(port: int, data: bytes, then: Callable[[socket.socket], None] | None = None) -> bytes:
    """All that comes back for these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        sock.sendall(data)
        if then:
            then(sock)
        return everything(sock)


def connect_head(target: str | bytes, host: str = ALLOWED) -> bytes:
    name = target.encode() if isinstance(target, str) else target
    return b"CONNECT " + name + b" HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n"


def tunnel(port: int, target: str | bytes, host: str | None = None) -> tuple[int, socket.socket]:
    """Status of a CONNECT, and the socket."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    bare = host or (target if isinstance(target, str) else target.decode("latin-1")).rpartition(":")[0]
    sock.sendall(connect_head(target, bare))
    head = b""
    while b"\r\n\r\n" not in head:
        byte = sock.recv(1)
        if not byte:
            break
        head += byte
    return (int(head.split(b" ")[1]) if head else 0), sock


def tls_get(port: int, ca: Path, host: str = ALLOWED, path: str = "/echo", *, sni: str | None = None) -> bytes:
    """The whole reply to an HTTPS request through the proxy; checks the certificate for `sni`, by default the host."""
    status, sock = tunnel(port, f"{host}:443")
    with sock:
        if status != 200:
            return b"%d " % status + everything(sock)
        context = ssl.create_default_context(cafile=str(ca))
        with context.wrap_socket(sock, server_hostname=sni or host) as secured:
            secured.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return everything(secured)


def plain_get(port: int, host: str = ALLOWED, path: str = "/echo", *fields: str) -> bytes:
    lines = [f"GET http://{host}{path} HTTP/1.1", f"Host: {host}", *fields]
    return raw(port, "\r\n".join([*lines, "", ""]).encode())


def body(reply: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reply.partition(b"\r\n\r\n")[2])
    return found


def status(reply: bytes) -> int:
    return int(reply.split(b" ")[1]) if reply.startswith(b"HTTP/") else 0


def soon(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether it becomes true in a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
