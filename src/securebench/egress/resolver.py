"""From a name that is allowed to all its addresses."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from securebench.egress.decisions import Reason, Refused

Resolve = Callable[[str], Awaitable[tuple[str, ...]]]
"""All addresses of a canonical name, as text, best first. Raises Refused when it has none."""

DEADLINE = 10.0
MAX_LOOKUPS = 16
HOSTS = Path("/etc/hosts")
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("securebench_egress_lookups")


async def system_resolver(host: str) -> tuple[str, ...]:
    """What this host's hosts file says, or else its resolver. Raises Refused."""
    with anyio.move_on_after(DEADLINE):
        # A look-up cannot be interrupted: a thread that hangs is left behind, and counts until it comes back.
        return await anyio.to_thread.run_sync(_look_up, host, abandon_on_cancel=True, limiter=_own_limiter())
    raise Refused(Reason.UNRESOLVABLE)


def _own_limiter() -> anyio.CapacityLimiter:
    """Names that do not answer must not take the threads everything else in this process needs."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_LOOKUPS)
        _limiter.set(limiter)
        return limiter


def _look_up(host: str) -> tuple[str, ...]:
    if listed := _from_hosts_file(host):
        return listed
    try:
        # The dot at the end: the resolver must not try the name beneath its search domains, which is another name.
        found = socket.getaddrinfo(f"{host}.", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Refused(Reason.UNRESOLVABLE) from None
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def _from_hosts_file(host: str) -> tuple[str, ...]:
    """Read by ourselves, because with the dot at the end the system's own look-up passes it over."""
    try:
        lines = HOSTS.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    entries = (line.partition("#")[0].split() for line in lines)
    return tuple(entry[0] for entry in entries if host in map(str.lower, entry[1:]))
