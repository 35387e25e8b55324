"""A live Docker sandbox: one container per command, sharing what a holder keeps.

That is scratch directories and `/tmp`, and where the host answers ports of the sandbox, the network too.

Nothing is ever executed in, or copied into, a container in which a command of the session ran. So processes do not
live on from one command to the next; a program that needs its own servers starts them itself.
"""

from __future__ import annotations

import hashlib
import os
import platform
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from securebench._leftovers import staging_directory
from securebench.errors import CandidateError, ConfigError, InfrastructureError, SandboxError
from securebench.sandboxes._bubblewrap.identity import Identity
from securebench.sandboxes._bubblewrap.staging import reachable
from securebench.sandboxes._docker.accounts import Ledger, find_ledger
from securebench.sandboxes._docker.args import OWN_PROCESSES, Place, capabilities_of, create_args
from securebench.sandboxes._docker.channels import INPUT, OUTPUT
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.command import Ran, Started, container, wait_until_up, watch_command
from securebench.sandboxes._docker.errors import NoAnswer
from securebench.sandboxes._docker.hand_over import Door, check_listeners
from securebench.sandboxes._docker.holder import Captured, Holder
from securebench.sandboxes._docker.image import Image
from securebench.sandboxes._docker.owner import DeadMan, Owner, Removal
from securebench.sandboxes._docker.seccomp import profile
from securebench.sandboxes._docker.state import State, inspect
from securebench.sandboxes._docker.tar_capture import LeftOut
from securebench.sandboxes._docker.tar_seed import check_seed
from securebench.sandboxes._listeners import Listeners
from securebench.sandboxes.base import Bind, Command, Guarantee, SandboxResult, SandboxSpec, Usage


@dataclass(frozen=True, slots=True)
class Engine:
    """A container engine of this host, as the probe saw it."""

    client: Client
    runtime: str | None
    guarantees: frozenset[Guarantee]
    versions: Mapping[str, str]
    ledger: Ledger | None = None

    def fingerprint(self, image: Image, seccomp: str) -> Mapping[str, str]:
        """What decides how strong a sandbox made here is, and what ran in it."""
        return {
            "backend": "docker",
            **self.versions,
            "runtime": self.runtime or "default",
            "kernel": platform.release(),
            "machine": platform.machine(),
            "seccomp_sha256": seccomp,
            "image": image.id,
            "image_digest": image.digest,
            "image_reference": image.reference,
        }


class DockerSession:
    """A live sandbox. Made by `open_session`."""

    def __init__(
        self, engine: Engine, spec: SandboxSpec, place: Place, owner: Owner, switch: DeadMan, holder: Holder | None,
        listeners: Listeners, staging: Path, fingerprint: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._engine, self._spec, self._place, self._owner, self._switch = engine, spec, place, owner, switch
        self._holder, self._listeners, self._staging, self._fingerprint = holder, listeners, staging, fingerprint
        self._commands = 0
        self._stopped = False
        self._running: anyio.CancelScope | None = None
        self._idle = anyio.Event()
        self._captured: dict[str, Captured | CandidateError] = {}
        self._begun: tuple[Command, Started, State] | None = None  # nobody has asked for it yet
        self._kept = AsyncExitStack()  # the container of what was begun, also when it has ended

    async def run(self, command: Command) -> SandboxResult:
        """Run one command to its end. Raises SandboxError when the engine failed or the session was stopped."""
        try:
            check_command(command)
            if self._stopped or self._running is not None:
                raise SandboxError(f"this sandbox {'was stopped' if self._stopped else 'is running another command'}")
            return await self._run(command)
        finally:
            for number in command.channels.keys() & {INPUT, OUTPUT}:
                command.channels[number].close()  # taken over, whatever became of the command

    async def begin(self, command: Command) -> None:
        """Start now what `run` will be asked for. Raises SandboxError, ConfigError."""
        async with AsyncExitStack() as stack:
            started = await stack.enter_async_context(self._container(command))
            self._begun = command, started, await wait_until_up(started)
            self._kept = stack.pop_all()

    async def fill(self, seeds: Mapping[str, Path]) -> None:
        """Fill scratch directories nobody has used yet. Raises SandboxError."""
        for scratch in self._spec.scratches:
            if self._holder is not None and (seed := seeds.get(scratch.target)) is not None:
                check_seed(seed)
                await self._holder.fill(scratch, seed, self._spec.user)

    async def intact(self) -> bool:
        """Whether what was prepared is still there, awake, and was never started again."""
        try:
            if self._holder is not None:
                await self._holder.check()
            if self._begun is not None:
                _, started, before = self._begun
                now = await inspect(self._engine.client, started.name)
                return started.process.alive and now.awake and (now.pid, now.started) == (before.pid, before.started)
        except InfrastructureError:
            return False
        return not self._stopped

    def _container(self, command: Command) -> AbstractAsyncContextManager[Started]:
        self._commands += 1
        name = self._owner.container(str(self._commands))
        engine = self._engine
        return container(engine.client, self._place, self._spec, command, name, self._switch, engine.ledger)

    async def _run(self, command: Command) -> SandboxResult:
        self._idle = anyio.Event()
        begun, self._begun = self._begun, None
        try:
            with anyio.CancelScope() as self._running:
                if begun is not None and command.continues(begun[0]):
                    # Its container goes with the session: removing it is nothing anybody should wait for now.
                    return self._result(await watch_command(begun[1], self._spec.limits, command))
                await self._kept.aclose()
                async with self._container(command) as started:
                    ran = await watch_command(started, self._spec.limits, command)
                return self._result(ran)
        except NoAnswer:
            self._switch.forsake()
            raise
        finally:
            self._running = None
            self._idle.set()
        raise SandboxError("the sandbox was stopped while a command ran")

    async def stop(self) -> None:
        """End a running command, then take over what is in the scratch directories. Idempotent."""
        if self._stopped:
            return
        await self.end()
        if self._holder is not None and self._spec.scratches:
            for number, scratch in enumerate(self._spec.scratches):
                try:
                    captured: Captured | CandidateError = await self._holder.take(scratch, self._staging / str(number))
                except CandidateError as error:
                    captured = error
                self._captured[scratch.target] = captured
            await self._holder.check()

    def ledger(self) -> Ledger | None:
        """Where the engine's containers are counted, seen by the holder's; None without one."""
        return None if self._holder is None else find_ledger(self._holder.id, self._holder.pid)

    async def end(self) -> None:
        """End a running command and refuse further ones."""
        self._stopped = True
        self._listeners.close()
        if self._running is not None:
            self._running.cancel()
            with anyio.CancelScope(shield=True):
                await self._idle.wait()
        if self._begun is not None:
            self._begun = None
            await self.release()

    def scratch(self, target: str) -> int:
        """A descriptor on the captured tree. Raises CandidateError if it could not be captured, SandboxError."""
        return self._tree(target).descriptor

    def left_out(self, target: str) -> tuple[LeftOut, ...]:
        """What the agent left in a scratch that was not captured, and why. Raises as `scratch`."""
        return self._tree(target).left_out

    def listener(self, port: int) -> socket.socket:
        """The socket on which the sandbox's connections to this port arrive. Raises SandboxError."""
        return self._listeners.at(port)

    async def release(self) -> None:
        """Remove the container of what was begun. Idempotent."""
        await self._kept.aclose()

    def close(self) -> None:
        """Give up the captured trees."""
        for captured in self._captured.values():
            if isinstance(captured, Captured):
                os.close(captured.descriptor)
        self._captured.clear()

    def _tree(self, target: str) -> Captured:
        if not self._stopped:
            raise SandboxError("stop the sandbox before reading its scratch directories")
        if target not in self._captured:
            raise SandboxError(f"this sandbox has no scratch directory {target}")
        captured = self._captured[target]
        if isinstance(captured, CandidateError):
            raise captured
        return captured

    def _usage(self, ran: Ran) -> Usage:
        # A kernel of its own has threads beside those of the command, which nobody can tell apart from outside.
        peak_pids = ran.used.processes(OWN_PROCESSES) if self._engine.runtime is None else None
        return Usage(ran.wall_seconds, ran.used.cpu_seconds, ran.used.peak_memory, peak_pids)

    def _result(self, ran: Ran) -> SandboxResult:
        stdout, stderr = ran.supervisor.outputs()
        return SandboxResult(
            outcome=ran.outcome,
            exit_code=ran.exit_code,
            signal=ran.signal,
            stdout=stdout,
            stderr=stderr,
            usage=self._usage(ran),
            guarantees=self._engine.guarantees,
            fingerprint=self._fingerprint,
        )


@asynccontextmanager
async def open_session(engine: Engine, spec: SandboxSpec, image: Image) -> AsyncIterator[DockerSession]:
    """A fresh sandbox, its scratch directories filled and its listeners ready.

    Raises SandboxError, SandboxUnavailable, ConfigError."""
    client = engine.client
    check_listeners(spec, engine.guarantees)
    _check_binds(spec)
    async with AsyncExitStack() as stack:
        resources = stack.enter_context(ExitStack())
        staging = resources.enter_context(staging_directory())
        spec = reachable(spec, Identity(spec.user), resources)
        rules = profile(spec.network, capabilities_of(spec))
        (staging / "seccomp.json").write_bytes(rules)
        owner = Owner.new()
        place = Place(
            image, owner.labels, staging / "seccomp.json", engine.runtime, _has_ipv6(), client.engine == "docker"
        )
        create_args(place, spec, Command(("true",)), "check")  # refuses now what could only fail later
        switch = DeadMan(client, owner, staging, engine.ledger.places if engine.ledger is not None else ())
        stack.push_async_callback(switch.disarm)
        holder, listeners = None, Listeners()
        if spec.scratches or spec.listeners:
            name = owner.container("holder")
            await stack.enter_async_context(Removal(client, name, switch))
            if spec.listeners:
                holder, listeners = await _start_listening(client, place, spec, name, staging)
                resources.callback(listeners.close)
            else:
                holder = await Holder.start(client, place, spec, name)
            place = replace(place, held=holder.volumes, network=holder.id if spec.listeners else None)
        fingerprint = engine.fingerprint(image, hashlib.sha256(rules).hexdigest())
        session = DockerSession(engine, spec, place, owner, switch, holder, listeners, staging, fingerprint)
        resources.callback(session.close)
        try:
            yield session
        finally:
            await session.end()
            await session.release()


async def _start_listening(
    client: Client, place: Place, spec: SandboxSpec, name: str, staging: Path
) -> tuple[Holder, Listeners]:
    with closing(Door(staging)) as door:
        holder = await Holder.start(client, place, spec, name, await door.program(spec.listeners))
        return holder, await door.receive(spec.listeners, lambda: inspect(client, name))


def check_command(command: Command) -> None:
    """Raises ConfigError for what no container can run or be given."""
    if not command.argv or not command.argv[0] or any("\0" in word for word in command.argv):
        raise ConfigError("a sandbox command needs a program, and its words cannot hold a NUL byte")
    if INPUT in command.channels and command.stdin:
        raise ConfigError("a sandbox command has either a channel 0 or bytes for its standard input")
    if others := sorted(command.channels.keys() - {INPUT, OUTPUT}):
        raise ConfigError(
            f"a command in a container cannot have channel {others[0]}: only its standard input (0) and output (1) "
            "pass through the engine's daemon; use these, or the bubblewrap backend, which can run imported images too"
        )


def _check_binds(spec: SandboxSpec) -> None:
    for mount in spec.mounts:
        if isinstance(mount, Bind):
            source = mount.source.resolve()
            if source.exists() and not (source.is_dir() or source.is_file()):
                raise ConfigError(f"sandbox mount {mount.target}: {mount.source} is neither a file nor a directory")


def _has_ipv6() -> bool:
    return Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").exists()
