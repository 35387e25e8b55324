"""What is written down of requests: short, bounded, and without keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from securebench.egress.broker.metering import Usage

MAX_EXCHANGES = 2000
MAX_COPY = 4 * 1024 * 1024  # of a request and of a reply, for whoever writes the trajectory


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for a request made in this process."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request of an attempt and what became of it. `seconds` counts from the start of the attempt."""

    number: int
    seconds: float
    provider: str
    method: str
    path: str
    model: str | None = None
    status: int = 0
    duration_seconds: float = 0.0
    request_bytes: int = 0
    reply_bytes: int = 0
    retries: tuple[str, ...] = ()
    refused: str | None = None
    complete: bool = False
    usage: Usage = field(default_factory=Usage)

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "seconds": round(self.seconds, 3),
            "provider": self.provider,
            "method": self.method,
            "path": self.path,
            "model": self.model,
            "status": self.status,
            "duration_seconds": round(self.duration_seconds, 3),
            "request_bytes": self.request_bytes,
            "reply_bytes": self.reply_bytes,
            "retries": list(self.retries),
            "refused": self.refused,
            "complete": self.complete,
            "usage": self.usage.as_json(),
        }


OnExchange = Callable[[Exchange, bytes, bytes], None]
"""Called with the summary, the request's body and the reply's body; both cut at MAX_COPY."""


class ReplySink(Protocol):
    """Where a reply goes: to a connection, or into memory."""

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None: ...

    async def chunk(self, data: bytes) -> None: ...

    async def flush(self) -> None:
        """Nothing more is there for now: what was given so far must not wait."""

    async def end(self) -> None: ...


class ExchangeLog:
    """The first exchanges of an attempt in full, the rest as a number.

    Those that named a model, those that did not and those that were refused are counted apart: asking for what costs
    nothing cannot crowd out what was asked of a model."""

    def __init__(self, limit: int = MAX_EXCHANGES) -> None:
        self.kept: list[Exchange] = []
        self.dropped = 0
        self._limit = limit
        self._numbers = 0
        self._sorts: Counter[tuple[bool, bool]] = Counter()

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def add(self, exchange: Exchange) -> None:
        sort = exchange.refused is not None, exchange.model is not None
        self._sorts[sort] += 1
        if self._sorts[sort] > self._limit:
            self.dropped += 1
        else:
            self.kept.append(exchange)
