"""Listening sockets on the loopback of wherever this process is, for somebody outside to accept on.

Used by the launcher of bubblewrap sessions once it has entered the sandbox. In a Docker session it is the program of
the holder container: it hands the sockets over through a Unix socket, keeps none of them, and waits for its end.
Standard library only, and of that as little as possible: in a container there is nothing else (`_docker/interpreter`).
"""

from __future__ import annotations

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TOKEN = "SECUREBENCH_TOKEN"  # noqa: S105  (the variable it comes in)
NO_PORT, NO_DOOR = 3, 4
"""Exit codes: a port could not be bound; the Unix socket could not be reached."""

_BACKLOG = 128
_INT_BYTES = 4


def listen(ports: Iterable[int]) -> list[int]:
    """A listening descriptor on 127.0.0.1 for each port. Raises OSError."""
    made = []
    for port in ports:
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        made.append(listener.detach())
    return made


def _hand_over(door: str, listeners: list[int]) -> None:
    with_it = b"".join(fd.to_bytes(_INT_BYTES, sys.byteorder) for fd in listeners)
    to_host = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    to_host.connect(door)
    to_host.sendmsg([os.environ[TOKEN].encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, with_it)])
    to_host.close()


def main(door: str, *ports: str) -> int:
    """Hand the listeners of `ports` over, then wait until standard input ends."""
    try:
        listeners = listen(map(int, ports))
    except OSError:
        return NO_PORT
    try:
        _hand_over(door, listeners)
    except OSError:
        return NO_DOOR
    for fd in listeners:
        os.close(fd)
    os.read(0, 1)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
