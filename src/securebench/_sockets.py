"""Non-blocking sockets under anyio: large reads and writes, with no buffers and tasks in between."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import anyio

READ = 256 * 1024


async def accept(listener: socket.socket) -> socket.socket:
    """The next connection. Raises OSError, and ClosedResourceError where the listener is closed."""
    while True:
        if listener.fileno() < 0:
            raise anyio.ClosedResourceError
        await anyio.wait_readable(listener)
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            continue  # the client went away in the meantime
        connection.setblocking(False)
        return connection


async def accept_each(
    listener: socket.socket,
    most: int,
    handle: Callable[[socket.socket], Awaitable[None]],
    pause: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Have `most` TCP connections at a time handled, after a pause each, until cancelled or the listener is closed."""
    places = anyio.Semaphore(most)

    async def handled(connection: socket.socket) -> None:
        try:
            with connection:
                await handle(connection)
        finally:
            places.release()

    async with anyio.create_task_group() as tasks:
        while listener.fileno() >= 0:
            await places.acquire()
            if pause is not None:
                await pause()
            try:
                connection = await accept(listener)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except anyio.ClosedResourceError:
                break  # while we waited
            except OSError:
                places.release()
                await anyio.sleep(0.05)  # out of descriptors, or a client that reset: neither lasts
                continue
            tasks.start_soon(handled, connection)
        tasks.cancel_scope.cancel()


async def receive(connection: socket.socket, most: int = READ) -> bytes:
    """What is there, or what comes next; empty at the end. Raises OSError."""
    while True:
        try:
            return connection.recv(most)
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
