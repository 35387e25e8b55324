"""One command in a container of its own: created, attached, started, watched, looked at.

The container's main process is the command (beneath the engine's init, which forwards the exit code), so the end of
the command is the end of its PID namespace: nothing it started lives on. How it ended is read from the daemon's
record, not from the client's exit code; creating and starting are separate calls, so that the streams of the second
carry the command's bytes and nothing of the engine's. What it used is read when it is over (`accounts.py`).

A command that waits for its first input can be started (`start_command`) long before somebody watches it: its time
begins when it is watched.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import anyio

from securebench._proc import Process
from securebench._tasks import side_tasks
from securebench.errors import SandboxError
from securebench.sandboxes._docker.accounts import STARTING_SECONDS, Account, Counts, Ledger
from securebench.sandboxes._docker.args import Place, create_args
from securebench.sandboxes._docker.channels import Relay
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.errors import explain
from securebench.sandboxes._docker.owner import DeadMan, Removal
from securebench.sandboxes._docker.state import State, inspect
from securebench.sandboxes._outcome import Observed, decide
from securebench.sandboxes._supervise import Streams, Supervisor
from securebench.sandboxes.base import Command, Limits, Outcome, SandboxSpec

_START_SECONDS = 120.0
"""How long a container may take to start before the daemon counts as hung; the command's own time begins after."""

_ALL_OF_IT = 0.98
"""The part of a memory limit that is as good as all: a kernel hands memory to its groups in small batches."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What was observed of one command."""

    outcome: Outcome
    exit_code: int | None
    signal: int | None
    wall_seconds: float
    used: Counts
    supervisor: Supervisor[int]


@dataclass(frozen=True, slots=True)
class Started:
    """A container whose start was asked for, and the client attached to its streams. `close` ends the client."""

    client: Client
    name: str
    account: Account
    process: Process
    streams: Streams
    relay: Relay

    async def close(self) -> None:
        """Idempotent. The container itself is the caller's to remove."""
        await self.process.close()
        self.streams.close()
        self.relay.close()


async def start_command(
    client: Client, place: Place, spec: SandboxSpec, command: Command, name: str, account: Account
) -> Started:
    """Make a container called `name`, which the caller removes, and start it. Raises SandboxError, ConfigError."""
    words, env_file = create_args(place, spec, command, name)
    account.follow(await client.make("creating a container", words, stdin=env_file))
    relay = Relay(command.numbers)
    # A stream that is a channel is the relay's; its pipe here has no writer and stays empty.
    streams = Streams.for_command(replace(command, channels={}))
    stdin, stdout, stderr = streams.inside
    stdin, stdout = relay.inside(stdin, stdout)
    words = ["start", "--attach"]
    if stdin != subprocess.DEVNULL:
        words.append("--interactive")
    try:
        process = client.start([*words, name], stdin=stdin, stdout=stdout, stderr=stderr)
    except BaseException:
        streams.close()
        relay.close()
        raise
    streams.close_inside()
    relay.close_inside()
    return Started(client, name, account, process, streams, relay)


@asynccontextmanager
async def container(
    client: Client, place: Place, spec: SandboxSpec, command: Command, name: str, switch: DeadMan, ledger: Ledger | None
) -> AsyncIterator[Started]:
    """A started command whose container is removed in the end. Raises SandboxError, ConfigError."""
    account = Account(ledger, name)
    try:
        async with Removal(client, name, switch):
            place = replace(place, group=account.parent)
            started = await start_command(client, place, spec, command, name, account)
            try:
                yield started
            finally:
                await started.close()
    finally:
        await account.remove()


async def wait_until_up(started: Started) -> State:
    """The state of a container that runs. Raises SandboxError for one that does not come up, or has ended again."""
    with anyio.move_on_after(_START_SECONDS):
        while started.process.alive:
            state = await inspect(started.client, started.name)
            if state.running:
                return state
            await anyio.sleep(0.02)
        raise SandboxError("a command that was to wait for its input has ended before there was any")
    raise SandboxError(f"a container did not start within {_START_SECONDS:g} s")


async def watch_command(started: Started, limits: Limits, command: Command) -> Ran:
    """Watch a started command to its end; its channels are carried and its time runs from now. Raises SandboxError."""
    return await _Watch(started, limits, command).run()


class _Watch:
    def __init__(self, started: Started, limits: Limits, command: Command) -> None:
        self._client, self._name, self._limits = started.client, started.name, limits
        self._started, self._account, self._relay = started, started.account, started.relay
        self._seconds = min(limits.wall_seconds, command.wall_seconds or limits.wall_seconds)
        # What the engine's start takes is not the command's; each of its processes has a limit of its own besides.
        self._cpu_limit = None if limits.cpu_seconds is None else limits.cpu_seconds + STARTING_SECONDS
        self._over = anyio.Event()
        self._hangup = anyio.Event()
        self._status: int | None = None  # of the client, which ends with the command's
        self._relay.attach(command.channels, self._hangup.set)
        # Our clock decides; the supervisor's is the last resort when the daemon does not answer.
        longest = self._seconds + _START_SECONDS
        self._supervisor: Supervisor[int] = Supervisor(
            replace(command, channels={}, wall_seconds=longest),
            replace(limits, wall_seconds=longest),
            started.streams,
            self._wait,
            self._end,
            self._over_limit if limits.cpu_seconds is not None or not self._account.exact else None,
        )

    async def run(self) -> Ran:
        try:
            async with side_tasks() as tasks:
                tasks.start_soon(self._kill_when_over)
                tasks.start_soon(self._keep_time)
                tasks.start_soon(self._relay.carry)
                tasks.start_soon(self._tell_of_hangup)
                await self._supervisor.watch()
        finally:
            await self._started.close()
        return self._judge(await inspect(self._client, self._name))

    def _judge(self, state: State) -> Ran:
        supervisor = self._supervisor
        if state.started is None:
            # It never ran, so all that is on the streams is the client's own words.
            raise explain("starting a container", state.error.encode() or bytes(supervisor.stderr.data))
        if state.running:
            raise SandboxError("the container engine's client ended before the container did")
        if supervisor.killed is None and (state.removed or self._status != state.exit_code):
            # Whoever removes a container kills what is in it, and so does a daemon that starts again.
            raise SandboxError("the container was ended from outside, by its removal or with the engine's daemon")
        limit, used = self._cpu_limit, self._account.read()
        starved = state.oom_killed or self._was_starved(state, used)
        seen = Observed(state.ending, supervisor.killed, int(starved), limit, used.cpu_seconds)
        outcome, shown = decide(seen)
        # The engine's clock knows nothing of the time before we watched, ours nothing of when it had started.
        seconds = min(state.wall_seconds, supervisor.wall_seconds)
        return Ran(outcome, shown.exit_code, shown.signal, seconds, used, supervisor)

    def _was_starved(self, state: State, used: Counts) -> bool:
        """Killed, having used all its memory. The engine's own word for it is lost where the container's group goes
        away before the engine has read the kernel's notice."""
        full = used.peak_memory is not None and used.peak_memory >= self._limits.memory * _ALL_OF_IT
        return full and state.ending.signal == signal.SIGKILL

    async def _wait(self) -> int:
        self._status = await self._started.process.wait()
        await self._relay.delivered()
        return self._status

    def _end(self) -> None:
        self._over.set()
        self._relay.drop()

    def _over_limit(self) -> Outcome | None:
        used, limit = self._account.read().cpu_seconds, self._cpu_limit
        return Outcome.CPU_LIMIT if used is not None and limit is not None and used >= limit else None

    async def _kill_when_over(self) -> None:
        await self._over.wait()
        # The client's end ends nothing; the container is what has to be killed. It may just have ended by itself.
        await self._client.attempt("ending a container", ["kill", "--signal=KILL", self._name])

    async def _tell_of_hangup(self) -> None:
        await self._hangup.wait()
        # To the command nobody seems to be gone: the daemon reads all that it writes.
        await self._client.attempt("telling a command of its reader's end", ["kill", "--signal=PIPE", self._name])

    async def _keep_time(self) -> None:
        """End the command when it has run its seconds, not counting those its container took to start."""
        began = time.monotonic()
        remaining = self._seconds
        while remaining > 0:
            await anyio.sleep(remaining)
            started = (await inspect(self._client, self._name)).started
            remaining = 0.05
            if started is not None:
                # Clamped: the daemon's clock may be another than ours, and the command may have waited for us.
                ran = (datetime.now(UTC) - started).total_seconds()
                remaining = self._seconds - min(max(ran, 0.0), time.monotonic() - began)
            elif time.monotonic() - began > _START_SECONDS:
                raise SandboxError(f"a container did not start within {_START_SECONDS:g} s")
        self._supervisor.end(Outcome.TIMEOUT)
