"""A sandbox that stays: bubblewrap builds and holds it, our launcher runs commands in it.

Bubblewrap is never let through its gate. Its process is the first of the PID namespace, does nothing, cannot be
signalled from inside, and dies with us; the kernel reaps for it. Commands are started by `joiner.py`, which applies
the same walls to each and sees its true end. Scratch descriptors and listeners are opened before the first command
exists.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

import anyio

from securebench._proc import Handle, Pipe
from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import limits as _limits
from securebench.sandboxes._bubblewrap.args import (
    Descriptors,
    check_command,
    command_args,
    environment,
    file_system_args,
    namespace_args,
)
from securebench.sandboxes._bubblewrap.cgroups import Group, group
from securebench.sandboxes._bubblewrap.gate import Held, Launch, hold
from securebench.sandboxes._bubblewrap.host import Host
from securebench.sandboxes._bubblewrap.identity import Identity, lease_identity
from securebench.sandboxes._bubblewrap.launcher import KIND, join
from securebench.sandboxes._bubblewrap.meter import Meter
from securebench.sandboxes._bubblewrap.rootfs import layout_for
from securebench.sandboxes._bubblewrap.staging import reachable
from securebench.sandboxes._launch.client import Finished, Launcher, Request
from securebench.sandboxes._launch.runner import STAGES
from securebench.sandboxes._listeners import Listeners
from securebench.sandboxes._outcome import Ending, Observed, decide
from securebench.sandboxes._seccomp import Filter, build_filter
from securebench.sandboxes._supervise import Streams, Supervisor
from securebench.sandboxes.base import Command, Guarantee, Output, SandboxResult, SandboxSpec, Usage, in_force


class JoinedSession:
    """A live sandbox. Made by `open_joined`."""

    def __init__(
        self,
        host: Host,
        spec: SandboxSpec,
        guarantees: frozenset[Guarantee],
        identity: Identity,
        rules: Filter,
        made: Group | None,
        held: Held,
        launcher: Launcher,
        scratches: dict[str, int],
        listeners: Listeners,
    ) -> None:
        self._host, self._spec, self._guarantees = host, spec, guarantees
        self._identity, self._rules, self._group = identity, rules, made
        self._held, self._launcher, self._scratches, self._listeners = held, launcher, scratches, listeners
        self._command: Handle | None = None
        self._running: anyio.CancelScope | None = None
        self._idle = anyio.Event()
        self.stopped = False

    async def run(self, command: Command) -> SandboxResult:
        """Run one command to its end. Raises SandboxError when the sandbox failed or was stopped."""
        check_command(command)
        if self.stopped or self._running is not None:
            state = "was stopped" if self.stopped else "is running another command"
            raise SandboxError(f"this sandbox {state}")
        self._idle = anyio.Event()
        streams = Streams.for_command(command)
        try:
            with anyio.CancelScope() as self._running:
                return await self._run(command, streams)
        except BaseException:
            # Half a conversation with the launcher cannot be continued.
            await self._end()
            raise
        finally:
            self._running = None
            self._idle.set()
            streams.close()
        raise SandboxError("the sandbox was stopped while a command ran")

    async def intact(self) -> bool:
        """Whether everything that holds it lives."""
        return not self.stopped and self._held.awake and self._launcher.awake

    async def end(self) -> None:
        """The same as `stop`: nothing is looked at then either."""
        await self.stop()

    async def stop(self) -> None:
        """End a running command, if any, and every process inside. Idempotent."""
        self.stopped = True
        if self._running is not None:
            self._running.cancel()
            with anyio.CancelScope(shield=True):
                await self._idle.wait()
        await self._end()

    async def _end(self) -> None:
        self.stopped = True
        self._listeners.close()
        self._held.end()
        await self._launcher.close()
        if self._command is not None:
            # The launcher was its parent; unless somebody reaps it, its namespace cannot end.
            command, self._command = self._command, None
            with anyio.CancelScope(shield=True):
                command.kill()
                await command.ended()
            command.reap()
            command.close()
        await self._held.close()

    def scratch(self, target: str) -> int:
        """The descriptor of a scratch directory, once no process can change it any more. Raises SandboxError."""
        if not self.stopped:
            raise SandboxError("stop the sandbox before reading its scratch directories")
        if target not in self._scratches:
            raise SandboxError(f"this sandbox has no scratch directory {target}")
        return self._scratches[target]

    def listener(self, port: int) -> socket.socket:
        """The socket on which the sandbox's connections to this port arrive. Raises SandboxError."""
        return self._listeners.at(port)

    async def _run(self, command: Command, streams: Streams) -> SandboxResult:
        limits = self._spec.limits
        wanted = _limits.bounds(limits, memory_counted=self._group is not None)
        cwd = command.cwd or self._spec.cwd
        env = {**environment(self._spec, command.env), "PWD": cwd}
        pid = await self._launcher.begin(
            Request(
                argv=command.argv,
                env=[f"{name}={value}" for name, value in env.items()],
                cwd=cwd,
                limits=_limits.as_bytes(wanted),
                stdio=streams.inside,
                channels=[(at, channel.fileno()) for at, channel in sorted(command.channels.items()) if at > 1],
                groups=() if self._group is None else self._group.entrances,
            )
        )
        self._command = Handle(pid)
        streams.close_inside()
        meter = Meter(limits, self._group, [self._held.init.pid, pid])
        meter.begin()
        supervisor = Supervisor(
            command,
            limits,
            streams,
            self._launcher.finished,
            self._launcher.sweep,
            meter.over if meter.needed else None,
        )
        self._launcher.go()
        finished = await supervisor.watch()
        self._command.close()
        self._command = None
        return self._result(command, supervisor, finished, meter)

    def _result(
        self, command: Command, supervisor: Supervisor[Finished], finished: Finished, meter: Meter
    ) -> SandboxResult:
        used = meter.used()
        stdout, stderr = supervisor.outputs()
        ending = finished.ending
        if finished.fault is not None:
            ending, stderr = never_ran(command, finished.fault)
        limit = self._spec.limits.cpu_seconds
        seen = Observed(ending, supervisor.killed, used.oom_kills, limit, used.cpu_seconds)
        outcome, shown = decide(seen)
        cpu = used.cpu_seconds if used.cpu_seconds is not None else finished.cpu_seconds
        return SandboxResult(
            outcome=outcome,
            exit_code=shown.exit_code,
            signal=shown.signal,
            stdout=stdout,
            stderr=stderr,
            usage=Usage(supervisor.wall_seconds, cpu, used.peak_memory, used.peak_pids),
            guarantees=in_force(self._guarantees, self._spec.network),
            fingerprint=self._host.fingerprint(self._identity, self._rules.sha256),
            started=finished.fault is None,
        )


def never_ran(command: Command, fault: tuple[int, int]) -> tuple[Ending, Output]:
    """What is reported of a command that could not be executed. Raises SandboxError when that is our fault."""
    stage, number = fault
    if stage == 0:
        raise SandboxError(f"the walls of a command could not be put up: {os.strerror(number)}")
    message = f"securebench: cannot {STAGES[stage]} {command.argv[0]!r}: {os.strerror(number)}\n".encode()
    return Ending(exit_code=126 if number == 13 else 127), Output(message, len(message))


@asynccontextmanager
async def open_joined(host: Host, spec: SandboxSpec, guarantees: frozenset[Guarantee]) -> AsyncIterator[JoinedSession]:
    """A fresh sandbox, its scratch directories filled and its listeners ready. Raises SandboxError, ConfigError."""
    async with AsyncExitStack() as stack:
        resources = stack.enter_context(ExitStack())
        identity = resources.enter_context(lease_identity())
        spec = reachable(spec, identity, resources)
        made = resources.enter_context(group(spec.limits, extra_pids=0))
        rules = build_filter(spec.network, deny_unaccounted=made is None)
        stderr = Pipe.for_reading()
        resources.callback(stderr.close)
        null = subprocess.DEVNULL
        held = hold(
            Launch(host.bwrap, identity.uid, b"", _arguments(host, spec), ("/",), null, null, reaped=True), stderr
        )
        stack.push_async_callback(held.close)
        launcher = Launcher.start(KIND)  # while bubblewrap sets up
        stack.push_async_callback(launcher.close)
        await held.arrive()
        # The first process stays outside the group: running out of memory must not end the session.
        targets = [scratch.target for scratch in spec.scratches]
        seeds = [(scratch.target, scratch.seed) for scratch in spec.scratches if scratch.seed is not None]
        roots, listening = await join(
            launcher, held.init, identity.uid, spec.network, rules.program, targets, seeds, spec.listeners
        )
        for root in roots:
            resources.callback(os.close, root)
        listeners = Listeners.adopt(spec.listeners, listening)
        resources.callback(listeners.close)
        scratches = dict(zip(targets, roots, strict=True))
        session = JoinedSession(host, spec, guarantees, identity, rules, made, held, launcher, scratches, listeners)
        try:
            yield session
        finally:
            await session.stop()


def _arguments(host: Host, spec: SandboxSpec) -> Callable[[Descriptors, Callable[[bytes], int]], list[str]]:
    layout = layout_for(spec)

    def arguments(fds: Descriptors, fd_for: Callable[[bytes], int]) -> list[str]:
        return [
            *namespace_args(disable_userns=host.disable_userns, network=spec.network),
            *file_system_args(spec, layout, fd_for),
            *command_args(spec, {}, "/", fds),
        ]

    return arguments
