"""`run_tester_config`: the story of a run, readable top to bottom."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from securebench.benchmark_compiler import CompiledTasks, compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.engine.attempt import AttemptContext, run_attempt
from securebench.environment import DEFAULT_WORKDIR
from securebench.errors import ConfigError, IntegrityError, SandboxError
from securebench.harnesses.factory import build_harness_producer, needs_sandbox
from securebench.progress import Event, Progress, ProgressEvent, silent
from securebench.records.record import Identity
from securebench.records.store import RecordStore
from securebench.records.summary import RunPlan, Tally, TesterRunSummary, write_summary
from securebench.sandboxes.base import ISOLATED, HostRoot, ImageRoot, Root, Sandbox, SandboxSpec, Scratch
from securebench.sandboxes.canary import run_canary
from securebench.sandboxes.select import select_sandbox
from securebench.tester_config import TesterConfig
from securebench.verifiers.base import Status

MAX_CANARIES = 16


def with_tester_overrides(config: TesterConfig, *, output_dir: Path | str | None = None) -> TesterConfig:
    """The configuration with command-line choices put in."""
    return config if output_dir is None else replace(config, output_dir=Path(output_dir).absolute())


def run_tester_config(
    config: TesterConfig,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
    resume: bool = False,
    workers: int | None = None,
) -> TesterRunSummary:
    """Run every planned attempt and write `candidates.jsonl` and `summary.json`.

    Raises ConfigError, SandboxUnavailable or StoreError before anything runs; afterwards one bad task never ends
    the run. An interrupt stops the agents, keeps what is written and returns a summary that says so."""
    try:
        return anyio.run(partial(_run, config, limit, progress or silent, resume, workers))
    except BaseExceptionGroup as group:
        # Workers run in a task group; what one of them raised is what the caller wants to know.
        raise _first(group) from None


async def _run(
    config: TesterConfig, limit: int | None, progress: Progress, resume: bool, workers: int | None
) -> TesterRunSummary:
    pack = load_benchmark_pack(config.manifest, config.tasks)
    tasks = compile_benchmark_pack(pack, limit=limit)
    sandbox, notice = None, ""
    if needs_sandbox(config) and tasks:
        roots = task_roots(entry.image for entry in pack.entries[: len(tasks)])
        selection = await select_sandbox(
            config.sandbox.backend,
            ISOLATED,
            roots,
            config.sandbox.runtime,
            lambda text: progress(ProgressEvent(Event.RUN_NOTICE, data={"message": text})),
        )
        sandbox, notice = selection.sandbox, selection.reason
        await _check_walls(sandbox, roots)
    producer = build_harness_producer(config, sandbox)
    identity = Identity(config.run_id, pack.digest, config.digest(), config.harness.type)
    started = anyio.current_time()
    with RecordStore(config.output_dir) as store:
        tally = Tally(_plan(config, tasks, limit))
        done = _finished_before(store, identity, resume, tally)
        todo = _missing(tasks, config.run.attempts, done)
        data = {"run_id": config.run_id, "benchmark_id": pack.manifest.id, "planned": tally.plan.attempts}
        progress(
            ProgressEvent(Event.RUN_START, data=data | {"done_before": len(done), "output_dir": str(store.directory)})
        )
        for text in filter(None, (notice, str(store.repair) if store.repair else "")):
            progress(ProgressEvent(Event.RUN_NOTICE, data={"message": text}))
        context = AttemptContext(identity, producer, progress)
        await _run_attempts(context, store, tally, tasks, todo, workers or _default_workers(config))
        summary = tally.summary(anyio.current_time() - started)
        write_summary(config.output_dir, summary)
    progress(ProgressEvent(Event.RUN_DONE, data=summary.as_json()))
    return summary


async def _run_attempts(
    context: AttemptContext,
    store: RecordStore,
    tally: Tally,
    tasks: CompiledTasks,
    todo: Iterator[tuple[int, int]],
    workers: int,
) -> None:
    """Side by side, at most `workers` at a time; one writer. An interrupt cancels what is running."""

    async def work() -> None:
        for number, attempt in todo:
            record = await run_attempt(context, tasks[number], attempt)
            store.append(record)
            tally.add(record)
            context.progress(ProgressEvent(Event.RECORD_WRITTEN, record["task_id"], attempt))

    async with _interruptible() as scope, anyio.create_task_group() as group:
        for _ in range(workers):
            group.start_soon(work)
    tally.interrupted = scope.cancelled_caught


@asynccontextmanager
async def _interruptible() -> AsyncIterator[anyio.CancelScope]:
    """A scope that SIGINT and SIGTERM cancel; outside the main thread there are no signals to catch."""
    if threading.current_thread() is not threading.main_thread():
        with anyio.CancelScope() as scope:
            yield scope
        return
    with anyio.CancelScope() as scope, anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:

        async def watch() -> None:
            async for _ in signals:
                scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            yield scope
            group.cancel_scope.cancel()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _missing(tasks: CompiledTasks, attempts: int, done: set[tuple[str, int]]) -> Iterator[tuple[int, int]]:
    """Task number and attempt of everything that has no record yet, first attempts of all tasks first."""
    ids = tasks.pack.ids
    for attempt in range(1, attempts + 1):
        for number in range(len(tasks)):
            if (ids[number], attempt) not in done:
                yield number, attempt


def _finished_before(store: RecordStore, identity: Identity, resume: bool, tally: Tally) -> set[tuple[str, int]]:
    """The attempts an earlier start completed. Raises where they cannot be trusted or were not asked for."""
    done: set[tuple[str, int]] = set()
    for record in store.records():
        if not resume:
            raise ConfigError(
                f"{store.directory} already holds records of run {record.get('run_id')!r}; "
                "use --resume to continue it, or choose another --output-dir"
            )
        _check_same_run(record, identity, store)
        key = (record["task_id"], record["attempt"])
        if record["verification_status"] == Status.ERROR:
            continue
        if key in done:
            raise IntegrityError(f"{store.path}: task {key[0]!r} attempt {key[1]} is recorded twice")
        done.add(key)
        tally.add(record)
    return done


def _check_same_run(record: dict[str, Any], identity: Identity, store: RecordStore) -> None:
    digests = record.get("digests", {})
    for what, before, now in (
        ("run.id", record.get("run_id"), identity.run_id),
        ("the pack", digests.get("pack"), identity.pack_digest),
        ("the harness, limits or attempts", digests.get("config"), identity.config_digest),
    ):
        if before != now:
            raise ConfigError(
                f"cannot resume {store.directory}: {what} changed since the run began ({before} → {now}); "
                "undo the change or start a new run with another --output-dir"
            )


async def _check_walls(sandbox: Sandbox, roots: Sequence[Root]) -> None:
    """Before anything runs: look at the walls from inside, once per root. Raises SandboxError if one is missing."""
    for root in roots[:MAX_CANARIES]:
        spec = SandboxSpec(root=root, mounts=(Scratch(DEFAULT_WORKDIR),), cwd=DEFAULT_WORKDIR)
        if missing := await run_canary(sandbox, spec):
            raise SandboxError(f"the sandbox is not what it must be, nothing was run: {'; '.join(missing)}")


def task_roots(images: Iterable[str | None]) -> list[Root]:
    """The different root file systems that tasks with these images need."""
    return [HostRoot() if image is None else ImageRoot(image) for image in dict.fromkeys(images)]


def _plan(config: TesterConfig, tasks: CompiledTasks, limit: int | None) -> RunPlan:
    return RunPlan(
        run_id=config.run_id,
        output_dir=config.output_dir,
        benchmark_id=tasks.pack.manifest.id,
        harness=config.harness.type,
        attempts=len(tasks) * config.run.attempts,
        limit=limit,
    )


def _default_workers(config: TesterConfig) -> int:
    return config.run.max_workers or len(os.sched_getaffinity(0))
