"""The host's end of a session's listeners: sockets that live in the sandbox's network namespace.

They are bound inside (`_launch/listening.py`) and arrive here as descriptors. Before anything accepts on one, it is
checked to be what the spec asked for, by what the kernel says of it:

- a TCP socket that listens on 127.0.0.1 and the port that was asked for;
- not of our own network namespace, where every process of this host could reach it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence

import anyio

from securebench.errors import SandboxError

ADDRESS = "127.0.0.1"

_SO_NETNS_COOKIE = 71  # Linux 5.14; older kernels do not tell
_COOKIE_BYTES = 8


class Listeners:
    """The listening sockets of one session, which owns them. Empty for a session without any."""

    def __init__(self, sockets: Iterable[tuple[int, socket.socket]] = ()) -> None:
        self._sockets = dict(sockets)
        self._closed = False

    @classmethod
    def adopt(cls, ports: Sequence[int], descriptors: Sequence[int]) -> Listeners:
        """Take over one descriptor for each port. Raises SandboxError, with all of them closed, if one is not right."""
        made: list[socket.socket] = []
        left = list(descriptors)
        try:
            if len(left) != len(ports):
                raise SandboxError(f"the sandbox handed {len(left)} listeners over, not {len(ports)}")
            for port in ports:
                made.append(socket.socket(fileno=left[0]))
                del left[0]
                _check(made[-1], port)
                made[-1].setblocking(False)
        except (SandboxError, OSError) as error:
            for each in made:
                each.close()
            for descriptor in left:
                os.close(descriptor)
            if isinstance(error, SandboxError):
                raise
            raise SandboxError(f"the sandbox handed something over that is no listener: {error}") from error
        return cls(zip(ports, made, strict=True))

    def at(self, port: int) -> socket.socket:
        """The one of this port. Raises SandboxError for another port, or once they are closed."""
        if port not in self._sockets:
            raise SandboxError(f"this sandbox has no listener on port {port}; name it in the spec")
        if self._closed:
            raise SandboxError("this sandbox was stopped, and its listeners with it")
        return self._sockets[port]

    def close(self) -> None:
        """Refuse further connections. Whoever waits on one of them is woken. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for each in self._sockets.values():
            anyio.notify_closing(each)
            each.close()


def _check(listener: socket.socket, port: int) -> None:
    found = (listener.family, listener.type, listener.proto)
    if found != (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP):
        raise SandboxError(f"the listener for port {port} is not a TCP socket")
    if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise SandboxError(f"the listener for port {port} does not listen")
    if listener.getsockname() != (ADDRESS, port):
        raise SandboxError(f"the listener for port {port} is bound to {listener.getsockname()}")
    with socket.socket(socket.AF_UNIX) as ours:
        own = _namespace(ours)
    if own is not None and _namespace(listener) == own:
        raise SandboxError(f"the listener for port {port} is on the host's own loopback and not on the sandbox's")


def _namespace(of: socket.socket) -> bytes | None:
    """What names the network namespace of a socket; None where the kernel does not tell."""
    try:
        return of.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, _COOKIE_BYTES)
    except OSError:
        return None


__all__ = ["ADDRESS", "Listeners"]
