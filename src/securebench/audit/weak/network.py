"""Ways out that believe too much: proxies that read a name in one way and dial in another, and a log that forgets."""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote

import anyio

from securebench.audit.plays.agent_pack import Markers
from securebench.audit.plays.network_provider import statuses_of
from securebench.audit.plays.network_world import OTHER, World
from securebench.audit.suite.attack import Ground
from securebench.egress.addresses import vetted
from securebench.egress.broker import BrokerSession
from securebench.egress.decisions import Decision, EgressLog, Kind, Refused
from securebench.egress.rules import EgressRules
from securebench.egress.wire import Wire, dial
from securebench.harnesses.base import Production
from securebench.harnesses.outlets import Outlets
from securebench.tester_config import TesterConfig
from securebench.testing.model_server import ModelServer


def no_name_is_wrong(_host: str, _domains: Collection[str]) -> bool:
    return True


def named_somewhere(host: str, domains: Collection[str]) -> bool:
    """Allowed is what has an allowed name in it."""
    return any(domain in host.lower() for domain in domains) or not any(char.isalpha() for char in host)


def ends_like_one(host: str, domains: Collection[str]) -> bool:
    return any(host.endswith(domain) for domain in domains)


def named_exactly(host: str, domains: Collection[str]) -> bool:
    return host.lower() in domains


def helpfully(host: str) -> str:
    """What a forgiving client library makes of a host: no user, nothing after a NUL, escapes undone, dots trimmed."""
    text = unicodedata.normalize("NFKC", unquote(host.encode("latin-1").decode("utf-8", "replace")))
    text = re.split(r"[\0/?#,]", text.rpartition("@")[2])[0].strip("[]. ")
    with suppress(OSError, ValueError):
        text = socket.inet_ntoa(socket.inet_aton(text))
    return text.lower()


def anywhere(_host: str) -> str:
    """Whoever registers a name decides where it leads."""
    return OTHER


@dataclass(frozen=True, slots=True)
class NaiveProxy:
    """A proxy as they are often written. Bytes are passed on as they come once the first name was found allowed."""

    allows: Callable[[str, Collection[str]], bool] = no_name_is_wrong
    meant: Callable[[str], str] = helpfully
    resolves_first: bool = False
    vets_once: bool = False  # and resolves again to dial
    follows: bool = False

    async def __call__(self, listener: socket.socket, rules: EgressRules, log: EgressLog, world: World) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.wait_readable(listener)
                with suppress(BlockingIOError):
                    tasks.start_soon(self._one, Wire(listener.accept()[0]), rules, log, world)

    async def _one(self, client: Wire, rules: EgressRules, log: EgressLog, world: World) -> None:
        try:
            with suppress(OSError, Refused, ValueError):
                await self._visit(client, rules, log, world)
        finally:
            client.close()

    async def _visit(self, client: Wire, rules: EgressRules, log: EgressLog, world: World) -> None:
        data = b""
        while b"\r\n\r\n" not in data and (more := await client.receive()):
            data += more
        line, _, rest = data.partition(b"\r\n")
        method, target, _ = line.decode("latin-1").split(" ", 2)
        authority = target if method == "CONNECT" else target.partition("//")[2].partition("/")[0] or target
        host = authority.rpartition(":")[0] if re.search(r":\d+\s*$", authority) else authority
        log.add(Decision(Kind.ALLOWED, "allowed", authority))
        if self.resolves_first:
            await world.resolve(host)
        if not self.allows(host, rules.domains):
            await client.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        upstream = await self._dial(self.meant(host), world)
        if method == "CONNECT":
            await client.send(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            path = "/" + target.partition("//")[2].partition("/")[2]
            await upstream.send(f"{method} {path} HTTP/1.1\r\n".encode("latin-1") + rest)
        await self._splice(client, upstream, world)

    async def _dial(self, name: str, world: World) -> Wire:
        try:
            return await world.connect(str(ip_address(name)), 80)
        except ValueError:
            addresses = await world.resolve(name)
        if self.vets_once:
            vetted(addresses)
            addresses = await world.resolve(name)
        return await world.connect(addresses[-1], 80)

    async def _splice(self, client: Wire, upstream: Wire, world: World) -> None:
        async def pump(source: Wire, sink: Wire) -> None:
            with suppress(OSError):
                while data := await source.receive():
                    if self.follows and (found := re.search(rb"\r\nLocation: http://([^/\r]+)", data)):
                        again = await self._dial(found[1].decode(), world)
                        await again.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
                        data = await again.receive()
                    await sink.send(data)
            sink.finish()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pump, client, upstream)
            await pump(upstream, client)
            tasks.cancel_scope.cancel()
        upstream.close()


class FirstComeLog(EgressLog):
    """Keeps what came first, of whatever kind."""

    def add(self, decision: Decision) -> None:
        if len(self.decisions) < self._limit:
            super().add(decision)


class NoLog(EgressLog):
    """Counts, and keeps nothing."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return ()


def no_log() -> EgressLog:
    return NoLog()


def forgetful_log() -> EgressLog:
    return FirstComeLog(limit=20)


async def relays_everything(session: BrokerSession, listener: socket.socket, provider: ModelServer) -> None:
    """A broker that only swaps the key: any path, any body, from anybody, and the reply as it comes."""
    (access,) = session.accesses
    port = int(provider.url.rpartition(":")[2])

    async def one(client: Wire) -> None:
        try:
            with suppress(OSError, ValueError):
                await _relay(client, port, f"/{access.provider.name}", access.key or "")
        finally:
            client.close()

    async with anyio.create_task_group() as tasks:
        while True:
            await anyio.wait_readable(listener)
            with suppress(BlockingIOError):
                tasks.start_soon(one, Wire(listener.accept()[0]))


async def _relay(client: Wire, port: int, mount: str, key: str) -> None:
    data = b""
    while b"\r\n\r\n" not in data and (more := await client.receive()):
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    while length and len(body) < int(length[1]) and (more := await client.receive()):
        body += more
    head = re.sub(rb"(?i)\r\n(?:authorization|x-api-key|connection): [^\r]*", b"", head).replace(mount.encode(), b"", 1)
    upstream = await dial("127.0.0.1", port)
    credentials = f"\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n".encode()
    try:
        await upstream.send(head + credentials + body)
        while more := await upstream.receive():
            await client.send(more)
    finally:
        upstream.close()


def key_in_the_environment(_workspace: Path, _pack: Path, marks: Markers) -> Mapping[str, str]:
    """The agent asks its provider itself, so it gets the key."""
    return {"PROVIDER_KEY": f"sk-{marks.private}"}


def key_in_a_file(workspace: Path, _pack: Path, marks: Markers) -> Mapping[str, str]:
    """The same, in the settings of the agent's tool."""
    (workspace / ".agent-settings").write_text(f"key = sk-{marks.private}\n")
    return {}


def hands_everything_on(config: TesterConfig, _ground: Ground) -> object:
    """What the operator names is what the agent gets."""
    return dict(config.env)


def blames_whoever_did_not_serve(made: Production) -> bool:
    """An attempt counts once a model has said something."""
    return 200 not in statuses_of(made)


def all_that_is_listed(_outlets: Outlets, listed: frozenset[str]) -> frozenset[str]:
    return listed
