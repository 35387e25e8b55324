"""The embedded backend: bubblewrap. No daemon, no root needed, milliseconds.

A spec without scratch directories and listeners has nothing that commands could share: each gets a fresh sandbox,
executed by bubblewrap directly, and everything ends with it. Any other spec gets one sandbox that stays until `stop`;
its commands share the scratch directories, the network, `/tmp`, and processes left behind. A command with channels
other than its standard streams is started by our own launcher either way, because only that can give a socket a chosen
number.
"""

from __future__ import annotations

import ctypes
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial

import anyio

from securebench._leftovers import clean_directories, clean_processes
from securebench.errors import SandboxError, SandboxUnavailable
from securebench.images import resolve_root
from securebench.sandboxes._bubblewrap.args import check_command, check_mounts, environment
from securebench.sandboxes._bubblewrap.cgroups import clean_leftovers
from securebench.sandboxes._bubblewrap.compiled import compiled
from securebench.sandboxes._bubblewrap.direct import run_direct
from securebench.sandboxes._bubblewrap.host import Host
from securebench.sandboxes._bubblewrap.joined import JoinedSession, open_joined
from securebench.sandboxes._bubblewrap.probe import probe_bubblewrap
from securebench.sandboxes._bubblewrap.rootfs import layout_for
from securebench.sandboxes._listeners import Listeners
from securebench.sandboxes._shortage import shortage_told
from securebench.sandboxes.base import (
    Capabilities,
    Command,
    DirectoryRoot,
    Guarantee,
    ImageRoot,
    Root,
    SandboxResult,
    SandboxSpec,
    Session,
)

_PR_SET_CHILD_SUBREAPER = 36
_DESCRIPTORS = 65536


class BubblewrapSandbox:
    """Sandboxes made by the system's `bwrap`."""

    name = "bubblewrap"

    def __init__(self) -> None:
        self._probed: tuple[Host | None, Capabilities] | None = None
        self._probing: anyio.Lock | None = None

    async def probe(self) -> Capabilities:
        """What bubblewrap guarantees here, seen by running it once per process."""
        return (await self._look())[1]

    async def offers(self, root: Root) -> bool:
        """Images must have been imported (`securebench image import`)."""
        if isinstance(root, ImageRoot):
            try:
                resolve_root(root.reference)
            except SandboxUnavailable:
                return False
        return True

    async def image_digest(self, reference: str) -> str:
        """The digest of an imported image. Raises SandboxUnavailable."""
        return resolve_root(reference).digest

    async def clean(self) -> list[str]:
        """Remove what engines that no longer live left behind; what was removed."""
        return [*clean_processes(), *clean_leftovers(), *clean_directories()]

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A fresh sandbox. Raises SandboxUnavailable, SandboxError, ConfigError on entry."""
        return self._open(spec)

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        host, capabilities = await self.ready_for(spec)
        if isinstance(spec.root, ImageRoot):
            host, spec = _with_image(host, spec, spec.root.reference)
        check_mounts(spec)
        environment(spec)
        layout_for(spec)
        if spec.scratches or spec.listeners:
            async with open_joined(host, spec, capabilities.guarantees) as session:
                yield session
        else:
            single = SingleUse(partial(_run_single, host, spec, capabilities.guarantees))
            try:
                yield single
            finally:
                await single.stop()

    async def ready_for(self, spec: SandboxSpec) -> tuple[Host, Capabilities]:
        """What sandboxes of this spec are made with. Raises SandboxUnavailable where it asks for more than there is."""
        host, capabilities = await self._look()
        return _require(spec, host, capabilities), capabilities

    async def _look(self) -> tuple[Host | None, Capabilities]:
        if self._probed is None:
            if self._probing is None:
                self._probing = anyio.Lock()
            async with self._probing:
                if self._probed is None:
                    _prepare_process()
                    self._probed = await probe_bubblewrap()
        return self._probed


class SingleUse:
    """A session without scratch directories and listeners: every command in a sandbox of its own, made by `one`."""

    def __init__(self, one: Callable[[Command], Awaitable[SandboxResult]]) -> None:
        self._one = one
        self._stopped = False
        self._running: anyio.CancelScope | None = None
        self._idle = anyio.Event()

    async def run(self, command: Command) -> SandboxResult:
        """Run one command to its end. Raises SandboxError when bubblewrap failed or the session was stopped."""
        check_command(command)
        if self._stopped or self._running is not None:
            raise SandboxError(f"this sandbox {'was stopped' if self._stopped else 'is running another command'}")
        self._idle = anyio.Event()
        try:
            with anyio.CancelScope() as self._running, shortage_told():
                return await self._one(command)
        finally:
            self._running = None
            self._idle.set()
        raise SandboxError("the sandbox was stopped while a command ran")

    async def stop(self) -> None:
        """End a running command, if any, and refuse further ones. Idempotent."""
        self._stopped = True
        if self._running is not None:
            self._running.cancel()
            with anyio.CancelScope(shield=True):
                await self._idle.wait()

    def scratch(self, target: str) -> int:
        """Always raises SandboxError: there is none."""
        raise SandboxError(f"this sandbox has no scratch directory {target}")

    def listener(self, port: int) -> socket.socket:
        """Always raises SandboxError: there is none."""
        return Listeners().at(port)


async def _run_single(
    host: Host, spec: SandboxSpec, guarantees: frozenset[Guarantee], command: Command
) -> SandboxResult:
    if command.channels.keys() <= {0, 1}:
        return await run_direct(host, spec, await compiled(host, spec, command), guarantees)
    async with open_joined(host, spec, guarantees) as session:
        return await session.run(command)


def _with_image(host: Host, spec: SandboxSpec, reference: str) -> tuple[Host, SandboxSpec]:
    """The imported image as the root, its own variables beneath the spec's. Raises SandboxUnavailable."""
    image = resolve_root(reference)
    env = {**dict(image.config.env), **spec.env}
    return replace(host, image=image.digest), replace(spec, root=DirectoryRoot(image.rootfs), env=env)


def _require(spec: SandboxSpec, host: Host | None, capabilities: Capabilities) -> Host:
    if host is None or not capabilities.usable:
        broken = next((finding.detail for finding in capabilities.findings if not finding.ok), "unknown reason")
        raise SandboxUnavailable(f"bubblewrap is not usable here: {broken}", capabilities.remedy)
    if missing := spec.require - capabilities.guarantees:
        names = ", ".join(sorted(missing))
        raise SandboxUnavailable(
            f"bubblewrap cannot guarantee {names} on this host", _how_to_get(capabilities, missing)
        )
    if spec.capabilities:
        names = ", ".join(sorted(spec.capabilities))
        raise SandboxUnavailable(f"bubblewrap sandboxes offer no capability {names}", "Use the docker backend.")
    return host


def _how_to_get(capabilities: Capabilities, missing: frozenset[Guarantee]) -> str:
    if Guarantee.KERNEL in missing:
        return "A kernel of its own needs the docker backend with the runsc runtime."
    return capabilities.remedy


def _prepare_process() -> None:
    """Once per process: be the one to whom orphaned sandboxes are left, and allow many sandboxes at once."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


__all__ = ["BubblewrapSandbox", "JoinedSession", "SingleUse"]
