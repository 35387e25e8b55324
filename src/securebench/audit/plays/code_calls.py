"""A candidate that calls home: sockets of the host that it must not reach while it is verified."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from securebench.audit.plays.code import Completes, verdict
from securebench.audit.suite.attack import End, Ground, Seen

TCP, UDP, ABSTRACT, PATH = "@TCP@", "@UDP@", "@ABSTRACT@", "@PATH@"
"""What stands in the candidate's source for the addresses of home."""


@dataclass(frozen=True, slots=True)
class CallsHome:
    """A candidate that wants to send what it was called with to a socket of the host."""

    play: Completes

    async def on(self, ground: Ground) -> Seen:
        with _home(ground) as (sockets, addresses):
            source = self.play.source
            for name, address in addresses.items():
                source = source.replace(name, address)
            result = await verdict(replace(self.play, source=source), ground)
            called = [one for one in sockets if _called(one)]
        if called:
            return Seen(End.REACHED, f"{len(called)} sockets of the host were reached")
        return Seen(End.MISSED, "no socket of the host was reached", str(result.failure_reason or ""))


@contextmanager
def _home(ground: Ground) -> Iterator[tuple[list[socket.socket], dict[str, str]]]:
    name, path = f"securebench-{secrets.token_hex(8)}", str(ground.directory / "home")
    with ExitStack() as stack:
        sockets = []
        for family, kind, address in (
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name),
            (socket.AF_UNIX, socket.SOCK_STREAM, path),
        ):
            one = stack.enter_context(socket.socket(family, kind))
            one.setblocking(False)
            one.bind(address)
            if kind is socket.SOCK_STREAM:
                one.listen()
            sockets.append(one)
        ports = [str(one.getsockname()[1]) for one in sockets[:2]]
        yield sockets, {TCP: ports[0], UDP: ports[1], ABSTRACT: name, PATH: path}


def _called(one: socket.socket) -> bool:
    try:
        if one.type is socket.SOCK_DGRAM:
            one.recv(1)
        else:
            one.accept()[0].close()
    except BlockingIOError:
        return False
    return True
