"""What one attempt may reach, and how much of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from securebench._domains import canonical_domain
from securebench.egress.decisions import Reason, Refused
from securebench.errors import ConfigError

PLAIN_PORT = 80
TLS_PORT = 443
GIB = 1024**3


@dataclass(frozen=True, slots=True)
class EgressLimits:
    """Budgets of one attempt. Connections are those that were let through; bytes are counted in both directions.

    `seconds` is for the whole attempt, `idle_seconds` for one connection on which nothing moves, and
    `request_seconds` for each step before bytes may flow: the client's request, its TLS hello, the dialling."""

    connections: int = 256
    open: int = 32
    bytes: int = GIB
    seconds: float | None = None
    idle_seconds: float = 600.0
    request_seconds: float = 15.0

    def __post_init__(self) -> None:
        times = [self.idle_seconds, self.request_seconds, *([] if self.seconds is None else [self.seconds])]
        if min(self.connections, self.bytes) < 0 or self.open < 1 or not all(0 < t < math.inf for t in times):
            raise ConfigError("egress limits must be positive and finite")


@dataclass(frozen=True, slots=True)
class EgressRules:
    """Exact names, the ports, and the budgets. No names: everything is refused.

    Port 443 is for tunnels to TLS servers, port 80 for plain requests; neither takes the other's.
    `private_domains` are those of `domains` that may also lie in private networks or on this host."""

    domains: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset({PLAIN_PORT, TLS_PORT})
    limits: EgressLimits = field(default_factory=EgressLimits)
    private_domains: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for domain in sorted(self.domains):
            _require_canonical(domain)
        if stray := sorted(self.private_domains - self.domains):
            raise ConfigError(f"private domain {stray[0]!r} is not an allowed domain; name it in both lists")
        if not self.ports <= {PLAIN_PORT, TLS_PORT}:
            raise ConfigError("the egress proxy knows the ports 80 (plain HTTP) and 443 (TLS) only")

    def check(self, host: str, port: int, *, tunnel: bool) -> None:
        """Whether a client may ask for this canonical host at this port. Raises Refused.

        Decided before the name is resolved: a look-up alone would carry the name to whoever serves its zone."""
        if host not in self.domains:
            raise Refused(Reason.NOT_ALLOWED)
        if port not in self.ports or port != (TLS_PORT if tunnel else PLAIN_PORT):
            raise Refused(Reason.BAD_PORT)

    def is_private(self, host: str) -> bool:
        return host in self.private_domains


def _require_canonical(domain: str) -> None:
    try:
        if canonical_domain(domain) == domain:
            return
        reason = "write it in lower case"
    except ValueError as error:
        reason = str(error)
    raise ConfigError(f"allowed domain {domain!r}: {reason}")
