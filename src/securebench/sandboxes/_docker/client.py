"""The command line client of a container engine, Docker or Podman: the only way this backend talks to it.

Every call has a deadline. The client gets an environment of its own, so nothing the operator exported (a proxy, a
format) leaks into a container or changes an answer; only what says where the daemon is passes through.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.lowlevel

from securebench._proc import TOOL_ENV, Process, ToolResult, run_tool, start
from securebench.errors import ConfigError, SandboxError, SandboxUnavailable
from securebench.sandboxes._docker.errors import explain, no_answer

ENGINES = ("docker", "podman")
CALL_SECONDS = 60.0
"""How long the daemon may take for one answer; a container that is slow to start on a busy host takes a few."""

_PASSED = (
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "CONTAINER_HOST",
    "CONTAINERS_CONF", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Client:
    """`binary` is absolute, so nothing depends on PATH later."""

    binary: str
    env: Mapping[str, str]

    @property
    def engine(self) -> str:
        return "podman" if "podman" in Path(self.binary).name else "docker"

    async def attempt(
        self, doing: str, args: Sequence[str], *, stdin: bytes = b"", timeout: float = CALL_SECONDS
    ) -> ToolResult:
        """Run one client command. Raises SandboxError only when it gave no answer in time."""
        done = await run_tool([self.binary, *args], timeout, stdin=stdin, env=self.env)
        if done.status is None:
            raise no_answer(doing, timeout)
        return done

    async def ask(self, doing: str, args: Sequence[str], *, stdin: bytes = b"", timeout: float = CALL_SECONDS) -> str:
        """What one client command printed. Raises SandboxError, SandboxUnavailable."""
        done = await self.attempt(doing, args, stdin=stdin, timeout=timeout)
        if not done.ok:
            raise explain(doing, done.stderr)
        return done.stdout.decode("utf-8", "replace").strip()

    async def make(self, doing: str, args: Sequence[str], *, stdin: bytes = b"") -> str:
        """`ask` for what makes a container: not cut short by cancellation, because the daemon would go on and the
        container would appear after we removed it."""
        with anyio.CancelScope(shield=True):
            made = await self.ask(doing, args, stdin=stdin)
        await anyio.lowlevel.checkpoint()
        return made

    async def ask_json(self, doing: str, args: Sequence[str], *, timeout: float = CALL_SECONDS) -> object:
        """What one client command printed, as JSON. Raises SandboxError, SandboxUnavailable."""
        text = await self.ask(doing, args, timeout=timeout)
        try:
            return json.loads(text)
        except ValueError as error:
            raise SandboxError(f"{doing}: the engine's answer is not JSON: {text[:200]}") from error

    def start(
        self,
        args: Sequence[str],
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
    ) -> Process:
        """Start a client command whose streams are the caller's. Raises InfrastructureError."""
        return start([self.binary, *args], env=self.env, stdin=stdin, stdout=stdout, stderr=stderr)


def find_client(engine: str | None = None) -> Client:
    """The client asked for, or the first one installed. Raises SandboxUnavailable, ConfigError."""
    if engine is not None and engine not in ENGINES:
        raise ConfigError(f"unknown container engine {engine!r}; known are {', '.join(ENGINES)}")
    names = ENGINES if engine is None else (engine,)
    for name in names:
        if found := shutil.which(name):
            passed = {key: value for key in _PASSED if (value := os.environ.get(key))}
            return Client(str(Path(found).absolute()), {**TOOL_ENV, **passed})
    raise SandboxUnavailable(
        f"{' or '.join(names)} is not installed",
        f"Install it: sudo apt-get install {names[0].replace('docker', 'docker.io')}",
    )
