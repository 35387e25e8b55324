"""One plain HTTP request to an allowed host, and its reply back.

Both are taken apart and written anew, so the far end sees exactly the request that was judged, framed by us, and no
byte beyond it. Nothing is followed: a redirect goes back to the client, which asks again and is judged again."""

from __future__ import annotations

from dataclasses import dataclass

import h11

from securebench.egress.allowance import Flow
from securebench.egress.decisions import Reason, Refused
from securebench.egress.requests import Ask, without_hops
from securebench.egress.splicing import race
from securebench.egress.wire import Wire

MAX_REPLY_HEAD = 64 * 1024


@dataclass(slots=True)
class Forwarding:
    """One exchange. `parsed` is the client's connection, its request read; `begun` once a reply is under way."""

    ask: Ask
    parsed: h11.Connection
    client: Wire
    upstream: Wire
    flow: Flow
    begun: bool = False

    async def run(self) -> Reason:
        """How it ended."""
        far = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_REPLY_HEAD)
        sent_all = False

        async def up() -> None:
            nonlocal sent_all
            await self._send_request(far)
            sent_all = True

        async def down() -> None:
            await self._send_reply(far)
            if not sent_all:  # an answer before the question was complete: nothing more is sent
                raise Refused(Reason.CLOSED)

        return await race(self.flow, up, down)

    async def _send_request(self, far: h11.Connection) -> None:
        request = h11.Request(method=self.ask.method, target=self.ask.target, headers=list(self.ask.fields))
        await self._up(far.send(request))
        if self.parsed.they_are_waiting_for_100_continue:
            await self._down(self.parsed.send(h11.InformationalResponse(status_code=100, headers=[])))
        while True:
            event = await _next(self.parsed, self.client, Reason.MALFORMED)
            if isinstance(event, h11.Data):
                await self._up(far.send(h11.Data(data=event.data)))
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                raise Refused(Reason.MALFORMED)
        if self.parsed.trailing_data[0]:
            raise Refused(Reason.PIPELINED)
        await self._up(far.send(h11.EndOfMessage()))

    async def _send_reply(self, far: h11.Connection) -> None:
        reply = await self._reply_head(far)
        fields = [(bytes(name), bytes(value)) for name, value in reply.headers]
        kept = without_hops(fields)
        if any(name == b"transfer-encoding" for name, _ in fields):
            kept = [(name, value) for name, value in kept if name != b"content-length"]
        kept.append((b"connection", b"close"))
        await self._reply(h11.Response(status_code=reply.status_code, reason=reply.reason, headers=kept))
        while not isinstance(event := await _next(far, self.upstream, Reason.BAD_REPLY), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise Refused(Reason.BAD_REPLY)
            await self._reply(h11.Data(data=event.data))
        await self._reply(h11.EndOfMessage())

    async def _reply_head(self, far: h11.Connection) -> h11.Response:
        while True:
            event = await _next(far, self.upstream, Reason.BAD_REPLY)
            if isinstance(event, h11.Response) and event.status_code != 407:  # the client has no proxy to log in to
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise Refused(Reason.BAD_REPLY)

    async def _reply(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        try:
            data = self.parsed.send(event)
        except h11.LocalProtocolError:
            raise Refused(Reason.BAD_REPLY) from None
        self.begun = True
        await self._down(data)

    async def _up(self, data: bytes | None) -> None:
        if data:
            self.flow.sends(len(data))
            await self.upstream.send(data)

    async def _down(self, data: bytes | None) -> None:
        if data:
            self.flow.returns(len(data))
            await self.client.send(data)


async def _next(connection: h11.Connection, wire: Wire, complaint: Reason) -> object:
    """The next event of one side. Raises Refused where it breaks the rules of HTTP."""
    try:
        while (event := connection.next_event()) is h11.NEED_DATA:
            connection.receive_data(await wire.receive())
    except h11.RemoteProtocolError:
        raise Refused(complaint) from None
    return event
