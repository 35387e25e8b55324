"""The proxy with one defence taken out, each by its own function. Only ever called inside a forked test."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any

from securebench.egress import client_hello, names, proxy, requests
from securebench.egress.allowance import Flow
from securebench.egress.crowd import Crowd
from securebench.egress.decisions import Reason
from securebench.egress.forwarding import Forwarding
from securebench.egress.rules import EgressRules
from securebench.egress.splicing import splice
from securebench.egress.wire import Wire, dial


def takes_any_spelling() -> None:
    """Names are not brought into form: the resolver gets what the client wrote."""

    def as_written(raw: bytes) -> str:
        return raw.decode("latin-1").rpartition("@")[2].strip("[]")

    def authority(raw: bytes, default_port: int | None = None) -> tuple[str, int]:
        host, colon, port = raw.rpartition(b":")
        return (as_written(host), int(port)) if colon else (as_written(raw), default_port or 0)

    names.requested_domain = as_written
    requests.requested_authority = authority
    requests._check_host = lambda *_, **__: None  # type: ignore[assignment]
    proxy.system_resolver = look_up  # type: ignore[assignment]


async def look_up(host: str) -> tuple[str, ...]:
    """A resolver that takes whatever the system's takes, addresses in any spelling included."""
    return tuple(str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))


def matches_the_end_of_names() -> None:
    """The allow list compares how names end, as many do."""

    def check(self: EgressRules, host: str, port: int, *, tunnel: bool) -> None:
        assert any(host.endswith(domain) for domain in self.domains)

    EgressRules.check = check  # type: ignore[method-assign]


def allows_every_name() -> None:
    EgressRules.check = lambda *_, **__: None  # type: ignore[assignment,method-assign]


def vets_no_address() -> None:
    proxy.vetted = lambda texts, private: tuple(ip_address(text) for text in texts)  # type: ignore[assignment]


def dials_the_last_address_unvetted() -> None:
    """One good address is enough for the name."""
    proxy.vetted = lambda texts, private: tuple(ip_address(text) for text in texts)[-1:]  # type: ignore[assignment]


def resolves_again_to_dial(host: str) -> None:
    """The address that was vetted is not the address that is dialled."""

    async def dial_by_name(_: str, port: int) -> Wire:
        return await dial((await look_up(host))[0], port)

    proxy.dial = dial_by_name  # type: ignore[assignment]


def resolves_before_it_judges() -> None:
    judge = proxy._Visit._judge

    async def eager(self: Any, ask: Any) -> Any:
        await self._attempt.resolve(ask.host)
        return await judge(self, ask)

    proxy._Visit._judge = eager  # type: ignore[method-assign]


def reads_no_hello() -> None:
    """Whatever comes first is taken for a hello that names the host."""

    async def believe(self: Any, host: str) -> bytes:
        await self._client.send(proxy.ESTABLISHED)
        return bytes(await self._client.receive())

    proxy._Visit._hello = believe  # type: ignore[method-assign]


def ignores_hidden_names() -> None:
    client_hello._HIDING = frozenset()  # type: ignore[misc]


def passes_plain_bytes_on() -> None:
    """After the first request of a connection everything is copied, as simple proxies do; nothing is framed anew."""

    async def run(self: Forwarding) -> Reason:
        self.begun = True
        lines = [b"%s %s HTTP/1.1" % (self.ask.method, self.ask.target), b"Host: " + self.ask.host.encode()]
        lines += [name + b": " + value for name, value in RAW_FIELDS if name != b"host"]
        await self.upstream.send(b"\r\n".join(lines) + b"\r\n\r\n" + self.parsed.trailing_data[0])
        return await splice(self.client, self.upstream, self.flow)

    async def request(self: Any) -> Any:
        data = await self._client.receive()
        head, _, rest = data.partition(b"\r\n\r\n")
        RAW_FIELDS[:] = requests.raw_fields(head + b"\r\n\r\n")
        harmless = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"content-", b"transfer-"))]
        parsed, event, fields = requests.read_head(b"\r\n".join(harmless) + b"\r\n\r\n")
        parsed.receive_data(rest)
        return parsed, requests.read_ask(event, fields)

    proxy._Visit._request = request  # type: ignore[method-assign]
    Forwarding.run = run  # type: ignore[method-assign]


RAW_FIELDS: list[tuple[bytes, bytes]] = []


def turns_nobody_away() -> None:
    """Connections that say nothing keep their place."""

    async def room(self: Crowd) -> None:
        while self._inside >= self._most:
            await self._left.wait()

    Crowd.room = room  # type: ignore[method-assign]


def counts_no_bytes() -> None:
    def spend(self: Flow, count: int) -> None:
        self._last = self.started + 1e9

    Flow._spend = spend  # type: ignore[method-assign]
