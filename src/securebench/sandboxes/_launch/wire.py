"""Messages between the engine and its launching processes: one packet each, descriptors along with it.

Standard library only, and of that the C modules: the Python ones cost more to import than all of our own."""

from __future__ import annotations

import _socket
import array

_MAX_FDS = 64
_INT = array.array("i").itemsize


def pack(items: list[bytes]) -> bytes:
    """Length-prefixed byte strings, as `unpack` reads them."""
    return b"".join(len(item).to_bytes(4, "little") + item for item in items)


def unpack(data: bytes) -> list[bytes]:
    """The inverse of `pack`."""
    items, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        items.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return items


def read_payload(fd: int) -> list[bytes]:
    """The items in a memory file that came along; closes it."""
    with open(fd, "rb") as payload:
        return unpack(payload.read())


def receive(control: _socket.socket, most: int = 64) -> tuple[bytes, list[int]] | None:
    """The next message and its descriptors, which close at exec; None when the other end is gone.

    Not by `socket.recv_fds`, which before Python 3.14 ignores the flag that makes them close."""
    body, ancillary, _, _ = control.recvmsg(most, _socket.CMSG_SPACE(_INT * _MAX_FDS), _socket.MSG_CMSG_CLOEXEC)
    if not body:
        return None
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % _INT])
    return body, list(fds)


def send(control: _socket.socket, body: bytes, fds: list[int] | None = None) -> None:
    """One message. Raises OSError when the other end is gone."""
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    control.sendmsg([body], rights)
