"""The backends to play on: those this host offers, or those asked for, each with a root that holds python3.

Another package adds a backend with an entry point of the group `securebench.backends`: a name, and something that
makes a `Sandbox` when it is called. Such a backend is played on when it is asked for by that name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from securebench.audit.suite.run import Backend
from securebench.errors import ConfigError, InfrastructureError, SandboxUnavailable
from securebench.execution.isolation import IMAGE_SETTING
from securebench.sandboxes.base import (
    ISOLATED,
    Command,
    HostRoot,
    ImageRoot,
    Limits,
    Root,
    Sandbox,
    SandboxSpec,
    run_once,
)
from securebench.sandboxes.docker import DockerSandbox
from securebench.sandboxes.select import BACKENDS, check, make_sandbox

ENTRY_POINTS = "securebench.backends"
RUNSC = "runsc"
"""Docker with gVisor as its runtime, a column of its own; played on when asked for."""
COLD = "cold"
"""Bubblewrap without warm rooms; played on when asked for."""
_MOST_IMAGES = 20
_LOOK = Command(("python3", "-c", "import json, sys; sys.exit(sys.version_info < (3, 8))"))


@dataclass(frozen=True, slots=True)
class Offered:
    """What can be played on, and why the rest cannot."""

    backends: tuple[Backend, ...]
    missing: Mapping[str, str]


async def find_backends(names: Sequence[str] = (), image: str | None = None, *, most: int | None = None) -> Offered:
    """The backends called `names`, or every one of ours that is usable here, at most `most` of them.

    Raises SandboxUnavailable for one that was named and is not there, or where none is; ConfigError."""
    found: list[Backend] = []
    missing: dict[str, str] = {}
    remedies: list[str] = []
    for name in dict.fromkeys(names or BACKENDS):
        if len(found) == most:
            break
        try:
            found.append(await ready(name, make_backend(name), image=image))
        except SandboxUnavailable as refusal:
            if names:
                raise
            missing[name] = str(refusal).splitlines()[0]
            remedies.append(refusal.remedy)
    if not found:
        raise SandboxUnavailable(f"there is no backend to play on: {'; '.join(missing.values())}", "\n".join(remedies))
    return Offered(tuple(found), missing)


def make_backend(name: str) -> Sandbox:
    """One of ours, or one that an installed package adds. Raises ConfigError."""
    if name in BACKENDS:
        return make_sandbox(name)
    if name == RUNSC:
        return make_sandbox("docker", RUNSC)
    if name == COLD:
        return make_sandbox("bubblewrap")
    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in points:
        known = ", ".join([*BACKENDS, RUNSC, COLD, *points])
        raise ConfigError(f"no backend is called {name!r}; known are {known}")
    sandbox: Sandbox = points[name].load()()
    return sandbox


async def ready(name: str, sandbox: Sandbox, *, image: str | None = None, images: Sequence[str] = ()) -> Backend:
    """The backend with a root that holds python3: the host's programs where it offers them, else `image`, else the
    one the settings name, else the first of `images` and of those on this host that will do.

    Raises SandboxUnavailable when it is not usable, or there is no such root; SandboxError."""
    check(name, await sandbox.probe(), ISOLATED)
    if image is None and await sandbox.offers(HostRoot()):
        return Backend(name, sandbox, HostRoot(), warm=name != COLD)
    named = image or os.environ.get(IMAGE_SETTING)
    for reference in [named] if named else [*images, *await _local_images(sandbox)]:
        root = ImageRoot(reference)
        if await sandbox.offers(root) and await _has_python(sandbox, root):
            return Backend(name, sandbox, root)
    raise SandboxUnavailable(
        f"{name} has no image with python3{f' called {named!r}' if named else ''}",
        f"Name one that is on this host: --image NAME, or {IMAGE_SETTING}=NAME (docker pull python:3.12-slim).",
    )


async def _local_images(sandbox: Sandbox) -> list[str]:
    return (await sandbox.images())[:_MOST_IMAGES] if isinstance(sandbox, DockerSandbox) else []


async def _has_python(sandbox: Sandbox, root: Root) -> bool:
    spec = SandboxSpec(root=root, limits=Limits(wall_seconds=30))
    try:
        return (await run_once(sandbox, spec, _LOOK)).ok
    except InfrastructureError:
        return False
