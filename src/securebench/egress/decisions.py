"""What was decided about each connection, why, and the bounded log of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

MAX_DECISIONS = 2000
MAX_SHOWN = 256


class Reason(StrEnum):
    """Why the proxy refused or ended something; reports group by it."""

    # the request
    NOT_ALLOWED = "not_allowed"
    BAD_NAME = "bad_name"
    BAD_PORT = "bad_port"
    MALFORMED = "malformed"
    NOT_PROXIED = "not_proxied"
    HOST_MISMATCH = "host_mismatch"
    FRAMING = "framing"
    PIPELINED = "pipelined"
    UPGRADE = "upgrade"
    TOO_SLOW = "too_slow"
    # the address
    UNRESOLVABLE = "unresolvable"
    PRIVATE_ADDRESS = "private_address"
    UNREACHABLE = "unreachable"
    # the first bytes of a tunnel
    NOT_TLS = "not_tls"
    BAD_HELLO = "bad_hello"
    NO_SNI = "no_sni"
    WRONG_SNI = "wrong_sni"
    ENCRYPTED_HELLO = "encrypted_hello"
    # budgets
    BYTES_SPENT = "bytes_spent"
    CONNECTIONS_SPENT = "connections_spent"
    SECONDS_SPENT = "seconds_spent"
    TOO_MANY_OPEN = "too_many_open"
    IDLE = "idle"
    # how a connection that was allowed came to its end
    CLOSED = "closed"
    RESET = "reset"
    BAD_REPLY = "bad_reply"
    STOPPED = "stopped"


class Refused(Exception):
    """A connection is not let through, or not any further. Never leaves the proxy."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Kind(StrEnum):
    ALLOWED = "allowed"
    REFUSED = "refused"
    ENDED = "ended"  # of a connection that was allowed before


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. `host` and `port` are as the client wrote them: show them with `shown`, never trust them."""

    kind: Kind
    reason: str
    host: str = ""
    port: str = ""
    bytes_up: int = 0
    bytes_down: int = 0
    seconds: float = 0.0
    address: str = ""


def shown(raw: bytes | str) -> str:
    """What a client wrote, in printable ASCII of bounded length."""
    text = raw.decode("latin-1") if isinstance(raw, bytes) else raw
    safe = "".join(
        char if " " <= char <= "~" and char != "\\" else char.encode("unicode_escape").decode("ascii")
        for char in text[:MAX_SHOWN]
    )
    return safe if len(safe) <= MAX_SHOWN and len(text) <= MAX_SHOWN else safe[: MAX_SHOWN - 1] + "~"


class EgressLog:
    """The decisions of one attempt: the first `limit` of each kind with the time they were made, all of them counted.

    Of each kind, so that refusals, which cost a client nothing, cannot crowd out what it was let through to."""

    def __init__(self, limit: int = MAX_DECISIONS, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._start = clock()
        self._entries: list[tuple[float, Decision]] = []
        self._kept: Counter[Kind] = Counter()
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, decision: Decision) -> None:
        self._counts[decision.kind.value, decision.reason] += 1
        if self._kept[decision.kind] < self._limit:
            self._kept[decision.kind] += 1
            self._entries.append((self._clock() - self._start, decision))

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return tuple(decision for _, decision in self._entries)

    @property
    def dropped(self) -> int:
        """How many decisions were counted but not kept."""
        return self._counts.total() - len(self._entries)

    def count(self, kind: Kind, reason: str | None = None) -> int:
        return sum(n for (k, r), n in self._counts.items() if k == kind and reason in (None, r))

    def as_json(self) -> list[dict[str, Any]]:
        """Every kept decision in order, as plain data."""
        return [
            {"at": round(at, 3), **asdict(decision), "kind": decision.kind.value, "seconds": round(decision.seconds, 3)}
            for at, decision in self._entries
        ]

    def summary(self) -> dict[str, Any]:
        """How many decisions there were of each kind and reason, also of those not kept."""
        counts: dict[str, dict[str, int]] = {}
        for (kind, reason), number in sorted(self._counts.items()):
            counts.setdefault(kind, {})[reason] = number
        return {"counts": counts, "kept": len(self._entries), "dropped": self.dropped}
