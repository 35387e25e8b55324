"""Docker as tests use it: the backend with a default image, and the plain client for positive controls."""

from __future__ import annotations

import os
import subprocess
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from securebench.sandboxes.base import Capabilities, HostRoot, ImageRoot, SandboxSpec, Session
from securebench.sandboxes.docker import DockerSandbox

IMAGE = "securebench-base:test"
ROOT = ImageRoot(IMAGE)
AT_ONCE = 8
"""A container takes a busy daemon half a second."""


@dataclass
class Imaged:
    """The backend, with the test image where a spec names the host's programs."""

    real: DockerSandbox = field(default_factory=DockerSandbox)
    name: str = "docker"

    async def probe(self) -> Capabilities:
        return await self.real.probe()

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        return self.real.open(replace(spec, root=ROOT) if isinstance(spec.root, HostRoot) else spec)


def docker(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The client without any of our code: for controls, and to see what is left."""
    return subprocess.run(["docker", *args], input=stdin, capture_output=True, timeout=600, check=False)


def said(*args: str) -> str:
    """What the plain client printed; its failure is the test's."""
    done = docker(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def containers_of(pid: int) -> list[str]:
    """Containers made by one process, in any state."""
    names = said("ps", "--all", "--format={{.Names}}", "--filter=label=org.securebench.session").split()
    return [name for name in names if name.startswith(f"securebench-{pid}-")]


def own_containers() -> list[str]:
    return containers_of(os.getpid())


def volumes_of(container: str) -> list[str]:
    return said("inspect", "--format={{range .Mounts}}{{.Name}} {{end}}", container).split()


def existing_volumes() -> set[str]:
    return set(said("volume", "ls", "--quiet").split())
