"""A sandbox backend as tests use it: one line to run a program inside, one to run the same program outside."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio

from securebench.sandboxes.ahead import prepared_ahead
from securebench.sandboxes.base import (
    Capabilities,
    Command,
    Limits,
    Root,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Session,
    run_once,
)
from securebench.sandboxes.policy import CommandPolicy, PolicySandbox

PYTHON = "/usr/bin/python3"
T = TypeVar("T")


@dataclass(frozen=True)
class Box:
    """`run`, `sh` and `py` use a fresh sandbox each; `session` keeps one for all that its body does."""

    sandbox: Sandbox
    at_once: int = 60  # how many of them this host can be asked for at the same time

    def run(
        self, *argv: str, limits: Limits | None = None, command: dict[str, Any] | None = None, **spec: Any
    ) -> SandboxResult:
        made = SandboxSpec(limits=limits or Limits(wall_seconds=60), **spec)
        return anyio.run(run_once, self.sandbox, made, Command(tuple(argv), **(command or {})))

    def sh(self, script: str, **how: Any) -> SandboxResult:
        return self.run("/bin/sh", "-c", script, **how)

    def py(self, program: str, **how: Any) -> SandboxResult:
        return self.run(PYTHON, "-I", "-c", program, **how)

    def session(self, spec: SandboxSpec, body: Callable[[Session], Awaitable[T]]) -> T:
        async def main() -> T:
            async with self.sandbox.open(spec) as session:
                return await body(session)

        return anyio.run(main)

    @property
    def guarantees(self) -> frozenset[str]:
        return anyio.run(self.sandbox.probe).guarantees


def under_policy(sandbox: Sandbox) -> Sandbox:
    """The same backend behind a policy that allows everything: it must change nothing."""
    return PolicySandbox(sandbox, CommandPolicy(allow=AnyName(), allow_shell_strings=True), lambda _: None)


class Primed:
    """The same backend with every sandbox opened before it is asked for: it must change nothing."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    async def offers(self, root: Root) -> bool:
        return await self._inner.offers(root)

    async def clean(self) -> list[str]:
        return await self._inner.clean()

    async def probe(self) -> Capabilities:
        return await self._inner.probe()

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        async with prepared_ahead(self._inner) as ahead:
            await ahead.prepare(spec)
            async with ahead.open(spec) as session:
                yield session


class AnyName(frozenset[str]):
    """An allow list with every name on it."""

    def __contains__(self, name: object) -> bool:
        return True


def text(result: SandboxResult) -> str:
    """What it printed; a failure shows both streams."""
    assert result.ok, (result.outcome, result.exit_code, result.signal, result.stdout, result.stderr)
    return result.stdout.data.decode().strip()


def outside(program: str) -> str:
    """The same Python program as a plain process: the positive control of a wall."""
    done = subprocess.run([PYTHON, "-I", "-c", program], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.strip()


def processes_with(marker: str) -> list[int]:
    """Host processes whose command line holds `marker`, zombies left out."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if marker.encode() in file.read() and int(name) != os.getpid():
                    found.append(int(name))
        except OSError:
            continue
    return found


def until_running(marker: str, count: int = 1) -> list[int]:
    """The `count` processes that were started to sleep for `marker` seconds, once they have come so far."""
    deadline = time.monotonic() + 60
    while len(found := processes_with(f"sleep\0{marker}")) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def kernel_uid(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Uid:"))
