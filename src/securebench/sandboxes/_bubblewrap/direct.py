"""A command in a sandbox of its own: bubblewrap executes it directly and everything ends with it. The fast way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import limits as _limits
from securebench.sandboxes._bubblewrap.args import (
    Descriptors,
    command_args,
    environment,
    file_system_args,
    namespace_args,
)
from securebench.sandboxes._bubblewrap.cgroups import Counters, find_controllers, group
from securebench.sandboxes._bubblewrap.gate import Launch, hold
from securebench.sandboxes._bubblewrap.host import Host
from securebench.sandboxes._bubblewrap.identity import lease_identity
from securebench.sandboxes._bubblewrap.meter import Meter
from securebench.sandboxes._bubblewrap.rootfs import layout_for
from securebench.sandboxes._bubblewrap.staging import reachable
from securebench.sandboxes._outcome import Ending, Observed, decide, from_bubblewrap
from securebench.sandboxes._seccomp import build_filter
from securebench.sandboxes._supervise import Streams, Supervisor
from securebench.sandboxes.base import Command, Guarantee, Output, SandboxResult, SandboxSpec, Usage, in_force


async def run_direct(
    host: Host, spec: SandboxSpec, command: Command, guarantees: frozenset[Guarantee]
) -> SandboxResult:
    """Run `command` in a fresh sandbox and destroy it. Raises SandboxError, ConfigError."""
    limits = spec.limits
    async with AsyncExitStack() as stack:
        resources = stack.enter_context(ExitStack())
        identity = resources.enter_context(lease_identity())
        spec = reachable(spec, identity, resources)
        counted = find_controllers() is not None
        rules = build_filter(spec.network, deny_unaccounted=not counted)
        wanted = _limits.bounds(limits, memory_counted=counted)
        streams = Streams.for_command(command)
        resources.callback(streams.close)

        # A process of another user takes limits only from a parent, not from us (that needs CAP_SYS_RESOURCE).
        before = _limits.as_bytes(wanted) if identity.uid is not None else b""
        stdin, stdout, _ = streams.inside
        arguments = _arguments(host, spec, command)
        made = resources.enter_context(group(limits, extra_pids=2))
        groups = () if made is None else made.entrances
        launch = Launch(host.bwrap, identity.uid, before, arguments, command.argv, stdin, stdout, groups=groups)
        held = hold(launch, streams.stderr)
        stack.push_async_callback(held.close)
        streams.close_inside()
        await held.arrive()
        init = held.init
        if identity.uid is None:
            _limits.apply(init.pid, wanted)
        meter = Meter(limits, made, [init.pid])

        async def ended() -> None:
            await held.monitor.ended()
            await init.ended()

        supervisor = Supervisor(command, limits, streams, ended, init.kill, meter.over if meter.needed else None)
        meter.begin()  # what bubblewrap itself used is not the command's
        held.release(rules.program)
        await supervisor.watch()

        code = held.exit_code()
        used = meter.used()
        cpu = used.cpu_seconds if used.cpu_seconds is not None else init.reap()
        stdout_kept, stderr_kept = supervisor.outputs()
        started = code is not None or supervisor.killed is not None or bool(used.oom_kills)
        if not started:
            code, stderr_kept = _never_ran(command, stderr_kept)
            ending = Ending(exit_code=code)
        else:
            ending = from_bubblewrap(code) if code is not None else Ending()
        outcome, shown = decide(
            Observed(ending, supervisor.killed, used.oom_kills, limits.cpu_seconds, used.cpu_seconds)
        )
        return SandboxResult(
            outcome=outcome,
            exit_code=shown.exit_code,
            signal=shown.signal,
            stdout=stdout_kept,
            stderr=stderr_kept,
            usage=usage_of(supervisor.wall_seconds, cpu, used),
            guarantees=in_force(guarantees, spec.network),
            fingerprint=host.fingerprint(identity, rules.sha256),
            started=started,
        )


def _arguments(
    host: Host, spec: SandboxSpec, command: Command
) -> Callable[[Descriptors, Callable[[bytes], int]], list[str]]:
    env = environment(spec, command.env)
    layout = layout_for(spec)

    def arguments(fds: Descriptors, fd_for: Callable[[bytes], int]) -> list[str]:
        return [
            *namespace_args(disable_userns=host.disable_userns, network=spec.network),
            *file_system_args(spec, layout, fd_for),
            *command_args(spec, env, command.cwd or spec.cwd, fds),
        ]

    return arguments


def _never_ran(command: Command, stderr: Output) -> tuple[int, Output]:
    """Bubblewrap passed the gate but could not execute the command; all that is on stderr is its own words.

    Raises SandboxError when it has none: then it was ended by somebody else."""
    text = stderr.data.decode("utf-8", "replace").strip().removeprefix("bwrap: ")
    if not text:
        raise SandboxError("bubblewrap was ended from outside while a command ran")
    message = f"securebench: cannot run {command.argv[0]!r}: {text}\n".encode()
    return 126 if "Permission denied" in text else 127, Output(message, len(message))


def usage_of(wall: float, cpu: float | None, used: Counters) -> Usage:
    return Usage(wall, cpu, used.peak_memory, used.peak_pids)
