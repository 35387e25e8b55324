"""The server: listens, holds so many conversations, and stops in order.

When it is told to stop it takes no more connections and no more candidates, ends connections on which nothing is asked,
and gives what is being judged some time. Told again, or after that time, it ends everything."""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

import anyio

from securebench._http import Room
from securebench._sockets import accept
from securebench._tasks import one_error
from securebench.egress.crowd import Crowd
from securebench.errors import ConfigError, InfrastructureError
from securebench.grading import Grader
from securebench.serving.access import Gate
from securebench.serving.conversation import Conversation
from securebench.serving.service import Service

_BACKLOG = 1024
_LOOK_SECONDS = 0.5
_LAST_WORDS_SECONDS = 5.0  # to tell clients that it is over


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on a numeric address. Raises ConfigError for what is none, InfrastructureError."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise ConfigError(f"--host takes an address of this machine, such as 127.0.0.1, not {host!r}") from None
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((str(address), port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise InfrastructureError(f"cannot listen on {host} port {port}: {(error.strerror or '').lower()}") from None
    listener.setblocking(False)
    return listener


class Server:
    """One service on one listener."""

    def __init__(self, service: Service, gate: Gate, listener: socket.socket) -> None:
        self._service, self._gate, self._listener = service, gate, listener
        self._crowd = Crowd(service.limits.connections)
        self._room = Room(service.limits.bodies_bytes)
        self._over = anyio.Event()
        self._asked = anyio.Event()

    def stop(self) -> None:
        """The first time: in order. The second time: now."""
        if self._asked.is_set():
            self._over.set()
        self._asked.set()

    async def run(self, grader: Grader, on_ready: Callable[[], None]) -> None:
        """Answer until stopped; candidates are taken once the grader is there. Raises what opening it raises, and
        InfrastructureError when it can judge no more."""
        service = self._service
        async with one_error(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_signals)
            tasks.start_soon(self._serve)
            with anyio.CancelScope() as opening:
                tasks.start_soon(self._end_early, opening)
                async with grader:
                    service.grader = grader
                    on_ready()
                    tasks.start_soon(self._watch_judges, grader)
                    await self._asked.wait()
                    await self._wind_up()
                    if (fault := grader.fault) is not None:
                        raise InfrastructureError(f"nothing can be judged any more: {fault}")
            tasks.cancel_scope.cancel()

    async def _end_early(self, opening: anyio.CancelScope) -> None:
        """Told to stop while the grader is being opened, there is nothing to wait for."""
        await self._asked.wait()
        if self._service.grader is None:
            self._service.stopping = True
            opening.cancel()

    async def _watch_judges(self, grader: Grader) -> None:
        """A server that can judge no more ends, so that whoever keeps it running starts another."""
        while grader.fault is None:
            await anyio.sleep(_LOOK_SECONDS)
        self._asked.set()

    async def _wind_up(self) -> None:
        self._service.stopping = True
        anyio.notify_closing(self._listener)
        self._listener.close()
        self._crowd.dismiss()
        with anyio.move_on_after(self._service.limits.grace_seconds):
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(self._until_over, waiting.cancel_scope)
                await self._crowd.empty()
                waiting.cancel_scope.cancel()
        self._over.set()
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await self._crowd.empty()

    async def _until_over(self, scope: anyio.CancelScope) -> None:
        await self._over.wait()
        scope.cancel()

    async def _watch_signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                self.stop()

    async def _serve(self) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                await self._crowd.room()
                try:
                    connection = await accept(self._listener)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                except anyio.ClosedResourceError:
                    return
                except OSError:
                    if self._listener.fileno() < 0:
                        return
                    await anyio.sleep(0.05)  # out of descriptors, or a client that reset: neither lasts
                    continue
                self._crowd.enter()
                self._service.counts.connections += 1
                self._service.connections += 1
                tasks.start_soon(self._talk, connection)

    async def _talk(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError):
                talk = Conversation(self._service, self._gate, self._crowd, self._room, self._over, connection)
                await talk.run()
        finally:
            self._service.connections -= 1
            self._crowd.leave()
