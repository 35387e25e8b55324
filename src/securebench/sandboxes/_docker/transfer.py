"""Moving a whole tree through a pipe of the engine's client: blocking work in a thread, with a deadline."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.lowlevel

from securebench._proc import Pipe, Process
from securebench._tasks import side_tasks
from securebench.sandboxes._docker.client import CALL_SECONDS

COPY_SECONDS = 600.0
"""Bounds the copy of a large tree."""
_WORDS = 4096

T = TypeVar("T")


async def in_thread(process: Process, work: Callable[[], T]) -> T:
    """Run blocking work on the process's pipe. The process, and so the pipe, ends at the deadline or when cancelled."""
    results: list[T] = []

    async def guard() -> None:
        try:
            await anyio.sleep(COPY_SECONDS)
        finally:
            if not results:
                process.kill()

    async with side_tasks() as tasks:
        tasks.start_soon(guard)
        results.append(await anyio.to_thread.run_sync(work))
    await anyio.lowlevel.checkpoint()  # who was cancelled must not see an end that the cancelling made
    return results[0]


async def bounded_wait(process: Process) -> int | None:
    """Its exit status; None when it does not end although its pipe has."""
    with anyio.move_on_after(CALL_SECONDS):
        return await process.wait()
    return None


def said(words: Pipe) -> bytes:
    """What the client complained about."""
    try:
        return os.read(words.read, _WORDS)
    except BlockingIOError:
        return b""
