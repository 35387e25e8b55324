"""The only way out of a sandbox: an HTTP proxy that lets exact names through and writes down every decision.

For each connection, in this order: the request is read and must be in form; the name must be on the list; a budget
must be left; only then the name is resolved, once, and every address it has is vetted; for a tunnel the client's TLS
hello must name the same host in clear; then, and only then, the vetted address is dialled and bytes flow.
"""

from __future__ import annotations

import errno
import socket
from contextlib import suppress
from dataclasses import dataclass

import anyio
import h11

from securebench.egress.addresses import Address, vetted
from securebench.egress.allowance import Allowance, Flow
from securebench.egress.client_hello import ClientHelloReader
from securebench.egress.crowd import Crowd
from securebench.egress.decisions import Decision, EgressLog, Kind, Reason, Refused
from securebench.egress.forwarding import Forwarding
from securebench.egress.replies import ESTABLISHED, refusal, tls_refusal
from securebench.egress.requests import END, MAX_HEAD, Ask, asked_for, read_ask, read_head
from securebench.egress.resolver import Resolve, system_resolver
from securebench.egress.rules import EgressRules
from securebench.egress.splicing import splice
from securebench.egress.wire import Dial, Wire, dial

WAITING = 64  # connections that have not been let through yet
PATIENCE = 500  # refusals that are answered at once
DELAY = 0.5


async def serve_proxy(
    listener: socket.socket,
    rules: EgressRules,
    log: EgressLog,
    *,
    resolve: Resolve = system_resolver,
    connect: Dial | None = None,
) -> None:
    """Answer on `listener` until cancelled, or until the listener is closed. One call is one attempt."""
    attempt = _Attempt(
        rules, log, resolve, connect or dial, Allowance(rules.limits), Crowd(rules.limits.open + WAITING)
    )
    async with anyio.create_task_group() as tasks:
        while (sock := await _accept(listener, attempt.crowd)) is not None:
            attempt.crowd.enter()
            tasks.start_soon(attempt.receive, Wire(sock))
        tasks.cancel_scope.cancel()


async def _accept(listener: socket.socket, crowd: Crowd) -> socket.socket | None:
    """The next connection, once there is room for it; None when the listener was closed."""
    while True:
        try:
            await anyio.wait_readable(listener)
            await crowd.room()
            return listener.accept()[0]
        except (BlockingIOError, ConnectionAbortedError):
            continue
        except (anyio.ClosedResourceError, ValueError):
            return None
        except OSError as error:
            if error.errno in (errno.EBADF, errno.EINVAL, errno.ENOTSOCK):
                return None
            await anyio.sleep(0.1)  # out of descriptors or memory: others will be done soon


def proxy_environment(port: int) -> dict[str, str]:
    """The variables by which programs in a sandbox find the proxy on its loopback interface.

    A convention only: a program that ignores them reaches nothing at all."""
    address, direct = f"http://127.0.0.1:{port}", "127.0.0.1,localhost,::1"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    return dict.fromkeys(names, address) | {"NO_PROXY": direct, "no_proxy": direct, "NODE_USE_ENV_PROXY": "1"}


@dataclass(frozen=True, slots=True)
class _Attempt:
    """All connections of one attempt."""

    rules: EgressRules
    log: EgressLog
    resolve: Resolve
    connect: Dial
    allowance: Allowance
    crowd: Crowd

    async def receive(self, client: Wire) -> None:
        """One connection, from its first byte to its end. Its failures stay with it."""
        try:
            await _Visit(self, client).run()
        except OSError:
            pass  # the client went away while it was being answered; nothing is left to decide
        finally:
            client.close()
            self.crowd.leave()


class _Visit:
    """One connection of a client."""

    def __init__(self, attempt: _Attempt, client: Wire) -> None:
        self._attempt = attempt
        self._client = client
        self._asked = ("", "")
        self._established = False

    async def run(self) -> None:
        try:
            with self._attempt.crowd.waiting() as turned_away:
                parsed, ask = await self._request()
                addresses = await self._judge(ask)
                hello = await self._hello(ask.host) if ask.tunnel else b""
            if turned_away():  # others wait for its place: it gets no answer
                self._log(Kind.REFUSED, Reason.TOO_SLOW)
                return
            await self._let_through(parsed, ask, addresses, hello)
        except Refused as refused:
            self._log(Kind.REFUSED, refused.reason)
            await self._turn_away(refused.reason)

    async def _request(self) -> tuple[h11.Connection, Ask]:
        """Read the head and what it asks for. Raises Refused."""
        data = bytearray()
        with anyio.move_on_after(self._attempt.rules.limits.request_seconds):
            while END not in data:
                if len(data) > MAX_HEAD:
                    raise Refused(Reason.MALFORMED)
                if not (chunk := await self._client.receive(MAX_HEAD)):
                    raise Refused(Reason.MALFORMED)
                data += chunk
        end = data.find(END) + len(END)
        if end < len(END):
            raise Refused(Reason.TOO_SLOW)
        parsed, request, fields = read_head(bytes(data[:end]))
        self._asked = asked_for(request)
        ask = read_ask(request, fields)
        if rest := bytes(data[end:]):
            if ask.tunnel or not any(name in (b"content-length", b"transfer-encoding") for name, _ in fields):
                raise Refused(Reason.PIPELINED)
            parsed.receive_data(rest)
        return parsed, ask

    async def _judge(self, ask: Ask) -> tuple[Address, ...]:
        """The addresses that may be dialled for this request. Raises Refused."""
        attempt = self._attempt
        attempt.rules.check(ask.host, ask.port, tunnel=ask.tunnel)
        attempt.allowance.check()
        return vetted(await attempt.resolve(ask.host), attempt.rules.is_private(ask.host))

    async def _hello(self, host: str) -> bytes:
        """The client's first bytes, which ask for `host` by name. Raises Refused."""
        await self._client.send(ESTABLISHED)
        self._established = True
        reader = ClientHelloReader()
        with anyio.move_on_after(self._attempt.rules.limits.request_seconds):
            while data := await self._client.receive():
                if (name := reader.feed(data)) is not None:
                    if name != host:
                        raise Refused(Reason.WRONG_SNI)
                    return bytes(reader.seen)
            raise Refused(Reason.NOT_TLS)
        raise Refused(Reason.TOO_SLOW)

    async def _let_through(
        self, parsed: h11.Connection, ask: Ask, addresses: tuple[Address, ...], hello: bytes
    ) -> None:
        allowance = self._attempt.allowance
        async with allowance.connection() as flow:
            upstream, address = await self._dial(addresses, ask.port)
            self._log(Kind.ALLOWED, "allowed", flow, address)
            reason = Reason.STOPPED
            try:
                with anyio.CancelScope(deadline=allowance.deadline) as time:
                    if ask.tunnel:
                        reason = await self._tunnel(upstream, hello, flow)
                    else:
                        reason = await self._forward(Forwarding(ask, parsed, self._client, upstream, flow))
                if time.cancelled_caught:
                    reason = Reason.SECONDS_SPENT
            finally:
                upstream.close()
                self._log(Kind.ENDED, reason, flow, address)

    async def _dial(self, addresses: tuple[Address, ...], port: int) -> tuple[Wire, str]:
        """Connect to the first of the vetted addresses that answers. Raises Refused."""
        with anyio.move_on_after(self._attempt.rules.limits.request_seconds):
            for address in map(str, addresses):
                try:
                    return await self._attempt.connect(address, port), address
                except OSError:
                    continue
        raise Refused(Reason.UNREACHABLE)

    async def _tunnel(self, upstream: Wire, hello: bytes, flow: Flow) -> Reason:
        try:
            flow.sends(len(hello))
            await upstream.send(hello)
        except Refused as refused:
            return refused.reason
        except OSError:
            return Reason.RESET
        return await splice(self._client, upstream, flow)

    async def _forward(self, exchange: Forwarding) -> Reason:
        reason = await exchange.run()
        with suppress(OSError):  # a client that has gone does not change how the exchange ended
            if not exchange.begun:
                await self._turn_away(Reason.BAD_REPLY if reason in (Reason.CLOSED, Reason.RESET) else reason)
            elif reason is Reason.CLOSED:
                await self._client.linger()
        return reason

    async def _turn_away(self, reason: Reason) -> None:
        """Tell the client, and take more time over it when there have been very many already."""
        if self._attempt.log.count(Kind.REFUSED) > PATIENCE:
            await anyio.sleep(DELAY)
        await self._client.send(tls_refusal(reason) if self._established else refusal(reason))
        await self._client.linger()

    def _log(self, kind: Kind, reason: str, flow: Flow | None = None, address: str = "") -> None:
        host, port = self._asked
        up, down, seconds = (flow.up, flow.down, flow.seconds) if flow else (0, 0, 0.0)
        self._attempt.log.add(Decision(kind, str(reason), host, port, up, down, seconds, address))
