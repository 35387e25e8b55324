"""Graders for scorers. Inspect tells a scorer neither when an evaluation begins nor when it ends, so a grader is opened
by the first candidate, shared by all scorers of the same pack and settings, and kept until Python ends."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from securebench.benchmark_pack import BenchmarkPack
from securebench.grading import Grader, SyncGrader
from securebench.tester_config import load_tester_config
from securebench.verifiers.base import VerificationResult

_WAITING = 256  # candidates of one event loop under way at once, each in a thread that sleeps


@dataclass(frozen=True, slots=True)
class Wish:
    """How to judge: as many processes as cores unless said otherwise; policy, sandbox and judge of a tester file."""

    processes: int | None = None
    config: Path | None = None


async def graded(pack: BenchmarkPack, wish: Wish, task_id: str, candidate: Mapping[str, str]) -> VerificationResult:
    """The verdict on one candidate, whichever event loop asks; cancelling ends the work. Raises ConfigError,
    SandboxUnavailable, AuditFailed, InfrastructureError."""
    grader = await anyio.to_thread.run_sync(_here(os.getpid()).grader, pack, wish, limiter=_threads())
    future = grader.submit(task_id, candidate)
    try:
        return await anyio.to_thread.run_sync(future.result, abandon_on_cancel=True, limiter=_threads())
    finally:
        future.cancel()


def close_graders() -> None:
    """End the processes that scorers opened; the next candidate opens others. What is being judged is ended."""
    _here(os.getpid()).close()


class _Graders:
    """Those of this process."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._open = ExitStack()
        self._kept: dict[tuple[str, Wish], SyncGrader] = {}
        atexit.register(self.close)

    def grader(self, pack: BenchmarkPack, wish: Wish) -> SyncGrader:
        with self._lock:
            if (key := (pack.digest, wish)) not in self._kept:
                config = None if wish.config is None else load_tester_config(wish.config, env=os.environ)
                opened = Grader.sync(pack, processes=wish.processes, config=config)
                self._kept[key] = self._open.enter_context(opened)
            return self._kept[key]

    def close(self) -> None:
        if self._process != os.getpid():  # a forked process has none of its parent's threads
            return
        with self._lock:
            self._kept.clear()
            self._open.close()


@cache
def _here(process: int) -> _Graders:  # noqa: ARG001 — another one for a forked process
    return _Graders()


_limiter: RunVar[anyio.CapacityLimiter] = RunVar("securebench_inspect_threads")


def _threads() -> anyio.CapacityLimiter:
    """Of this event loop."""
    try:
        return _limiter.get()
    except LookupError:
        _limiter.set(made := anyio.CapacityLimiter(_WAITING))
        return made
