"""The node's side of an agent that asks models: its connections are carried to the head, where the broker is.

Here are addresses and a placeholder, and no key."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from securebench._sockets import accept_each
from securebench.cluster import frames
from securebench.cluster.documents import decoded
from securebench.cluster.streams import Stream, stream_of
from securebench.cluster.talk import LinkLost, Talk
from securebench.egress.broker import Exchange, Usage
from securebench.egress.broker.server import ServerLimits
from securebench.engine.executors.wire import Frame
from securebench.harnesses.outlets import BROKER_PORT


@dataclass(frozen=True, slots=True)
class RemoteDoors:
    """What the head said about the models of one attempt."""

    talk: Talk
    exhausted: str | None
    hosts: frozenset[str]
    placeholder: str = field(default="", repr=False)
    variables: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    async def asked(cls, talk: Talk) -> RemoteDoors:
        """Raises LinkLost, IntegrityError."""
        await talk.say(frames.MODELS)
        while (frame := await talk.hear()).kind != frames.MODELS:
            pass

        def build(value: Any) -> RemoteDoors:
            variables = tuple((str(name), str(text)) for name, text in value.get("environment", {}).items())
            return cls(talk, value["spent"], frozenset(value["hosts"]), str(value.get("placeholder", "")), variables)

        return decoded("an answer about models", frame.data, build)

    @asynccontextmanager
    async def session(self, label: str) -> AsyncIterator[RemoteDoor]:  # noqa: ARG002 — the protocol's shape
        door = RemoteDoor(self)
        self.talk.aside = door.heard
        try:
            yield door
        finally:
            self.talk.aside = None


class RemoteDoor:
    """The session of one attempt, which is with the head. What it counted is known once it is settled."""

    def __init__(self, doors: RemoteDoors) -> None:
        self.usage = Usage()
        self.exchanges: list[Exchange] = []
        self.dropped_exchanges = 0
        self.exhausted: str | None = None
        self.unanswered = False
        self._doors, self._talk = doors, doors.talk
        self._spent = anyio.Event()
        self._streams: dict[int, Stream] = {}
        self._opened = 0

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self._doors.placeholder,)

    def environment(self, port: int) -> dict[str, str]:
        if port != BROKER_PORT:
            raise AssertionError("the head speaks of one port")
        return dict(self._doors.variables)

    async def out_of_budget(self) -> str:
        await self._spent.wait()
        return self.exhausted or ""

    async def probe(self) -> str | None:
        """Raises LinkLost, IntegrityError."""
        fault = decoded("a look at providers", await self._told(frames.PROBE), lambda value: value)
        return None if fault is None else str(fault)

    async def settled(self) -> None:
        """Raises LinkLost, IntegrityError."""
        decoded("an account of requests", await self._told(frames.ACCOUNT), self._settle)

    async def _told(self, kind: int) -> bytes:
        await self._talk.say(kind)
        while (frame := await self._talk.hear()).kind != kind:
            pass
        return frame.data

    def _settle(self, value: Any) -> None:
        self.usage = Usage(**value["usage"])
        self.exchanges = [_exchange(item) for item in value["exchanges"]]
        self.dropped_exchanges = int(value["dropped"])
        self.exhausted, self.unanswered = value["exhausted"], bool(value["unanswered"])

    # -- connections ---------------------------------------------------------------------------------------------

    async def serve(self, listener: socket.socket) -> None:
        """Carry each connection to the head until cancelled."""
        await accept_each(listener, ServerLimits().connections, self._carry)

    def heard(self, frame: Frame) -> None:
        if frame.kind == frames.SPENT:
            self.exhausted = self.exhausted or frame.data.decode("utf-8", "replace")
            self._spent.set()
            return
        number, data = stream_of(frame.data)
        if number in self._streams:
            self._streams[number].heard(frame.kind, data)

    async def _carry(self, connection: socket.socket) -> None:
        """Its place is free again when the head says so: there it has one, too."""
        self._opened += 1
        stream = self._streams[self._opened] = Stream(self._opened, self._talk)
        try:
            with suppress(LinkLost):
                await stream.say(frames.OPEN)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_outward, stream, connection)
                with suppress(LinkLost):
                    try:
                        await stream.inward(connection)
                    except OSError:
                        await stream.say(frames.CLOSE)
                        await stream.until_closed()
                tasks.cancel_scope.cancel()
        finally:
            del self._streams[stream.number]


async def _outward(stream: Stream, connection: socket.socket) -> None:
    with suppress(LinkLost):
        try:
            await stream.outward(connection)
        except OSError:
            await stream.say(frames.CLOSE)
        else:
            await stream.say(frames.END)


def _exchange(value: Any) -> Exchange:
    return Exchange(**{**value, "retries": tuple(value["retries"]), "usage": Usage(**value["usage"])})
