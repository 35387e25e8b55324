"""A guarded session: a unique temporary root, one command at a time, everything ended at the end."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import anyio

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap.args import check_command, environment
from securebench.sandboxes._guarded.platform import Ended, Order, Platform
from securebench.sandboxes._listeners import Listeners
from securebench.sandboxes._outcome import Ending, Observed, decide
from securebench.sandboxes._supervise import Streams, Supervisor
from securebench.sandboxes.base import Command, Outcome, Output, SandboxResult, SandboxSpec, Usage

_END_SECONDS = 30.0


@dataclass(slots=True)
class GuardedSession:
    """Made by `GuardedSandbox.open`. `root` is its temporary root, `places` where its scratch directories are."""

    spec: SandboxSpec
    platform: Platform
    root: Path
    places: Mapping[str, Path]
    fingerprint: Mapping[str, str]
    stopped: bool = False
    _busy: anyio.CancelScope | None = None
    _idle: anyio.Event = field(default_factory=anyio.Event)
    _descriptors: dict[str, int] = field(default_factory=dict)

    async def run(self, command: Command) -> SandboxResult:
        """Run one command to its end. Raises SandboxError when the platform failed or the session was stopped."""
        check_command(command)
        if self.stopped or self._busy is not None:
            raise SandboxError(f"this sandbox {'was stopped' if self.stopped else 'is running another command'}")
        streams = Streams.for_command(command)
        self._idle = anyio.Event()
        try:
            with anyio.CancelScope() as self._busy:
                return await self._run(command, streams)
        except BaseException:
            self.stopped = True  # half a conversation with the platform cannot be continued
            raise
        finally:
            self._busy = None
            self._idle.set()
            streams.close()
        raise SandboxError("the sandbox was stopped while a command ran")

    async def stop(self) -> None:
        """End every process of the session. Idempotent."""
        self.stopped = True
        if self._busy is not None:
            self._busy.cancel()
            with anyio.CancelScope(shield=True):
                await self._idle.wait()
        self.platform.kill_tree()
        with anyio.move_on_after(_END_SECONDS, shield=True):
            while self.platform.usage().processes:
                await anyio.sleep(0.002)
            return
        raise SandboxError(f"the processes of a sandbox did not end within {_END_SECONDS:.0f} s")

    def scratch(self, target: str) -> int:
        """A descriptor on a scratch directory of the stopped session. Raises SandboxError."""
        if not self.stopped:
            raise SandboxError("stop the sandbox before reading its scratch directories")
        if target not in self.places:
            raise SandboxError(f"this sandbox has no scratch directory {target}")
        if target not in self._descriptors:
            self._descriptors[target] = os.open(self.places[target], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._descriptors[target]

    def listener(self, port: int) -> socket.socket:
        """Always raises SandboxError: there is none."""
        return Listeners().at(port)

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    def place(self, path: str) -> Path:
        """Where a path of the spec is on the host: beneath a scratch directory there, `/` in the temporary root."""
        wanted = PurePosixPath(path)
        for target, place in self.places.items():
            if wanted.is_relative_to(target):
                return place / wanted.relative_to(target)
        return self.root if path == "/" else Path(path)

    async def _run(self, command: Command, streams: Streams) -> SandboxResult:
        limits = self.spec.limits
        cwd = str(self.place(command.cwd or self.spec.cwd))
        own = {"HOME": str(self.root), "TMPDIR": str(self.root), "AIBB_TMP": str(self.root), "PWD": cwd}
        channels = [(number, channel.fileno()) for number, channel in sorted(command.channels.items()) if number > 1]
        env = {**environment(self.spec, command.env), **own, **self.spec.env, **command.env}
        await self.platform.start(Order(command.argv, env, cwd, limits, streams.inside, channels))
        streams.close_inside()
        supervisor = Supervisor(command, limits, streams, self.platform.ended, self.platform.kill_tree, self._over)
        return self._result(command, supervisor, await supervisor.watch())

    def _over(self) -> Outcome | None:
        limits, used = self.spec.limits, self.platform.usage()
        if limits.cpu_seconds is not None and used.cpu_seconds >= limits.cpu_seconds:
            return Outcome.CPU_LIMIT
        if used.resident > limits.memory:
            return Outcome.OUT_OF_MEMORY
        return Outcome.SIGNALLED if used.processes > limits.pids else None

    def _result(self, command: Command, supervisor: Supervisor[Ended], ended: Ended) -> SandboxResult:
        stdout, stderr = supervisor.outputs()
        ending = ended.ending
        if ended.refusal is not None:
            what, number = ended.refusal
            text = f"securebench: cannot {what} {command.argv[0]!r}: {os.strerror(number)}\n".encode()
            ending, stderr = Ending(exit_code=126 if number == 13 else 127), Output(text, len(text))
        limit = self.spec.limits.cpu_seconds
        outcome, shown = decide(Observed(ending, supervisor.killed, 0, limit, ended.cpu_seconds))
        return SandboxResult(
            outcome=outcome,
            exit_code=shown.exit_code,
            signal=shown.signal,
            stdout=stdout,
            stderr=stderr,
            usage=Usage(supervisor.wall_seconds, ended.cpu_seconds, ended.peak_memory),
            guarantees=frozenset(),
            fingerprint=self.fingerprint,
        )
