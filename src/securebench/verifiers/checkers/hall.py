"""The host between a checker and the worker: runs the one, and has the other do what the checker asks for.

1. The checker's sandbox holds no candidate code, so what it reports at the end is what it saw.
2. The worker is a sandbox of its own with a copy of the captured workspace, made when it is first needed. What comes
   out of it is bytes, bounded, and goes to the checker as data.
3. Time is kept here. A checker that does not come to its end is the candidate's failure: what it looked at was the
   candidate's. A sandbox that cannot be made is the host's."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import anyio

from securebench import _json
from securebench._tasks import one_error
from securebench.errors import ConfigError, SandboxError
from securebench.sandboxes.base import Command, Outcome, Sandbox, SandboxResult, SandboxSpec, Session
from securebench.verifiers.checkers.tools import concierge_program, worker_program
from securebench.verifiers.rooms.codec import CodecError, decode, encode
from securebench.verifiers.rooms.room import Room, RoomEnded, RoomProgram, RoomSilent

MAX_ASKED = 2000
START_SECONDS = 60.0
FAREWELL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Hall:
    """Where a checker runs and where the worker does. `seconds` bound the checker as a whole."""

    checker_sandbox: Sandbox
    checker: SandboxSpec
    worker_sandbox: Sandbox
    worker: Callable[[], Awaitable[SandboxSpec]]  # asked once, when the worker is first needed
    seconds: float
    python: str = "python3"  # what holds the channel where the checker runs


@dataclass(frozen=True, slots=True)
class CheckerProgram(RoomProgram):
    """The concierge, under an interpreter that is not a stand-in."""

    interpreter: str

    @property
    def command(self) -> Command:
        return Command((self.interpreter, *self.python.argv[1:]))


@dataclass(slots=True)
class Seen:
    """What came of it. `end` is None where the checker did not come to its end; `why` says so then."""

    end: Mapping[str, Any] | None = None
    why: str = ""
    asked: int = 0
    confined: bool = False  # whether the kernel let the checker execute nothing but its own files and the system's
    results: list[SandboxResult] = field(default_factory=list)
    checker: SandboxResult | None = None


async def hold(hall: Hall, start: Mapping[str, Any]) -> Seen:
    """Run one checker to its end. Raises SandboxError where the host failed."""
    seen = Seen()
    room = Room(hall.checker_sandbox, hall.checker, CheckerProgram("checker", concierge_program(), hall.python))
    async with one_error(), anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        tasks.start_soon(room.live)
        try:
            await _converse(hall, start, room, _Worker(hall, stack, seen), seen)
        finally:
            with anyio.CancelScope(shield=True):
                await room.leave(FAREWELL_SECONDS)
    seen.checker = room.result
    return seen


async def _converse(hall: Hall, start: Mapping[str, Any], room: Room, worker: _Worker, seen: Seen) -> None:
    try:
        await room.receive(time.monotonic() + START_SECONDS)
    except (RoomEnded, RoomSilent, CodecError):
        await room.wait_ended()
        detail = str(room.error) if room.error else _words(room.result)
        raise SandboxError(f"the checker's sandbox did not come up: {detail}") from None
    until = time.monotonic() + hall.seconds
    try:
        await room.send(encode(dict(start)), until)
        while True:
            match decode(await room.receive(until)):
                case ["ask", request]:
                    reply = await worker.do(request, until - time.monotonic())
                    await room.send(encode(reply), until)
                case ["done", end]:
                    seen.end, seen.confined = end, end.get("confined") is True
                    return
    except RoomSilent:
        seen.why = "ran out of time"
    except (RoomEnded, CodecError):
        await room.wait_ended()
        seen.why = f"broke down ({_words(room.result)})"


def _words(result: SandboxResult | None) -> str:
    if result is None:
        return "it is still running"
    said = result.stderr.data.decode("utf-8", "replace").strip().splitlines()[-1:]
    return " ".join([str(result.outcome), f"exit code {result.exit_code}", *said])


class _NoCommand(Exception):
    """What the checker asks for cannot be run by anybody."""


class _Worker:
    """Made when it is first asked for something; one request at a time."""

    def __init__(self, hall: Hall, stack: AsyncExitStack, seen: Seen) -> None:
        self._hall, self._stack, self._seen = hall, stack, seen
        self._session: Session | None = None
        self._spec = SandboxSpec()

    async def do(self, request: Any, seconds: float) -> dict[str, Any]:
        self._seen.asked += 1
        if self._seen.asked > MAX_ASKED:
            return {"refused": f"more than {MAX_ASKED} requests to the worker"}
        try:
            return await self._do(request, seconds)
        except _NoCommand as error:
            return {"refused": str(error)}

    async def _do(self, request: Any, seconds: float) -> dict[str, Any]:
        match request:
            case {"do": "run", "argv": [*argv], "stdin": bytes(stdin), "cwd": cwd, "env": dict(env), "timeout": limit}:
                result = await self._run(tuple(map(str, argv)), stdin, cwd, env, _least(limit, seconds))
                return _done(result)
            case {"do": ("call" | "http") as what, "timeout": limit, **rest}:
                program = ("python3", "-I", "-B", "-c", worker_program(what))
                data = _json.dumps(_latin1(rest)).encode()
                result = await self._run(program, data, None, {}, _least(limit, seconds))
                return _answer(result)
        return {"refused": "not a request that a worker knows"}

    async def _run(
        self, argv: tuple[str, ...], stdin: bytes, cwd: Any, env: Mapping[str, str], seconds: float
    ) -> SandboxResult:
        if self._session is None:
            self._spec = await self._hall.worker()
            self._session = await self._stack.enter_async_context(self._hall.worker_sandbox.open(self._spec))
        place = self._spec.cwd
        if isinstance(cwd, str) and cwd:
            place = cwd if cwd.startswith("/") else f"{place}/{cwd}"
        clean = {
            str(name): str(value) for name, value in env.items() if "\0" not in f"{name}{value}" and "=" not in name
        }
        command = Command(argv, stdin=stdin, env=clean, cwd=place, wall_seconds=max(0.1, seconds))
        try:
            result = await self._session.run(command)
        except ConfigError as error:  # a word that no command can have; it may come from the candidate's files
            raise _NoCommand(str(error)) from None
        self._seen.results.append(result)
        return result


def _least(limit: Any, seconds: float) -> float:
    return min(float(limit), seconds) if isinstance(limit, int | float) and limit > 0 else seconds


def _done(result: SandboxResult) -> dict[str, Any]:
    return {
        "returncode": result.exit_code if result.exit_code is not None else -(result.signal or 9),
        "signal": result.signal,
        "timed_out": result.outcome is Outcome.TIMEOUT,
        "stdout": result.stdout.data,
        "stderr": result.stderr.data,
    }


def _answer(result: SandboxResult) -> dict[str, Any]:
    """What `call` and `http` print, as far as it is what they print; the candidate shares their process."""
    if not result.ok:
        return {"error": f"it ended with {_words(result)}", "value": None, "pages": []}
    try:
        value = _json.loads(result.stdout.data)
    except ValueError:
        value = None
    match value:
        case {"value": found, "error": None | str() as error}:
            # As text: a value may look like anything, also like the form in which bytes travel.
            return {"error": error, "value": _json.dumps(found), "pages": []}
        case {"pages": [*pages], "error": None | str() as error} if all(map(_is_page, pages)):
            return {"error": error, "value": None, "pages": pages}
    return {"error": "it printed something else than its answer", "value": None, "pages": []}


def _is_page(page: object) -> bool:
    match page:
        case {"status": int(), "headers": [*headers], "body": {"latin1": str()}}:
            return all(isinstance(item, list) and len(item) == 2 for item in headers)
    return False


def _latin1(value: Any) -> Any:
    """Plain data with bytes as the rooms' programs write them."""
    match value:
        case bytes():
            return {"latin1": value.decode("latin-1")}
        case dict():
            return {str(key): _latin1(item) for key, item in value.items()}
        case list() | tuple():
            return [_latin1(item) for item in value]
    return value
