"""One command in a container of its own: created, attached, started, watched, looked at.

The container's main process is the command (beneath the engine's init, which forwards the exit code), so the end of
the command is the end of its PID namespace: nothing it started lives on. How it ended is read from the daemon's
record, not from the client's exit code; creating and starting are separate calls, so that the streams of the second
carry the command's bytes and nothing of the engine's. What it used is read when it is over (`accounts.py`).
"""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import anyio

from securebench._tasks import side_tasks
from securebench.errors import SandboxError
from securebench.sandboxes._docker.accounts import STARTING_SECONDS, Account, Counts
from securebench.sandboxes._docker.args import Place, create_args
from securebench.sandboxes._docker.channels import Relay
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.errors import explain
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
    state: State
    used: Counts
    supervisor: Supervisor[int]


async def run_command(
    client: Client, place: Place, spec: SandboxSpec, command: Command, name: str, account: Account
) -> Ran:
    """Run `command` in a fresh container called `name`, which the caller removes. Raises SandboxError, ConfigError."""
    words, env_file = create_args(place, spec, command, name)
    account.follow(await client.make("creating a container", words, stdin=env_file))
    return await _Run(client, spec.limits, command, name, account).watch()


class _Run:
    def __init__(self, client: Client, limits: Limits, command: Command, name: str, account: Account) -> None:
        self._client, self._name, self._limits = client, name, limits
        self._seconds = min(limits.wall_seconds, command.wall_seconds or limits.wall_seconds)
        # What the engine's start takes is not the command's; each of its processes has a limit of its own besides.
        self._cpu_limit = None if limits.cpu_seconds is None else limits.cpu_seconds + STARTING_SECONDS
        self._over = anyio.Event()
        self._hangup = anyio.Event()
        self._account = account
        self._status: int | None = None  # of the client, which ends with the command's
        relay = self._relay = Relay(command.channels, self._hangup.set)
        # A stream that is a channel is the relay's; its pipe here has no writer and stays empty.
        command = replace(command, channels={})
        self._streams = Streams.for_command(command)
        # Our clock decides; the supervisor's is the last resort when the daemon does not answer.
        longest = self._seconds + _START_SECONDS
        self._supervisor: Supervisor[int] = Supervisor(
            replace(command, wall_seconds=longest),
            replace(limits, wall_seconds=longest),
            self._streams,
            self._wait,
            self._end,
            self._over_limit if limits.cpu_seconds is not None or not account.exact else None,
        )
        stdin, stdout, stderr = self._streams.inside
        stdin, stdout = relay.inside(stdin, stdout)
        words = ["start", "--attach"]
        if stdin != subprocess.DEVNULL:
            words.append("--interactive")
        try:
            self._process = client.start([*words, name], stdin=stdin, stdout=stdout, stderr=stderr)
        except BaseException:
            self._streams.close()
            relay.close()
            raise
        self._streams.close_inside()
        relay.close_inside()

    async def watch(self) -> Ran:
        try:
            async with side_tasks() as tasks:
                tasks.start_soon(self._kill_when_over)
                tasks.start_soon(self._keep_time)
                tasks.start_soon(self._relay.carry)
                tasks.start_soon(self._tell_of_hangup)
                await self._supervisor.watch()
        finally:
            await self._process.close()
            self._streams.close()
            self._relay.close()
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
        return Ran(outcome, shown.exit_code, shown.signal, state, used, supervisor)

    def _was_starved(self, state: State, used: Counts) -> bool:
        """Killed, having used all its memory. The engine's own word for it is lost where the container's group goes
        away before the engine has read the kernel's notice."""
        full = used.peak_memory is not None and used.peak_memory >= self._limits.memory * _ALL_OF_IT
        return full and state.ending.signal == signal.SIGKILL

    async def _wait(self) -> int:
        self._status = await self._process.wait()
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
                # Clamped: the daemon's clock may be another than ours.
                ran = (datetime.now(UTC) - started).total_seconds()
                remaining = self._seconds - min(max(ran, 0.0), time.monotonic() - began)
            elif time.monotonic() - began > _START_SECONDS:
                raise SandboxError(f"a container did not start within {_START_SECONDS:g} s")
        self._supervisor.end(Outcome.TIMEOUT)
