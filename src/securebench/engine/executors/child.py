"""`python -m securebench.engine.executors.child FD`: one of the engine's processes. Reads orders from a socket that it
inherited, judges, builds the records and sends them back. It ends when the engine does, and leaves nothing."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from securebench._leftovers import clean_directories
from securebench._tasks import one_error
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.engine.admission import Memory
from securebench.engine.attempt import AttemptContext
from securebench.engine.collector import spared
from securebench.engine.court import open_court
from securebench.engine.executors.base import Order
from securebench.engine.executors.local import LocalExecutor
from securebench.engine.executors.setup import Setup
from securebench.engine.executors.wire import (
    CANCEL,
    CANCELLED,
    FAULT,
    ORDER,
    READY,
    RECORD,
    SETUP,
    Connection,
    encode_fault,
)
from securebench.engine.interruption import Interruption
from securebench.errors import IntegrityError, SecureBenchError
from securebench.harnesses.samples import SamplesProducer
from securebench.progress import silent
from securebench.records.record import securebench_digest
from securebench.sandboxes.base import ISOLATED, Sandbox
from securebench.sandboxes.select import select_sandbox

_FAREWELL = 30  # seconds to clean up after the engine has gone
_UNBOUNDED = 2**63  # the engine has admitted what it sends


def main(descriptor: int, core: int | None = None) -> int:
    """Serve the engine at the other end of `descriptor` until it goes away, on one core where it names one."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the engine decides when to stop, and what to finish before
    anyio.run(_serve, Connection(socket.socket(fileno=descriptor)))
    return 0


async def _serve(engine: Connection) -> None:
    first = await engine.receive()
    if first is None or first.kind != SETUP:
        return
    try:
        async with one_error(), _open_executor(Setup.decode(first.data)) as executor:
            with spared():
                await engine.send(READY)
                await _Orders(engine, executor).serve()
            signal.alarm(_FAREWELL)  # what hangs in cleaning up must not stay for ever
    except SecureBenchError as error:
        await engine.send(FAULT, 0, encode_fault(error))
    except ConnectionError:
        return


@asynccontextmanager
async def _open_executor(setup: Setup) -> AsyncIterator[LocalExecutor]:
    """Raises ConfigError, IntegrityError, SandboxUnavailable."""
    if setup.securebench != (ours := securebench_digest()):
        raise IntegrityError(f"SecureBench changed since the run began: {setup.securebench} → {ours}; start again")
    pack = load_benchmark_pack(setup.manifest, setup.tasks)
    if pack.digest != setup.pack_digest:
        raise IntegrityError(f"{setup.tasks}: the pack changed since the run began; start again")
    candidates = CandidateStore(Path(setup.candidates))
    sandbox = await _sandbox(setup)
    if setup.clean:
        clean_directories()
        if sandbox is not None:
            await sandbox.clean()
    warm = setup.sandbox is None or setup.sandbox.section.warm
    seed = bytes.fromhex(setup.seed)
    async with open_court(sandbox, candidates, seed, setup.panel(), setup.policy(), warm=warm) as court:
        context = AttemptContext(setup.identity(), SamplesProducer(setup.samples), silent, candidates, court)
        yield LocalExecutor(context, compile_benchmark_pack(pack), Memory(_UNBOUNDED), 8, 8)


async def _sandbox(setup: Setup) -> Sandbox | None:
    """The one that the engine audited. Raises SandboxUnavailable, IntegrityError."""
    if setup.sandbox is None:
        return None
    section = setup.sandbox.section
    sandbox = (await select_sandbox(section.backend, ISOLATED, setup.roots(), section.runtime)).sandbox
    if sandbox.name != setup.sandbox.name:
        raise IntegrityError(f"the sandbox here is {sandbox.name}, and {setup.sandbox.name} was audited; start again")
    return sandbox


class _Orders:
    """Orders under way, by number."""

    def __init__(self, engine: Connection, executor: LocalExecutor) -> None:
        self._engine = engine
        self._executor = executor
        self._interruption = Interruption()
        self._scopes: dict[int, anyio.CancelScope] = {}

    async def serve(self) -> None:
        """Until the engine goes away; then everything is ended."""
        async with anyio.create_task_group() as group:
            while (frame := await self._engine.receive()) is not None:
                if frame.kind == ORDER:
                    self._scopes[frame.number] = anyio.CancelScope()
                    group.start_soon(self._carry_out, frame.number, frame.data)
                elif frame.kind == CANCEL and frame.number in self._scopes:
                    self._scopes[frame.number].cancel()
            group.cancel_scope.cancel()

    async def _carry_out(self, number: int, data: bytes) -> None:
        kind, answer = CANCELLED, b""
        with self._scopes[number]:
            try:
                done = await self._executor.carry_out(Order.decode(data), self._interruption)
            except SecureBenchError as error:
                kind, answer = FAULT, encode_fault(error)
            else:
                if done is not None:
                    kind, answer = RECORD, done.body
        del self._scopes[number]
        await self._engine.send(kind, number, answer)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
