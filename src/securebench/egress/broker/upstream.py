"""The way to the providers: one connection pool a run, no redirects, no cookies, no proxy of the environment.

A request is tried again while no byte of its reply was passed on: when the provider is busy or cannot be reached."""

from __future__ import annotations

import random
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from securebench.egress.broker.admission import Headers, Route
from securebench.egress.broker.refusal import Refused
from securebench.egress.providers.schema import Provider

if TYPE_CHECKING:
    import httpx2

_AGAIN = frozenset({429, 500, 502, 503, 504, 529})
_PLAIN = re.compile(r"[\x20-\x7e]{1,4096}")
_TIMEOUTS = {"connect": 30.0, "write": 120.0, "pool": None}


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long to try, and how long a provider may be silent in the middle of a reply."""

    tries: int = 5
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 60.0
    silence_seconds: float = 1800.0

    def wait_seconds(self, tried: int, retry_after: str | None) -> float:
        """As long as the provider asks for, up to a bound; else longer each time, and never twice the same."""
        if retry_after is not None and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", retry_after):
            return min(float(retry_after), self.longest_wait_seconds)
        spread = 1 + random.random() / 2  # noqa: S311  # only keeps clients apart
        return min(self.first_wait_seconds * 2.0 ** (tried - 1) * spread, self.longest_wait_seconds)


@dataclass(slots=True)
class Tries:
    """Why a request was tried again so far, and whether the provider has it now and may be working on it."""

    reasons: list[str] = field(default_factory=list)
    under_way: bool = False


class Upstream:
    """Sends requests with the real key in place of whatever credential came in."""

    def __init__(self, patience: Patience, ssl_context: ssl.SSLContext | None) -> None:
        self._patience = patience
        self._ssl_context = ssl_context
        self._transport: httpx2.AsyncHTTPTransport | None = None

    async def __aenter__(self) -> Upstream:
        import httpx2

        # The transport, not a client: a client would keep cookies, and attempts could meet in its jar.
        self._transport = httpx2.AsyncHTTPTransport(
            verify=self._ssl_context or True,
            trust_env=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=60),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._transport is not None:
            with anyio.CancelScope(shield=True):
                await self._transport.aclose()
            self._transport = None

    @asynccontextmanager
    async def open(
        self, route: Route, headers: Headers, body: bytes | None, tries: Tries
    ) -> AsyncIterator[httpx2.Response]:
        """The reply's head, its body still to be read. Keeps `tries` up to date. Raises Refused."""
        response = await self._patiently(route, headers, body, tries)
        try:
            if 300 <= response.status_code < 400:
                raise Refused(502, "upstream_error", "the provider answered with a redirect, which is not followed")
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise Refused(502, "upstream_error", "the provider compressed its reply although asked not to")
            yield response
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _patiently(self, route: Route, headers: Headers, body: bytes | None, tries: Tries) -> httpx2.Response:
        import httpx2

        if self._transport is None:
            raise RuntimeError("the broker is not open")
        for tried in range(1, self._patience.tries + 1):
            last, retry_after = tried == self._patience.tries, None
            request = httpx2.Request(
                route.endpoint.method,
                route.url,
                headers=upstream_headers(route, headers),
                content=body,
                extensions={"timeout": _TIMEOUTS | {"read": self._patience.silence_seconds}},
            )
            tries.under_way = True
            try:
                response = await self._transport.handle_async_request(request)
            except (httpx2.TransportError, OSError) as error:  # TLS that breaks is an OSError
                # Its own text and request are dropped: the request holds the key.
                reason = type(error).__name__
                # One that was silent for so long is at work, or hangs: asking again would wait as long again.
                if last or isinstance(error, httpx2.ReadTimeout):
                    message = f"the provider cannot be reached: {reason}"
                    raise Refused(502, "upstream_unavailable", message) from None
            else:
                if response.status_code not in _AGAIN or last:
                    return response
                reason, retry_after = str(response.status_code), response.headers.get("retry-after")
                with anyio.CancelScope(shield=True):
                    await response.aclose()
            tries.reasons.append(reason)
            tries.under_way = False
            await anyio.sleep(self._patience.wait_seconds(tried, retry_after))
        raise AssertionError  # the last try returns or raises


def is_busy(status: int) -> bool:
    """Whether a provider that answers so serves nobody at the moment."""
    return status in _AGAIN


def is_denied(status: int) -> bool:
    """Whether a provider that answers so does not take the key."""
    return status in {401, 402, 403, 407}


def upstream_headers(route: Route, headers: Headers) -> dict[str, str]:
    """Listed headers of the request, and the real key. Nothing else of what came in goes out."""
    access, provider = route.access, route.access.provider
    result = dict(provider.headers)
    result |= {name: value for name, value in headers if name in provider.request_headers and _PLAIN.fullmatch(value)}
    result["accept-encoding"] = "identity"  # what is compressed could be neither scrubbed nor metered
    result.setdefault("user-agent", "securebench")
    if route.endpoint.method == "POST":
        result["content-type"] = "application/json"
    if access.key is not None:
        result[provider.key.header] = f"{provider.key.scheme} {access.key}".lstrip()
    return result


def reply_headers(provider: Provider, response: httpx2.Response) -> list[tuple[str, str]]:
    """Listed headers of a reply."""
    return [(name, response.headers[name]) for name in provider.reply_headers if name in response.headers]
