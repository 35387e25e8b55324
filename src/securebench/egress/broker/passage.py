"""The way of one admitted request to the provider and of its reply back: scrubbed, metered, chunk by chunk."""

from __future__ import annotations

from collections.abc import AsyncIterable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from securebench import _json
from securebench.egress.broker.access import ModelAccess
from securebench.egress.broker.admission import Headers, Route
from securebench.egress.broker.body_rules import AdmittedBody
from securebench.egress.broker.exchange import Exchange, ReplySink
from securebench.egress.broker.metering import Meter, Usage
from securebench.egress.broker.refusal import Refused
from securebench.egress.broker.relay import relay
from securebench.egress.broker.scrubbing import Scrubber, scrubbed
from securebench.egress.broker.upstream import Tries, Upstream, is_busy, is_denied, reply_headers

PROBE_SECONDS = 60.0
_PING = [{"role": "user", "content": "ping"}]
_ONE_WORD: Mapping[str, Mapping[str, Any]] = {
    "chat": {"messages": _PING, "max_tokens": 1},
    "messages": {"messages": _PING, "max_tokens": 1},
    "responses": {"input": "ping", "max_output_tokens": 16, "store": False},
}


class Interrupted(Exception):
    """A reply broke off after it had begun; the agent's connection has to break off as well."""


@dataclass(slots=True)
class Draft:
    """What is known of an exchange while it goes on."""

    number: int
    seconds: float
    provider: str
    method: str
    path: str
    model: str | None = None
    status: int = 0
    request: bytes = b""
    refused: str | None = None
    complete: bool = False
    usage: Usage = field(default_factory=Usage)
    tries: Tries = field(default_factory=Tries)
    meter: Meter | None = None  # None where nothing can have been billed
    started: bool = False
    broken: bool = False  # by the provider
    keep: int = 0  # bytes of the reply, for whoever looks at it
    reply: bytearray = field(default_factory=bytearray)
    reply_bytes: int = 0

    @property
    def abandoned(self) -> bool:
        """Whether the provider was left alone with the request, by the agent or for its time."""
        return self.tries.under_way and not (self.complete or self.broken)

    def copy(self, data: bytes) -> None:
        self.reply_bytes += len(data)
        room = self.keep - len(self.reply)
        if room > 0:
            self.reply += data if len(data) <= room else data[:room]

    def exchange(self, now: float) -> Exchange:
        """What is written down of it in the end."""
        return Exchange(
            number=self.number,
            seconds=self.seconds,
            provider=self.provider,
            method=self.method,
            path=self.path[:200],
            model=self.model and self.model[:200],
            status=self.status,
            duration_seconds=now - self.seconds,
            request_bytes=len(self.request),
            reply_bytes=self.reply_bytes,
            retries=tuple(self.tries.reasons),
            refused=self.refused,
            complete=self.complete,
            usage=self.usage,
        )


async def pass_on(
    upstream: Upstream, route: Route, headers: Headers, admitted: AdmittedBody | None, draft: Draft, sink: ReplySink
) -> None:
    """Send, and hand the reply over as it comes. Raises Refused while nothing was handed over, then Interrupted."""
    import httpx2

    provider, key = route.access.provider, route.access.key
    draft.meter = Meter(provider.usage, streamed=False)  # until a reply says otherwise, what was sent may be billed
    try:
        async with upstream.open(route, headers, admitted.data if admitted else None, draft.tries) as response:
            streamed = response.headers.get("content-type", "").startswith("text/event-stream")
            draft.meter = Meter(provider.usage, streamed=streamed) if response.status_code < 400 else None
            draft.started, draft.status = True, response.status_code
            heads = [(name, _clean(value, key)) for name, value in reply_headers(provider, response)]
            await sink.start(response.status_code, heads)
            scrubber = Scrubber(key)

            async def chunk(data: bytes) -> None:
                if draft.meter is not None:
                    draft.meter.feed(data)
                await _hand_over(scrubber.feed(data), draft, sink)

            await relay(cast("AsyncIterable[bytes]", response.stream), chunk, sink.flush)
            await _hand_over(scrubber.finish(), draft, sink)
            draft.complete = True
            await sink.end()
    except Refused:
        draft.meter = None
        raise
    except httpx2.TransportError:
        draft.broken = True
        draft.refused = "upstream_interrupted: the provider's reply broke off"
        raise Interrupted from None


def _clean(value: str, key: str | None) -> str:
    return scrubbed(value.encode("latin-1", "replace"), key).decode("latin-1")


async def _hand_over(data: bytes, draft: Draft, sink: ReplySink) -> None:
    if data:
        draft.copy(data)
        await sink.chunk(data)


async def fault_of(upstream: Upstream, access: ModelAccess, seen: Container[int]) -> str | None:
    """What is wrong with a provider, seen by asking it ourselves; None if nothing.

    It is asked for its models and for one word: a provider may list models and serve none. A key may be good for
    asking models and not for listing them: that it is refused counts only where the statuses `seen` by the attempt
    say so too."""
    listed = [end for end in access.provider.endpoints if end.method == "GET" and "{" not in end.path]
    asked = [end for end in access.provider.endpoints if end.method == "POST" and end.kind in _ONE_WORD]
    for endpoint in (*listed[:1], *asked[:1]):
        ping = _ONE_WORD.get(endpoint.kind)
        body = None if ping is None else _json.dumps({**ping, "model": access.model}).encode()
        status = None
        try:
            with anyio.move_on_after(PROBE_SECONDS):
                route = Route(access, endpoint, endpoint.path, "")
                async with upstream.open(route, (), body, Tries()) as response:
                    status = response.status_code
        except Refused as refused:
            return f"{access.base_url}: {refused.message}"
        if status is None:
            return f"{access.base_url} did not answer within {PROBE_SECONDS:g} seconds"
        if is_busy(status) or (is_denied(status) and status in seen):
            return f"{access.base_url} answered {status}"
    return None
