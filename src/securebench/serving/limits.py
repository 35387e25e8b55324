"""How much anybody can ask of a server at once."""

from __future__ import annotations

from dataclasses import dataclass

from securebench._http import HttpLimits

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServeLimits(HttpLimits):
    """Of each connection, of each request, and of all together."""

    head_bytes: int = 32 * 1024
    body_bytes: int = 16 * MIB
    idle_seconds: float = 75.0
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    write_seconds: float = 30.0
    connections: int = 256
    bodies_bytes: int = 64 * MIB  # of all requests under way
    batch: int = 256  # candidates in one request
    queue: int = 1024  # candidates of all requests that are judged or wait
    request_seconds: float = 600.0
    grace_seconds: float = 30.0  # for what is being judged when the server is told to stop
