"""A hostile client in a real sandbox, and the real proxy of an attempt between it and a small internet of ours."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from securebench._tasks import side_tasks
from securebench.audit.plays.network_world import ALLOWED, World, certificate, small_internet
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.egress.decisions import Decision, EgressLog, Kind
from securebench.egress.proxy import proxy_environment, serve_proxy
from securebench.egress.rules import EgressLimits, EgressRules
from securebench.harnesses.outlets import PROXY_PORT
from securebench.sandboxes.base import Command, Limits, Network, SandboxSpec

SECONDS = 60.0
LIMITS = EgressLimits(request_seconds=3.0, idle_seconds=5.0)
Proxy = Callable[[socket.socket, EgressRules, EgressLog, World], Coroutine[Any, Any, None]]
Exchange = tuple[bytes, ...]
"""Bytes for one connection to the proxy. Every further piece is sent once a head has come back. `NOTE` stands for what
the client wants out."""
NOTE = b"NOTE"

TALK = r"""
import base64, json, socket, sys
told = json.load(sys.stdin)
for pieces in told["exchanges"]:
    got = b""
    try:
        with socket.create_connection(("127.0.0.1", told["port"]), timeout=8) as s:
            for number, piece in enumerate(pieces):
                head = b""
                while number and b"\r\n\r\n" not in head:
                    more = s.recv(65536)
                    if not more: break
                    head += more
                got += head
                s.sendall(base64.b64decode(piece))
            if told["half_close"]: s.shutdown(socket.SHUT_WR)
            while more := s.recv(65536): got += more
    except OSError as error:
        got += repr(error).encode()
    print(got.decode("latin-1"))
print("that was all")
"""

TLS = r"""
import json, socket, ssl, sys
told = json.load(sys.stdin)
context = ssl.create_default_context(cadata=told["ca"])
for host, name, inner in told["visits"]:
    try:
        with socket.create_connection(("127.0.0.1", told["port"]), timeout=8) as s:
            s.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
            head = b""
            while b"\r\n\r\n" not in head and (more := s.recv(1)): head += more
            print(head.decode("latin-1"))
            context.check_hostname = name is not None
            with context.wrap_socket(s, server_hostname=name) as secured:
                secured.sendall(f"GET / HTTP/1.1\r\nHost: {inner}\r\nConnection: close\r\n\r\n".encode())
                while more := secured.recv(65536): print(more.decode("latin-1"))
    except (OSError, ValueError) as error:
        print(repr(error))
print("that was all")
"""


async def real_proxy(listener: socket.socket, rules: EgressRules, log: EgressLog, world: World) -> None:
    await serve_proxy(listener, rules, log, resolve=world.resolve, connect=world.connect)


class BrokenClient(Exception):
    """The program that plays the client did not come to its end, so what it shows is worth nothing."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A client that writes bytes of its own to the proxy. It wants the prize of a server it may not reach, or the note
    out; an honest one wants the allowed server's gift."""

    exchanges: tuple[Exchange, ...]
    wants: Literal["prize", "gift"] = "prize"
    domains: tuple[str, ...] = (ALLOWED,)
    proxy: Proxy = real_proxy
    half_close: bool = False

    async def on(self, ground: Ground) -> Seen:
        with small_internet(ground.directory) as world:
            exchanges = [[_ready(piece, world) for piece in pieces] for pieces in self.exchanges]
            told = {"exchanges": exchanges, "half_close": self.half_close}
            printed, log = await visit(ground, world, TALK, told, self.domains, self.proxy)
            return _seen(self.wants, printed, world, log)


@dataclass(frozen=True, slots=True)
class Visit:
    """A client that speaks TLS through a tunnel: to which host, naming which server, asking for which host inside."""

    visits: tuple[tuple[str, str | None, str], ...]
    wants: Literal["prize", "gift"] = "prize"
    domains: tuple[str, ...] = (ALLOWED,)
    proxy: Proxy = real_proxy

    async def on(self, ground: Ground) -> Seen:
        with small_internet(ground.directory) as world:
            told = {"visits": self.visits, "ca": certificate(ground.directory)[0].read_text()}
            printed, log = await visit(ground, world, TLS, told, self.domains, self.proxy)
            return _seen(self.wants, printed, world, log)


@dataclass(frozen=True, slots=True)
class Hide:
    """A client that wants a log that does not tell the truth: without its visit, or with words of its own."""

    exchanges: tuple[Exchange, ...]
    truthful: Callable[[tuple[Decision, ...]], bool]
    log: Callable[[], EgressLog]
    proxy: Proxy = real_proxy

    async def on(self, ground: Ground) -> Seen:
        with small_internet(ground.directory) as world:
            told = {"exchanges": [[_ready(p, world) for p in pieces] for pieces in self.exchanges], "half_close": False}
            log = self.log()
            await visit(ground, world, TALK, told, (ALLOWED,), self.proxy, log)
            truthful = self.truthful(log.decisions)
            return Seen(End.MISSED if truthful else End.REACHED, f"{len(log.decisions)} decisions kept")


async def visit(
    ground: Ground,
    world: World,
    program: str,
    told: Mapping[str, object],
    domains: tuple[str, ...],
    proxy: Proxy = real_proxy,
    log: EgressLog | None = None,
) -> tuple[str, EgressLog]:
    """What the client printed, and what the proxy wrote down. Raises BrokenClient."""
    log = log or EgressLog()
    rules = EgressRules(frozenset(domains), limits=LIMITS)
    spec = SandboxSpec(
        root=ground.root,
        env=proxy_environment(PROXY_PORT),
        network=Network.LOOPBACK,
        listeners=(PROXY_PORT,),
        limits=Limits(wall_seconds=SECONDS),
    )
    stdin = json.dumps({"port": PROXY_PORT, **told}).encode()
    async with ground.sandbox.open(spec) as session, side_tasks() as tasks:
        tasks.start_soon(proxy, session.listener(PROXY_PORT), rules, log, world)
        result = await session.run(Command(("python3", "-I", "-c", program), stdin=stdin))
    printed = result.stdout.data.decode("utf-8", "replace")
    if not result.ok or "that was all" not in printed:
        raise BrokenClient(f"{result.outcome}: {result.stderr.data[-300:].decode('utf-8', 'replace')}")
    return printed, log


def _ready(piece: bytes, world: World) -> str:
    return base64.b64encode(piece.replace(NOTE, world.note.encode())).decode()


def _seen(wants: str, printed: str, world: World, log: EgressLog) -> Seen:
    if wants == "gift":
        return Seen(End.REACHED if world.gift in printed else End.MISSED, printed[-300:])
    if world.prize in printed:
        return Seen(End.REACHED, "a server that was not allowed answered")
    if world.escaped():
        return Seen(End.REACHED, "the note got out")
    reasons = sorted({decision.reason for decision in log.decisions if decision.kind is Kind.REFUSED})
    return Seen(End.MISSED, ", ".join(reasons) or "nothing was reached")
