"""`HostSandbox`: no isolation at all, for staging trusted files with trusted tools, and it says so.

It exists so that staging uses the same protocol as everything else, and as the positive control of the conformance
suite: an attack that fails everywhere else must succeed here."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path

from securebench._leftovers import staging_directory
from securebench._proc import Process, start
from securebench.errors import ConfigError, SandboxError, SandboxUnavailable
from securebench.sandboxes._listeners import Listeners
from securebench.sandboxes._outcome import Ending, Observed, decide
from securebench.sandboxes._supervise import Streams, Supervisor
from securebench.sandboxes.base import (
    Bind,
    Capabilities,
    Command,
    Finding,
    HostRoot,
    Root,
    SandboxResult,
    SandboxSpec,
    Session,
    Usage,
    refuse_host_network,
    refuse_listeners,
)

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class HostSandbox:
    """Runs trusted commands on the host. Refuses every spec that requires a guarantee."""

    name = "host"

    async def offers(self, root: Root) -> bool:
        return isinstance(root, HostRoot)

    async def clean(self) -> list[str]:
        """Nothing: staging directories are cleaned with the bubblewrap backend's."""
        return []

    async def probe(self) -> Capabilities:
        """Usable everywhere, guarantees nothing."""
        finding = Finding("isolation", ok=False, detail="none: commands run on the host as they are")
        return Capabilities(usable=True, guarantees=frozenset(), findings=(finding,), fingerprint={"backend": "host"})

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A working directory on the host. Raises SandboxUnavailable unless the spec requires nothing."""
        return self._open(spec)

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        if spec.require:
            names = ", ".join(sorted(spec.require))
            raise SandboxUnavailable(
                f"the host sandbox isolates nothing, but {names} is required", "Use the bubblewrap or docker backend."
            )
        refuse_host_network(spec, self.name)
        refuse_listeners(spec, self.name)
        if not isinstance(spec.root, HostRoot) or any(isinstance(mount, Bind) for mount in spec.mounts):
            raise ConfigError("the host sandbox has no root or mounts of its own; use scratch directories only")
        with ExitStack() as stack:
            places: dict[str, Path] = {}
            for scratch in spec.scratches:
                places[scratch.target] = stack.enter_context(staging_directory()) / "scratch"
                if scratch.seed is None:
                    places[scratch.target].mkdir()
                else:
                    shutil.copytree(scratch.seed, places[scratch.target], symlinks=True)
            session = _HostSession(spec, places)
            try:
                yield session
            finally:
                await session.stop()
                session.close()


class _HostSession:
    """Commands run in the first scratch directory, or in `/`."""

    def __init__(self, spec: SandboxSpec, places: dict[str, Path]) -> None:
        self._spec, self._places = spec, places
        self._process: Process | None = None
        self._descriptors: dict[str, int] = {}
        self._stopped = False

    async def run(self, command: Command) -> SandboxResult:
        """Run one trusted command to its end. Raises SandboxError after `stop`."""
        if self._stopped:
            raise SandboxError("this sandbox was stopped")
        streams = Streams.for_command(command)
        env = {"PATH": _PATH, "LANG": "C.UTF-8", **self._spec.env, **command.env}
        wanted = command.cwd or self._spec.cwd
        cwd = self._places.get(wanted, Path(wanted))
        stdin, stdout, stderr = streams.inside
        try:
            self._process = process = start(command.argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)
            streams.close_inside()
            supervisor = Supervisor(command, self._spec.limits, streams, process.wait, process.kill)
            status = await supervisor.watch()
        finally:
            await self._end()
            streams.close()
        ending = Ending(signal=-status) if status < 0 else Ending(exit_code=status)
        outcome, shown = decide(Observed(ending, supervisor.killed))
        out, err = supervisor.outputs()
        usage = Usage(supervisor.wall_seconds)
        fingerprint = {"backend": "host"}
        return SandboxResult(outcome, shown.exit_code, shown.signal, out, err, usage, frozenset(), fingerprint)

    async def stop(self) -> None:
        """End the running command. Its descendants are on their own: nothing here could find them."""
        self._stopped = True
        await self._end()

    def scratch(self, target: str) -> int:
        """A descriptor on a scratch directory of the stopped session. Raises SandboxError."""
        if not self._stopped or target not in self._places:
            raise SandboxError(f"no scratch directory {target} to read; stop the sandbox first")
        if target not in self._descriptors:
            self._descriptors[target] = os.open(self._places[target], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._descriptors[target]

    def listener(self, port: int) -> socket.socket:
        """Always raises SandboxError: there is none."""
        return Listeners().at(port)

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    async def _end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            await process.close()
