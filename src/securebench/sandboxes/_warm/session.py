"""One command in a warm room: a process of a fork server, used once."""

from __future__ import annotations

import anyio

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap.args import check_command
from securebench.sandboxes._bubblewrap.host import Host
from securebench.sandboxes._bubblewrap.meter import Meter
from securebench.sandboxes._outcome import Ending, Observed, decide
from securebench.sandboxes._supervise import Streams, Supervisor
from securebench.sandboxes._warm.pool import Pool
from securebench.sandboxes._warm.server import Child, ForkServer
from securebench.sandboxes.base import (
    Command,
    Guarantee,
    PythonProgram,
    SandboxResult,
    SandboxSpec,
    Usage,
    in_force,
)

_END_SECONDS = 30.0


async def run_warm(
    pool: Pool, host: Host, spec: SandboxSpec, command: Command, guarantees: frozenset[Guarantee]
) -> SandboxResult:
    """Run a Python program in a room of its own, which is gone afterwards. Raises SandboxError, ConfigError."""
    check_command(command)
    assert command.python is not None  # noqa: S101
    streams = Streams.for_command(command)
    try:
        server, child = await _take(pool, host, spec, command.python)
        try:
            result = await _run(server, child, spec, command, streams, guarantees)
        except BaseException:
            pool.discard(server)
            raise
        pool.give_back(server)
        return result
    finally:
        streams.close()


async def _take(pool: Pool, host: Host, spec: SandboxSpec, program: PythonProgram) -> tuple[ForkServer, Child]:
    """A process that waits, and its server. One that did not get that far is replaced: it stood beside whoever ran
    there before, and nobody else is to suffer from that. Raises SandboxError."""
    while True:
        server = await pool.lease(host, spec, program)
        fresh = server.used == 0
        try:
            return server, await server.take()
        except SandboxError:
            pool.discard(server)
            if fresh:
                raise
        except BaseException:
            pool.discard(server)
            raise


async def _run(
    server: ForkServer,
    child: Child,
    spec: SandboxSpec,
    command: Command,
    streams: Streams,
    guarantees: frozenset[Guarantee],
) -> SandboxResult:
    limits = spec.limits
    try:
        meter = Meter(limits, server.group, [child.pid] if server.group is None else [])
        peaks = meter.begin_anew()
        supervisor = Supervisor(
            command, limits, streams, child.ended.wait, child.kill, meter.over if meter.needed else None
        )
        child.begin(streams.inside)
        streams.close_inside()
        await supervisor.watch()
    except BaseException:
        await _end(child)
        raise
    finally:
        child.forget()
    used = meter.used()
    starved = bool(used.oom_kills) or (
        child.ending is None and used.at_limit > 0
    )  # what is shared is the group's memory
    if child.ending is None and not starved and supervisor.killed is None:
        raise SandboxError(f"a fork server was lost while a command ran: {server.lost}")
    cpu = used.cpu_seconds if used.cpu_seconds is not None else child.cpu_seconds
    ending = child.ending or Ending()
    outcome, shown = decide(Observed(ending, supervisor.killed, int(starved), limits.cpu_seconds, cpu))
    stdout, stderr = supervisor.outputs()
    return SandboxResult(
        outcome=outcome,
        exit_code=shown.exit_code,
        signal=shown.signal,
        stdout=stdout,
        stderr=stderr,
        usage=Usage(supervisor.wall_seconds, cpu, used.peak_memory if peaks else child.peak_memory),
        guarantees=in_force(guarantees, spec.network),
        fingerprint=server.fingerprint,
    )


async def _end(child: Child) -> None:
    """Nothing of it may be left when the server goes."""
    child.kill()
    with anyio.move_on_after(_END_SECONDS, shield=True):
        await child.ended.wait()
