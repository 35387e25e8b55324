"""Pools that hand out what was used before: what the attacks between two uses must succeed on."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio.to_thread
from tests.docker.engine import IMAGE, said

from securebench.sandboxes.base import Command, Sandbox, SandboxSpec, Session


@asynccontextmanager
async def reusing(sandbox: Sandbox) -> AsyncIterator[Uses]:
    """One session for everybody, of any backend."""
    async with AsyncExitStack() as stack:
        sessions: list[Session] = []

        async def use(spec: SandboxSpec, command: Command) -> str:
            if not sessions:
                sessions.append(await stack.enter_async_context(sandbox.open(spec)))
            result = await sessions[0].run(command)
            return result.stdout.data.decode()

        yield use


@asynccontextmanager
async def executing() -> AsyncIterator[Uses]:
    """One container for everybody, in which things are executed: the usual way to be fast with Docker."""
    name = f"securebench-reused-{uuid.uuid4().hex[:8]}"
    tmpfs = ("--tmpfs=/work:mode=1777", "--tmpfs=/tmp:mode=1777")
    said("run", "--detach", "--init", "--network=none", *tmpfs, f"--name={name}", IMAGE, "sleep", "3600")

    def execute(command: Command) -> str:
        env = [f"--env={key}={value}" for key, value in command.env.items()]
        argv = ["docker", "exec", *env, name, *command.argv]
        return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False).stdout

    async def use(spec: SandboxSpec, command: Command) -> str:
        return await anyio.to_thread.run_sync(execute, command)

    try:
        yield use
    finally:
        said("rm", "--force", name)


class Uses:
    """Run one command as one use."""

    async def __call__(self, spec: SandboxSpec, command: Command) -> str: ...
