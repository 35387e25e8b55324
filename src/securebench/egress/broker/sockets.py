"""Non-blocking sockets under anyio: large reads and writes, with no buffers and tasks in between."""

from __future__ import annotations

import socket

import anyio

READ = 256 * 1024


async def accept(listener: socket.socket) -> socket.socket:
    """The next connection. Raises OSError."""
    while True:
        await anyio.wait_readable(listener)
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            continue  # the client went away in the meantime
        connection.setblocking(False)
        return connection


async def receive(connection: socket.socket) -> bytes:
    """What is there, or what comes next; empty at the end. Raises OSError."""
    while True:
        try:
            return connection.recv(READ)
        except BlockingIOError:
            await anyio.wait_readable(connection)


async def send(connection: socket.socket, data: bytes) -> None:
    """All of it. Raises OSError."""
    sent = 0
    view = memoryview(data)
    while sent < len(data):
        try:
            sent += connection.send(view[sent:])
        except BlockingIOError:
            await anyio.wait_writable(connection)


async def hung_up(connection: socket.socket) -> bool:
    """Waits until the other side has closed, or has sent something more: then nothing can be said of it."""
    await anyio.wait_readable(connection)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
