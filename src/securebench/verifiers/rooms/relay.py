"""The host between the rooms: passes messages, one at a time, and keeps its own account of what went wrong.

Rules, all on this side of both walls:

1. The worker speaks when it was asked, once, within the deadline, and within the budgets. Bytes at any other moment, a
   message too long, an end of the process or silence is a `Fault`, and no fault leaves a way to pass.
2. The test room runs no candidate code, so what it reports is what it saw. It reports to the host only.
3. A room that does not come up is the host's or the pack's fault. Once bytes of the candidate's were given to the
   tests, their breaking down is the candidate's failure, so that nobody can crash them to get out of the score."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from securebench._tasks import fault_first
from securebench.errors import FailureReason, PackError, SandboxError
from securebench.sandboxes.base import Outcome, Sandbox, SandboxResult, SandboxSpec
from securebench.verifiers.rooms.codec import CodecError, decode, encode
from securebench.verifiers.rooms.files import driver_program, worker_program
from securebench.verifiers.rooms.room import Room, RoomEnded, RoomProgram, RoomSilent

_FAREWELL = 2.0  # seconds for a room to end by itself, so that what it used can be read
_NO_PATIENCE = 0.1  # seconds, with a room that is in the wrong already
_LOADED = encode([0, "value", None, None, ""])  # says nothing but that the code was loaded


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the worker did that ends every hope of passing."""

    reason: FailureReason
    detail: str


@dataclass(frozen=True, slots=True)
class Meter:
    """What one conversation may take. Seconds are measured here."""

    total_seconds: float = 60.0
    call_seconds: float = 30.0
    start_seconds: float = 60.0  # for a room to come up; not the candidate's time
    messages: int = 500_000
    bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Rooms:
    """Where both rooms are made."""

    sandbox: Sandbox
    tests: SandboxSpec
    worker: SandboxSpec


@dataclass(slots=True)
class Conversation:
    """What came of it. `report` is None when the tests broke down after candidate bytes had reached them."""

    report: Mapping[str, Any] | None = None
    faults: list[Fault] = field(default_factory=list)
    workers: int = 0
    messages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    results: list[SandboxResult] = field(default_factory=list)


async def converse(rooms: Rooms, start: Mapping[str, Any], source: str, meter: Meter) -> Conversation:
    """Run one suite. Raises PackError and SandboxError for what is not the candidate's doing."""
    seen = Conversation()
    async with fault_first(), anyio.create_task_group() as tasks:
        relay = _Relay(rooms, source, meter, seen, tasks)
        try:
            await relay.run(start)
        finally:
            with anyio.CancelScope(shield=True):
                await relay.leave()
    return seen


class _Relay:
    def __init__(self, rooms: Rooms, source: str, meter: Meter, seen: Conversation, tasks: TaskGroup) -> None:
        self.rooms, self.meter, self.seen, self.tasks = rooms, meter, seen, tasks
        self.load = encode([0, "load", source])
        self.end = float("inf")
        self.asked = False  # whether candidate code has had a part of the time
        self.told = False  # whether bytes of the candidate's were given to the tests
        self.tests = self._open(rooms.tests, RoomProgram("test room", driver_program()))
        self.worker: Room | None = None
        try:
            self.next_worker: Room | None = self._open_worker()
        except SandboxError:
            self.tests.forget()
            raise

    def _open(self, spec: SandboxSpec, program: RoomProgram) -> Room:
        room = Room(self.rooms.sandbox, spec, program)
        self.tasks.start_soon(room.live)
        return room

    def _open_worker(self) -> Room:
        self.seen.workers += 1
        return self._open(self.rooms.worker, RoomProgram("worker", worker_program()))

    async def leave(self) -> None:
        patience = _NO_PATIENCE if self.seen.faults else _FAREWELL
        async with anyio.create_task_group() as leaving:
            for room in (self.tests, self.worker, self.next_worker):
                if room is not None:
                    leaving.start_soon(room.leave, patience)
        self._keep(self.worker)
        self._keep(self.tests)

    def _keep(self, room: Room | None) -> None:
        if room is not None and room.result is not None:
            self.seen.results.append(room.result)

    async def run(self, start: Mapping[str, Any]) -> None:
        await self._hello(self.tests)
        began = time.monotonic()
        self.end = began + self.meter.total_seconds
        try:
            await self.tests.send(b"H" + encode(dict(start)), self.end)
            while (message := await self._from_tests()) is not None:
                if message[:1] == b"W":
                    await self._answer(await self._exchange(message[1:]))
                elif (said := decode(message[1:])) == ["fresh"]:
                    await self._answer(await self._fresh())
                else:
                    self._finish(_report(said))
                    return
        except (RoomEnded, RoomSilent, CodecError) as error:
            await self._broke_down(error)
        finally:
            self.seen.seconds = time.monotonic() - began

    def _finish(self, report: Mapping[str, Any]) -> None:
        if self.worker is not None and self.worker.has_spoken():
            self._fault(FailureReason.PROTOCOL_VIOLATION, "the worker spoke when it was not asked")
        self.seen.report = report

    async def _from_tests(self) -> bytes | None:
        return await self.tests.receive(self.end)

    async def _answer(self, payload: bytes | None) -> None:
        """Tell the tests what the worker answered, or that there is none to be had."""
        if payload is None:
            await self.tests.send(b"H" + encode(self.seen.faults[-1].detail), self.end)
        else:
            self.told = self.told or payload != _LOADED
            await self.tests.send(b"W" + payload, self.end)

    async def _fresh(self) -> bytes | None:
        """Another worker with the candidate's code in it; its answer to loading it."""
        if self.worker is not None:
            await self._dismiss()
        self.worker, self.next_worker = self.next_worker or self._open_worker(), None
        began = time.monotonic()
        await self._hello(self.worker)
        self.end += time.monotonic() - began  # coming up is not the candidate's time
        return await self._exchange(self.load)

    async def _dismiss(self) -> None:
        assert self.worker is not None  # noqa: S101
        if self.worker.has_spoken():
            self._fault(FailureReason.PROTOCOL_VIOLATION, "the worker spoke when it was not asked")
        await self.worker.leave(_FAREWELL)
        self._keep(self.worker)
        self.worker = None

    async def _exchange(self, payload: bytes) -> bytes | None:
        """One message to the worker and one back; None when there is a fault instead."""
        worker = self.worker
        if worker is None:
            return None
        self.asked = True
        self.seen.messages += 2
        try:
            if worker.has_spoken():
                return await self._lose(FailureReason.PROTOCOL_VIOLATION, "the worker spoke when it was not asked")
            until = min(self.end, time.monotonic() + self.meter.call_seconds)
            await worker.send(payload, until)
            answer = await worker.receive(until)
        except RoomSilent:
            return await self._lose(FailureReason.WORKER_TIMEOUT, "the worker did not answer in time")
        except CodecError:
            return await self._lose(FailureReason.PROTOCOL_VIOLATION, "the worker sent a message longer than allowed")
        except RoomEnded:
            await self._ended()
            return None
        if worker.has_spoken():
            return await self._lose(FailureReason.PROTOCOL_VIOLATION, "the worker answered more than once")
        self.seen.bytes += len(payload) + len(answer)
        if self.seen.bytes > self.meter.bytes or self.seen.messages > self.meter.messages:
            return await self._lose(
                FailureReason.PROTOCOL_VIOLATION, "the conversation took too many messages or bytes"
            )
        return answer

    async def _ended(self) -> None:
        """The worker's channel has ended: why, as seen from outside. Raises the host's fault where it was one."""
        assert self.worker is not None  # noqa: S101
        await _told(self.worker)
        result = self.worker.result
        outcome = result.outcome if result is not None else None
        if outcome is Outcome.OUT_OF_MEMORY:
            await self._lose(FailureReason.WORKER_MEMORY_LIMIT, "the worker used more memory than it may")
        elif outcome is Outcome.OUTPUT_LIMIT:
            await self._lose(FailureReason.WORKER_OUTPUT_LIMIT, "the worker printed more than it may")
        elif outcome in (Outcome.TIMEOUT, Outcome.CPU_LIMIT):
            await self._lose(FailureReason.WORKER_TIMEOUT, "the worker ran for longer than it may")
        else:
            await self._lose(FailureReason.WORKER_CRASHED, "the worker ended before it answered")

    async def _lose(self, reason: FailureReason, detail: str) -> bytes | None:
        """Note a fault and be rid of the worker; no answer."""
        self._fault(reason, detail)
        if self.worker is not None:
            worker, self.worker = self.worker, None
            await worker.leave(_NO_PATIENCE)
            self._keep(worker)
        return None

    def _fault(self, reason: FailureReason, detail: str) -> None:
        self.seen.faults.append(Fault(reason, detail))

    async def _hello(self, room: Room) -> None:
        """Wait until the room is up. Nothing of the candidate's is in it yet. Raises SandboxError, PackError."""
        try:
            await room.receive(time.monotonic() + self.meter.start_seconds)
        except (RoomEnded, RoomSilent, CodecError):
            with suppress(TimeoutError):
                await room.wait_ended()
            raise _not_up(room) from None

    async def _broke_down(self, error: Exception) -> None:
        """The test room ended, was silent for too long, or sent what no test room sends. Raises the host's fault where
        it was one."""
        if self.seen.faults:
            return  # the worker's doing came first
        if isinstance(error, RoomEnded):
            await _told(self.tests)
        silent = isinstance(error, RoomSilent)
        if not self.told and not (silent and self.asked):
            await self.tests.wait_ended()
            raise _not_up(self.tests) from None
        if silent:
            self._fault(FailureReason.WORKER_TIMEOUT, "the tests did not come to an end in time")
        else:
            self._fault(FailureReason.WRONG_ANSWER, "the tests broke down on what the candidate returned")


async def _told(room: Room) -> None:
    """How a room ended whose channel has ended. Raises the host's fault: what a sandbox was lost by is nothing that
    can be done from within, and where memory ran out there is a result that says so."""
    await room.wait_ended()
    if room.error is not None:
        raise room.error


def _report(said: Any) -> Mapping[str, Any]:
    """The report in a message. Raises CodecError where it is none: pack code runs in that room."""
    report = said[1] if type(said) is list and len(said) == 2 and said[0] == "report" else None
    outcomes = report.get("outcomes") if type(report) is dict else None
    if type(report) is not dict or type(outcomes) is not list:
        raise CodecError("the test room sent what is no report")
    if any(type(one) is not list or [type(part) for part in one] != [int, str, str, float] for one in outcomes):
        raise CodecError("the test room sent what is no report")
    return report


def _not_up(room: Room) -> Exception:
    if room.error is not None:
        return room.error
    result = room.result
    if result is None:
        return SandboxError(f"the {room.name} did not come up in time")
    said = result.stderr.data.decode("utf-8", "replace").strip()[-500:]
    if result.exit_code in (126, 127):
        return PackError(f"the {room.name} needs python3 (3.8 or later) in its image: {said}")
    return SandboxError(f"the {room.name} did not come up ({result.outcome}): {said}")
