"""Warm rooms: Python programs of ours begin in processes that are loaded and walled in already.

`warmed` wraps a sandbox with bubblewrap in it. A `PythonProgram` in a sandbox on the host's own programs, without
scratch directories, listeners or a mount in the place of `/tmp`, starts from a fork server that lives in a sandbox of
the same spec; whatever else is asked for goes to the backend as it is. The walls are the same: namespaces, limits,
filter, no capability, nothing shared, used once. Where this host does not let processes in a sandbox make namespaces,
nothing is warm, and `why_not` says so.

Images stay with the backend: their interpreters are the pack's, and only our own may hold what a fork server holds.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import PurePosixPath

import anyio
from anyio.abc import TaskGroup

from securebench._tasks import one_error
from securebench.errors import SandboxError, SandboxUnavailable
from securebench.sandboxes._warm.pool import Pool
from securebench.sandboxes._warm.session import run_warm
from securebench.sandboxes.base import (
    Capabilities,
    Command,
    HostRoot,
    Network,
    PythonProgram,
    Root,
    Routing,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Session,
)
from securebench.sandboxes.bubblewrap import BubblewrapSandbox, SingleUse

_PROBED = 17
_PROBE = PythonProgram((("probe", f"code = {_PROBED}\n"),), "import probe, sys; sys.exit(probe.code)\n")


@asynccontextmanager
async def warmed(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """The sandbox with warm rooms where it can have them, itself where it cannot. All servers end with the context."""
    backend = _behind(sandbox)
    if not isinstance(backend, BubblewrapSandbox) or not (await backend.probe()).usable:
        yield sandbox
        return
    async with one_error(), anyio.create_task_group() as tasks:
        try:
            yield WarmSandbox(sandbox, backend, tasks)
        finally:
            tasks.cancel_scope.cancel()


def _behind(sandbox: Sandbox) -> Sandbox | None:
    """The backend that makes sandboxes on the host's own programs; None where none does."""
    while isinstance(sandbox, Routing):
        try:
            sandbox = sandbox.backend(HostRoot())
        except SandboxUnavailable:
            return None
    return sandbox


class WarmSandbox:
    """A `Sandbox` with fork servers. Made by `warmed`."""

    def __init__(self, inner: Sandbox, bubblewrap: BubblewrapSandbox, tasks: TaskGroup) -> None:
        self.inner = inner
        self.why_not: str | None = None
        self.pool = Pool(tasks, most_idle=2 * len(os.sched_getaffinity(0)) + 4)
        self._bubblewrap = bubblewrap
        self._trying = anyio.Lock()
        self._works: bool | None = None

    @property
    def name(self) -> str:
        return self.inner.name

    async def offers(self, root: Root) -> bool:
        return await self.inner.offers(root)

    async def probe(self) -> Capabilities:
        return await self.inner.probe()

    async def clean(self) -> list[str]:
        return await self.inner.clean()

    def backend(self, root: Root) -> Sandbox:  # noqa: ARG002 — of the protocol; there is only one
        """What it is wrapped around."""
        return self.inner

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """As the backend's. Raises on entry what that raises."""
        return self._open(spec) if fits(spec) else self.inner.open(spec)

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        await self._bubblewrap.ready_for(spec)
        session = SingleUse(partial(self._one, spec))
        try:
            yield session
        finally:
            await session.stop()

    async def _one(self, spec: SandboxSpec, command: Command) -> SandboxResult:
        if _begins_warm(command) and (self._works or await self.warm()) and self.pool.is_worth_it(spec, command.python):
            return await self.run(spec, command)
        async with self.inner.open(spec) as cold:
            return await cold.run(command)

    async def warm(self) -> bool:
        """Whether programs begin warm here, seen once by running one."""
        async with self._trying:
            if self._works is None:
                try:
                    result = await self.run(SandboxSpec(), Command(_PROBE.argv, python=_PROBE))
                    self._works = result.exit_code == _PROBED
                    self.why_not = None if self._works else f"a probe ended with {result.outcome} {result.exit_code}"
                except SandboxError as error:
                    self._works, self.why_not = False, str(error)
        return self._works

    async def run(self, spec: SandboxSpec, command: Command) -> SandboxResult:
        """Run a Python program warm. Raises SandboxError, SandboxUnavailable, ConfigError."""
        host, capabilities = await self._bubblewrap.ready_for(spec)
        return await run_warm(self.pool, host, spec, command, capabilities.guarantees)


def fits(spec: SandboxSpec) -> bool:
    """Whether programs begin warm in such a sandbox. Each has a `/tmp` of its own there, so not where one is given."""
    plain = isinstance(spec.root, HostRoot) and spec.network is Network.NONE
    has_tmp = any(PurePosixPath(mount.target).parts[1:] == ("tmp",) for mount in spec.mounts)
    return plain and not (spec.scratches or spec.listeners or has_tmp)


def _begins_warm(command: Command) -> bool:
    """What a fork server cannot give goes the other way: variables and a directory of its own, other descriptors."""
    plain = command.python is not None and not command.env and command.cwd is None
    return plain and command.channels.keys() <= {0, 1}
