"""The guarded backend: a plain child with limits and a watchdog, on every operating system. Not isolation.

It bounds what a command uses and ends all it started, but the command is the user who started SecureBench, sees every
file and process and reaches every address that user does. So this backend gives no guarantee, refuses every spec that
requires one, and is used only where it is named; `auto` never takes it. It is the outer frame of the Python guard
layer on hosts whose kernel offers nothing better.

There are no mounts: scratch directories lie in a temporary root of their own, and a working directory in one of them
is translated. The root is also `HOME`, `TMPDIR` and `AIBB_TMP`. Sizes of scratch directories are not enforced.
"""

from __future__ import annotations

import platform as _machine
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from securebench._fs import open_directory
from securebench._leftovers import clean_directories, staging_directory
from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes._bubblewrap.seed import copy
from securebench.sandboxes._guarded.platform import Platform, open_platform
from securebench.sandboxes._guarded.session import GuardedSession
from securebench.sandboxes.base import (
    Bind,
    Capabilities,
    Finding,
    HostRoot,
    Limits,
    Root,
    SandboxSpec,
    Session,
    refuse_host_network,
    refuse_listeners,
)

_REMEDY = "Use the bubblewrap or docker backend; `securebench doctor` shows how to get them here."


class GuardedSandbox:
    """Commands as plain children under limits. Guarantees nothing."""

    name = "guarded"

    async def probe(self) -> Capabilities:
        """Usable wherever a session can be opened; never a guarantee."""
        async with open_platform() as platform:
            bounded = ", ".join(platform.limits(Limits(cpu_seconds=1)))
            fingerprint = self._fingerprint(platform)
        findings = (
            Finding("limits", ok=True, detail=f"{bounded}; wall clock, output, memory and processes by a watchdog"),
            Finding("isolation", ok=False, detail="none: files, processes and network are the user's", remedy=_REMEDY),
        )
        return Capabilities(usable=True, guarantees=frozenset(), findings=findings, fingerprint=fingerprint)

    async def offers(self, root: Root) -> bool:
        """Only the host itself."""
        return isinstance(root, HostRoot)

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A session. Raises SandboxUnavailable when the spec requires anything, ConfigError, SandboxError on entry."""
        return self._open(spec)

    async def clean(self) -> list[str]:
        """Remove temporary roots of engines that no longer live; what was removed."""
        return clean_directories()

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        if spec.require:
            names = ", ".join(sorted(spec.require))
            raise SandboxUnavailable(f"the guarded backend cannot guarantee {names}", _REMEDY)
        refuse_host_network(spec, self.name)
        refuse_listeners(spec, self.name)
        if not isinstance(spec.root, HostRoot) or any(isinstance(mount, Bind) for mount in spec.mounts):
            raise ConfigError("the guarded sandbox has no root or mounts of its own; use scratch directories only")
        with staging_directory() as top:
            root, places = _make_places(top, spec)
            async with open_platform() as platform:
                session = GuardedSession(spec, platform, root, places, self._fingerprint(platform))
                try:
                    yield session
                finally:
                    session.close()
                    await session.stop()

    def _fingerprint(self, platform: Platform) -> dict[str, str]:
        return {
            "backend": self.name,
            "system": _machine.system(),
            "kernel": _machine.release(),
            "machine": _machine.machine(),
            "bounded": ",".join(platform.limits(Limits(cpu_seconds=1))),
        }


def _make_places(top: Path, spec: SandboxSpec) -> tuple[Path, dict[str, Path]]:
    """The temporary root and the scratch directories, filled; nobody but us may enter them."""
    root = top / "root"
    root.mkdir(mode=0o700)
    places = {}
    for number, scratch in enumerate(spec.scratches):
        place = places[scratch.target] = top / f"scratch{number}"
        place.mkdir(mode=0o700)
        if scratch.seed is not None:
            with open_directory(place) as directory:
                copy(scratch.seed, directory)
    return root, places


__all__ = ["GuardedSandbox", "GuardedSession"]
