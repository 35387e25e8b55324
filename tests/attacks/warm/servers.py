"""Warm rooms one after the other from one fork server, and fork servers that were built carelessly."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import pytest
from tests.attacks.rooms.judging import bubblewrap

from securebench.sandboxes._warm import server
from securebench.sandboxes.base import Command, Limits, PythonProgram, SandboxResult, SandboxSpec
from securebench.sandboxes.warm import WarmSandbox, warmed

T = TypeVar("T")
SPEC = SandboxSpec(cwd="/tmp", limits=Limits(wall_seconds=60, pids=32))

ALL = "_NAMESPACES = 0x10000000 | 0x20000000 | 0x00020000 | 0x08000000\n"
CARELESS = {
    "no IPC namespace": (ALL, "_NAMESPACES = 0x10000000 | 0x20000000 | 0x00020000\n"),
    "no private directories": ('for place in (b"/tmp", b"/dev/shm")', "for place in ()"),
    "no filter": ("calls.append(filtered(settings.filter))", "None"),
    "capabilities are kept": ("calls += without_capabilities()", "None"),
    "devices are open to changes": ("for name in _DEVICES", "for name in ()"),
    "sockets may be left": ("left = max(0, _sockets() - 2 * len(self.children))", "left = 0"),
    "no room is the end": ("except OSError as error:  # whoever", "except ZeroDivisionError as error:  # whoever"),
}


def program(text: str) -> PythonProgram:
    """One program for all that is run, so that all of it comes from one fork server; what to do comes as input."""
    return PythonProgram((), text)


DO = program("import sys\nexec(sys.stdin.read())\n")


@contextmanager
def careless(*how: str) -> Iterator[None]:
    """Fork servers without this defence, for as long as the context lasts."""
    before = server._INSIDE
    (*rest, (name, source)) = before
    for one in how:
        old, new = CARELESS[one]
        assert old in source, one
        source = source.replace(old, new)
    server._INSIDE = (*rest, (name, source))
    try:
        yield
    finally:
        server._INSIDE = before


def in_warm_rooms(body: Callable[[WarmSandbox], Awaitable[T]]) -> T:
    backend = bubblewrap()

    async def main() -> T:
        async with warmed(backend) as sandbox:
            assert isinstance(sandbox, WarmSandbox)
            if not await sandbox.warm():
                (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(str(sandbox.why_not))
            return await body(sandbox)

    return anyio.run(main)


async def do(sandbox: WarmSandbox, text: str, spec: SandboxSpec = SPEC, **how: Any) -> SandboxResult:
    return await sandbox.run(spec, Command(DO.argv, python=DO, stdin=text.encode(), **how))


def one_after_the_other(*texts: str, spec: SandboxSpec = SPEC) -> list[SandboxResult]:
    """Each in a room of its own, from the same fork server."""

    async def body(sandbox: WarmSandbox) -> list[SandboxResult]:
        before = sandbox.pool.started
        results = [await do(sandbox, text, spec) for text in texts]
        assert sandbox.pool.started == before + 1
        return results

    return in_warm_rooms(body)


def said(result: SandboxResult) -> str:
    assert result.ok, (result.outcome, result.exit_code, result.signal, result.stderr.data[-500:])
    return result.stdout.data.decode().strip()
