"""Run directories of strangers: what lies in them under the names of our files is no file of ours."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from securebench.audit.plays.record import BENCH, Change, Made, made_on
from securebench.audit.plays.run_engine import tester_file
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.engine.notary import Notary
from securebench.engine.planning import Circumstances, make_plan
from securebench.engine.resume import open_run
from securebench.engine.stored_run import StoredRun
from securebench.errors import SecureBenchError
from securebench.evidence.verify import verify_run
from securebench.progress import Event, ProgressEvent
from securebench.records.events import EVENTS_FILE, EventLog, lost_starts
from securebench.records.plan import Filters
from securebench.records.store import RecordStore
from securebench.records.summary import write_summary
from securebench.tester_config import parse_tester_config

OUTSIDE = "outside"
_PATIENCE = 10.0
_ORDINARY = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Handled:
    """Who prepared a run directory wants whoever verifies, regrades or continues it to wait for ever, to break down, or
    to write into the file `outside`, which is no part of it. With `sealed` it is a finished run, else one to continue.
    """

    change: Change
    sealed: bool = False

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        run = made.copy(ground, made.sealed if self.sealed else made.begun)
        self.change(run, made.stranger)
        outside = ground.directory / OUTSIDE
        before = _content(outside)
        result: list[Seen] = []
        with anyio.move_on_after(_PATIENCE):
            await to_thread.run_sync(self._handle, made, run, result, abandon_on_cancel=True)
        if not result:
            _release(run)
            return Seen(End.REACHED, f"still at it after {_PATIENCE:g} seconds")
        if _content(outside) != before:
            return Seen(End.REACHED, "the file outside was written")
        return result[0]

    def _handle(self, made: Made, run: Path, result: list[Seen]) -> None:
        said = []
        for name, handle in (("verify", _verify), ("regrade", _stored), ("resume", _resume)):
            try:
                said.append(f"{name}: {handle(run, made)}")
            except SecureBenchError as error:
                said.append(f"{name}: {type(error).__name__}")
            except _ORDINARY as error:
                result.append(Seen(End.REACHED, f"{name} broke down: {type(error).__name__}: {error}"[:300]))
                return
        result.append(Seen(End.MISSED, "; ".join(said)))


def _verify(run: Path, made: Made) -> str:
    return "ok" if verify_run(run, {made.maker.id: "maker"}).ok else "not verified"


def _stored(run: Path, _: Made) -> str:
    stored = StoredRun(run)
    stored.seed()
    return f"{len([stored.record(key) for key in stored.recorded()])} records"


def _resume(run: Path, made: Made) -> str:
    """Everything a continued run does to its directory besides its attempts."""
    config = parse_tester_config(tester_file(BENCH), base_dir=run.parent)
    tasks = compile_benchmark_pack(load_benchmark_pack(config.manifest, config.tasks))
    plan = make_plan(config, tasks, Filters(), Circumstances(), b"", time.time())
    with RecordStore(run) as store:
        opened = anyio.run(partial(open_run, store, plan, b"", now=time.time(), resume=True))
        lost_starts(run / EVENTS_FILE)
        if opened.seed is None:
            return "nothing is left to do"
        with EventLog(run / EVENTS_FILE) as events:
            events(ProgressEvent(Event.RUN_NOTICE, data={"message": "continued"}))
        notary = Notary(made.maker, opened.plan, opened.begun_with, store, opened.seed, opened.statuses)
        notary.begin()
        write_summary(run, opened.tally.summary(0.0))
        notary.seal(complete=False)
    return "continued"


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _release(run: Path) -> None:
    """Let a thread go on that waits for somebody at the other end of a FIFO."""
    for path in run.iterdir():
        if path.is_fifo():
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
