"""`run_tester_config`: the story of a run, readable top to bottom."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio

from securebench._canonical import digest_bytes
from securebench._leftovers import staging_directory
from securebench.audit.prerun import require_run_audit
from securebench.benchmark_compiler import CompiledTasks, compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.egress.model_endpoint import ModelEndpoint
from securebench.engine.admission import Memory, memory_for_attempts
from securebench.engine.attempt import AttemptContext
from securebench.engine.court import Court
from securebench.engine.lanes import Lanes, Todo
from securebench.engine.preflight import (
    check_collectable,
    check_out_of_sight,
    check_supported,
    check_walls,
    reachable_domains,
    task_roots,
)
from securebench.engine.resume import finished_before
from securebench.errors import StoreError
from securebench.families.registry import FAMILIES
from securebench.harnesses.base import HarnessProducer
from securebench.harnesses.factory import (
    Overlays,
    build_harness_producer,
    check_program,
    needs_sandbox,
    prepare_overlays,
)
from securebench.harnesses.models import open_broker
from securebench.progress import Event, Progress, ProgressEvent, Unbreakable, silent
from securebench.records.record import Identity
from securebench.records.store import RecordStore
from securebench.records.summary import RunPlan, Tally, TesterRunSummary, write_summary
from securebench.sandboxes.base import ISOLATED, Sandbox
from securebench.sandboxes.select import select_sandbox
from securebench.tester_config import TesterConfig
from securebench.verifiers.judge.panel import Panel


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
    unsafe: bool = False,
) -> TesterRunSummary:
    """Run every planned attempt and write `candidates.jsonl` and `summary.json`.

    `unsafe` goes without the audit of the walls, and every record says so.

    Raises ConfigError, SandboxUnavailable, AuditFailed or StoreError before anything runs; afterwards one bad task
    never ends the run. An interrupt stops the agents, keeps what is written and returns a summary that says so."""
    try:
        return anyio.run(partial(_run, config, limit, progress or silent, resume, workers, unsafe))
    except BaseExceptionGroup as group:
        # Workers run in a task group; what one of them raised is what the caller wants to know.
        raise _first(group) from None


def _notice(progress: Progress, text: str) -> None:
    progress(ProgressEvent(Event.RUN_NOTICE, data={"message": text}))


async def _run(
    config: TesterConfig, limit: int | None, progress: Progress, resume: bool, workers: int | None, unsafe: bool
) -> TesterRunSummary:
    progress = Unbreakable(progress)
    pack = load_benchmark_pack(config.manifest, config.tasks)
    check_supported(config)
    tasks = compile_benchmark_pack(pack, limit=limit)
    async with open_broker(config) as broker:
        stage = await _prepare(config, tasks, progress, unsafe)
        producer = build_harness_producer(config, stage.sandbox, broker, stage.overlays)
        identity = Identity(config.run_id, pack.digest, config.digest(), config.harness.type, stage.audit, unsafe)
        return await _carry_out(config, tasks, limit, progress, resume, workers, stage, producer, identity)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What was found, checked and installed before anything runs."""

    sandbox: Sandbox | None = None
    notices: tuple[str, ...] = ()
    audit: Mapping[str, Any] | None = None
    overlays: Overlays = field(default_factory=lambda: MappingProxyType({}))


async def _prepare(config: TesterConfig, tasks: CompiledTasks, progress: Progress, unsafe: bool) -> _Stage:
    """Raises ConfigError, SandboxUnavailable, AuditFailed."""
    entries = tasks.pack.entries[: len(tasks)]
    check_collectable(config, entries)
    if not needs_sandbox(config) and not any(FAMILIES[entry.family].executes for entry in entries):
        return _Stage()
    roots = task_roots(entry.image for entry in entries)
    check_out_of_sight(config, roots)
    notice = partial(_notice, progress)
    pull = None if config.sandbox.pull == "never" else notice
    selection = await select_sandbox(config.sandbox.backend, ISOLATED, roots, config.sandbox.runtime, pull)
    sandbox, audit = selection.sandbox, None
    if not unsafe:
        await check_walls(sandbox, roots)
        audit = (await require_run_audit(sandbox, roots)).as_record()
    await check_program(config, sandbox, roots)
    overlays = await prepare_overlays(config, sandbox, roots, notice)
    return _Stage(sandbox, (selection.reason, *reachable_domains(config, entries)), audit, overlays)


async def _carry_out(
    config: TesterConfig,
    tasks: CompiledTasks,
    limit: int | None,
    progress: Progress,
    resume: bool,
    workers: int | None,
    stage: _Stage,
    producer: HarnessProducer,
    identity: Identity,
) -> TesterRunSummary:
    pack = tasks.pack
    started = anyio.current_time()
    candidates = CandidateStore(config.output_dir / "candidates")
    with RecordStore(config.output_dir) as store, staging_directory() as private:
        private.chmod(0o700)
        store.begin(digest_bytes(b""))
        tally = Tally(_plan(config, tasks, limit))
        planned = {entry.id: entry.family for entry in pack.entries}
        done = finished_before(store, identity, planned, config.run.attempts, resume, tally)
        todo = _missing(tasks, config.run.attempts, done)
        data = {"run_id": config.run_id, "benchmark_id": pack.manifest.id, "planned": tally.plan.attempts}
        progress(
            ProgressEvent(Event.RUN_START, data=data | {"done_before": len(done), "output_dir": str(store.directory)})
        )
        for text in filter(None, (*stage.notices, str(store.repair) if store.repair else "")):
            _notice(progress, text)
        context = AttemptContext(
            identity=identity,
            producer=producer,
            progress=progress,
            store=candidates,
            court=Court(
                sandbox=stage.sandbox,
                store=CandidateStore(private / "store", candidates),
                seed=_secret_seed(config),
                judge=_judge(config),
                policy=config.verification,
            ),
        )
        lanes = Lanes(
            context=context,
            store=store,
            tally=tally,
            tasks=tasks,
            todo=todo,
            producers=workers or _default_workers(config),
            verifiers=len(os.sched_getaffinity(0)),
            memory=Memory(memory_for_attempts()),
        )
        try:
            await lanes.run()
        except BaseException:
            with suppress(StoreError):  # what ended the run matters more
                write_summary(config.output_dir, tally.summary(anyio.current_time() - started))
            raise
        summary = tally.summary(anyio.current_time() - started)
        write_summary(config.output_dir, summary)
    progress(ProgressEvent(Event.RUN_DONE, data=summary.as_json()))
    return summary


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _missing(tasks: CompiledTasks, attempts: int, done: set[tuple[str, int]]) -> Iterator[Todo]:
    """Everything that has no record yet, first attempts of all tasks first."""
    ids = tasks.pack.ids
    for attempt in range(1, attempts + 1):
        for number in range(len(tasks)):
            if (ids[number], attempt) not in done:
                yield Todo(number, attempt)


def _plan(config: TesterConfig, tasks: CompiledTasks, limit: int | None) -> RunPlan:
    return RunPlan(
        run_id=config.run_id,
        output_dir=config.output_dir,
        benchmark_id=tasks.pack.manifest.id,
        harness=config.harness.type,
        attempts=len(tasks) * config.run.attempts,
        limit=limit,
    )


def _judge(config: TesterConfig) -> Panel | None:
    if (judge := config.judge) is None:
        return None
    endpoint = ModelEndpoint(judge.base_url, judge.model, config.judge_key, judge.timeout_seconds, judge.max_tokens)
    return Panel(endpoint, judge.votes)


def _secret_seed(config: TesterConfig) -> bytes:
    """Decides what no candidate may guess. A run that sets `run.seed` can be repeated; it is then no secret to those
    who read its tester file, which no sandbox can."""
    if config.run.seed is None:
        return secrets.token_bytes(32)
    return hashlib.sha256(f"securebench seed {config.run.seed}".encode()).digest()


def _default_workers(config: TesterConfig) -> int:
    return config.run.max_workers or len(os.sched_getaffinity(0))
