"""`run_tester_config`: the story of a run, readable top to bottom."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import anyio.to_thread

from securebench._leftovers import staging_directory
from securebench._tasks import one_error, side_tasks
from securebench.audit.prerun import require_run_audit
from securebench.audit.suite.attach import attached_audit
from securebench.benchmark_compiler import CompiledTasks, compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.egress.broker import Broker
from securebench.engine.admission import Memory, memory_for_attempts
from securebench.engine.attempt import AttemptContext
from securebench.engine.court import Court
from securebench.engine.judges import judge_of
from securebench.engine.lanes import Lanes
from securebench.engine.notary import Notary
from securebench.engine.planning import Circumstances, make_plan, secret_seed
from securebench.engine.preflight import (
    check_collectable,
    check_out_of_sight,
    check_supported,
    check_walls,
    image_digests,
    reachable_domains,
    task_roots,
)
from securebench.engine.resume import open_run
from securebench.engine.selection import select_tasks
from securebench.errors import StoreError
from securebench.families.registry import FAMILIES
from securebench.harness_schema import ChatHarness, ClaudeCodeHarness, CodexHarness
from securebench.harnesses.base import HarnessProducer
from securebench.harnesses.factory import (
    Overlays,
    build_harness_producer,
    check_program,
    needs_sandbox,
    prepare_overlays,
)
from securebench.harnesses.models import open_broker
from securebench.progress import Event, Progress, ProgressEvent, Unbreakable, both, silent
from securebench.records.audits import SignedAudit, store_audit
from securebench.records.events import EVENTS_FILE, EventLog, lost_starts
from securebench.records.keyless import require_sigstore, seal_keyless
from securebench.records.keys import SigningKey, load_signing_key
from securebench.records.plan import PLAN_FILE, Filters
from securebench.records.record import Identity
from securebench.records.store import RecordStore
from securebench.records.summary import TesterRunSummary, write_summary
from securebench.sandboxes.base import ISOLATED, Root, Sandbox
from securebench.sandboxes.select import select_sandbox
from securebench.tester_config import TesterConfig


def with_tester_overrides(config: TesterConfig, *, output_dir: Path | str | None = None) -> TesterConfig:
    """The configuration with command-line choices put in."""
    return config if output_dir is None else replace(config, output_dir=Path(output_dir).absolute())


_WAITING_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the caller decides besides the configuration."""

    limit: int | None = None
    tasks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    resume: bool = False
    workers: int | None = None
    unsafe: bool = False
    resume_anyway: bool = False
    with_audit: bool | Path = False


def run_tester_config(
    config: TesterConfig,
    *,
    limit: int | None = None,
    tasks: Iterable[str] = (),
    tags: Iterable[str] = (),
    progress: Progress | None = None,
    resume: bool = False,
    workers: int | None = None,
    unsafe: bool = False,
    resume_anyway: bool = False,
    with_audit: bool | Path = False,
) -> TesterRunSummary:
    """Run every planned attempt: plan, records, summary and seal are in the output directory afterwards.

    Only the tasks that `tasks` names (ids or patterns) and that have one of `tags` run, of these the first `limit`.
    `unsafe` goes without the audit of the walls, and every record says so. `resume_anyway` continues a run although
    what decides its results has changed, and the records say so. `with_audit` attaches the signed proof that this host
    withstood the attack suite: played now, or made earlier where it names a file.

    Raises ConfigError, SandboxUnavailable, AuditFailed or StoreError before anything runs; afterwards one bad task
    never ends the run. An interrupt stops the agents, finishes what is being verified and returns a summary that says
    so; a second one ends everything."""
    options = RunOptions(
        limit, tuple(tasks), tuple(tags), resume or resume_anyway, workers, unsafe, resume_anyway, with_audit
    )
    return anyio.run(_run, config, options, Unbreakable(progress or silent))


async def _run(config: TesterConfig, options: RunOptions, progress: Progress) -> TesterRunSummary:
    pack = load_benchmark_pack(config.manifest, config.tasks)
    check_supported(config)
    if config.records.sigstore:
        require_sigstore()
    selection = select_tasks(pack, options.limit, options.tasks, options.tags)
    tasks = compile_benchmark_pack(pack, indexes=selection.indexes)
    async with one_error(), open_broker(config) as broker:
        stage = replace(await _prepare(config, tasks, progress, options), broker=broker)
        producer = build_harness_producer(config, stage.sandbox, broker, stage.overlays)
        with RecordStore(config.output_dir) as store:
            return await _carry_out(config, options, selection.filters, tasks, progress, stage, producer, store)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What was found, checked and installed before anything runs."""

    sandbox: Sandbox | None = None
    notices: tuple[str, ...] = ()
    audit: Mapping[str, Any] | None = None
    suite: SignedAudit | None = None
    key: SigningKey | None = None  # where something was signed with it already
    overlays: Overlays = field(default_factory=lambda: MappingProxyType({}))
    images: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    broker: Broker | None = None

    def circumstances(self, unsafe: bool) -> Circumstances:
        tools = {overlay.label: overlay.digest for overlay in self.overlays.values()}
        return Circumstances(
            None if self.sandbox is None else self.sandbox.name, self.audit, unsafe, self.images, tools
        )


async def _prepare(config: TesterConfig, tasks: CompiledTasks, progress: Progress, options: RunOptions) -> _Stage:
    """Raises ConfigError, SandboxUnavailable, AuditFailed, SuiteFailed."""
    entries = tasks.entries
    check_collectable(config, entries)
    if not needs_sandbox(config) and not any(FAMILIES[entry.family].executes for entry in entries):
        return await _with_suite(_Stage(), config, (), progress, options)
    roots = task_roots(entry.image for entry in entries)
    check_out_of_sight(config, roots)
    notice = partial(_notice, progress)
    pull = None if config.sandbox.pull == "never" else notice
    selection = await select_sandbox(config.sandbox.backend, ISOLATED, roots, config.sandbox.runtime, pull)
    sandbox, audit = selection.sandbox, None
    left = await sandbox.clean()
    if not options.unsafe:
        await check_walls(sandbox, roots)
        audit = (await require_run_audit(sandbox, roots)).as_record()
    await check_program(config, sandbox, roots)
    overlays = await prepare_overlays(config, sandbox, roots, notice)
    cleaned = [f"removed what a killed run had left: {', '.join(left[:5])}"] if left else []
    notices = (selection.reason, *cleaned, *reachable_domains(config, entries))
    stage = _Stage(sandbox, notices, audit, overlays=overlays, images=await image_digests(sandbox, roots))
    return await _with_suite(stage, config, roots, progress, options)


async def _with_suite(
    stage: _Stage, config: TesterConfig, roots: Sequence[Root], progress: Progress, options: RunOptions
) -> _Stage:
    """With the signed audit that was asked for, named in what goes into plan and records."""
    if options.with_audit is False:
        return stage
    key = _signing_key(config)
    suite = await attached_audit(
        stage.sandbox,
        roots,
        key,
        runtime=config.sandbox.runtime,
        file=options.with_audit if isinstance(options.with_audit, Path) else None,
        unsafe=options.unsafe,
        notice=partial(_notice, progress),
    )
    return replace(stage, audit={**(stage.audit or {}), "suite": suite.as_record()}, suite=suite, key=key)


async def _carry_out(
    config: TesterConfig,
    options: RunOptions,
    filters: Filters,
    tasks: CompiledTasks,
    progress: Progress,
    stage: _Stage,
    producer: HarnessProducer,
    store: RecordStore,
) -> TesterRunSummary:
    directory, began, now = store.directory, anyio.current_time(), time.time()
    seed = secret_seed(config)
    wanted = make_plan(config, tasks, filters, stage.circumstances(options.unsafe), seed, now)
    if stage.suite is not None and (options.resume or not (directory / PLAN_FILE).exists()):
        store_audit(directory, stage.suite)  # before a plan or a record names it
    run = await open_run(store, wanted, seed, now=now, resume=options.resume, anyway=options.resume_anyway)
    if stage.broker is not None:
        used = run.tally.usage
        stage.broker.spent_before(used["requests"], used["input_tokens"] + used["output_tokens"], run.tally.cost or 0.0)
    plan, journal = run.plan, directory / EVENTS_FILE
    todo = run.missing(lost_starts(journal))
    with EventLog(journal) as events, staging_directory() as private:
        progress = both(Unbreakable(events), progress)
        data = {"run_id": plan.run_id, "benchmark_id": plan.benchmark.id, "planned": plan.total}
        data |= {"done_before": len(run.done), "output_dir": str(directory)}
        progress(ProgressEvent(Event.RUN_START, data=data))
        for text in filter(None, (*stage.notices, str(store.repair) if store.repair else "")):
            _notice(progress, text)
        private.chmod(0o700)
        candidates = CandidateStore(directory / "candidates")
        identity = Identity(
            plan.run_id, plan.pack_digest, plan.config_digest, config.harness.type, stage.audit, options.unsafe
        )
        court = Court(
            sandbox=stage.sandbox,
            store=CandidateStore(private / "store", candidates),
            seed=run.seed or b"",
            judge=judge_of(config),
            policy=config.verification,
        )
        lanes = Lanes(
            context=AttemptContext(identity, producer, progress, candidates, court),
            store=store,
            tally=run.tally,
            statuses=run.statuses,
            faults=run.faults,
            tasks=tasks,
            todo=todo,
            producers=options.workers or _default_workers(config),
            verifiers=len(os.sched_getaffinity(0)),
            memory=Memory(memory_for_attempts()),
        )
        if run.seed is None:
            summary = run.tally.summary(0.0)  # sealed and complete: nothing is left to do, and nothing is touched
        else:
            key = stage.key or _signing_key(config)
            if key.ephemeral and config.records.sign:
                _notice(
                    progress, "sealed with a key made for this run only; `securebench keys new NAME` makes one of yours"
                )
            notary = Notary(key, plan, run.begun_with, store, run.seed, run.statuses)
            summary = await _sealed(lanes, notary, config.records.sign, began)
            if config.records.sigstore:
                await anyio.to_thread.run_sync(seal_keyless, directory)
        progress(ProgressEvent(Event.RUN_DONE, data=summary.as_json()))
    return summary


async def _sealed(lanes: Lanes, notary: Notary, sign: bool, began: float) -> TesterRunSummary:
    """Run the lanes; whatever ends them, what is there is summed up and sealed."""
    directory, tally = lanes.store.directory, lanes.tally
    if sign:
        notary.begin()

    def finish() -> TesterRunSummary:
        for record in lanes.faults.values():
            tally.add(record)  # what was not come to again counts as it is
        summary = tally.summary(anyio.current_time() - began)
        write_summary(directory, summary)
        if sign:
            # What can go on must not have revealed its seed: missing attempts, and faults of the host.
            notary.seal(complete=not summary.interrupted and not summary.errors)
        return summary

    try:
        async with side_tasks() as tasks:
            if sign:
                tasks.start_soon(notary.checkpoints)
            await lanes.run()
    except BaseException:
        with suppress(StoreError):  # what ended the run matters more
            finish()
        raise
    return finish()


def _signing_key(config: TesterConfig) -> SigningKey:
    named = config.records.key
    return load_signing_key(str(config.base / named) if named is not None and "/" in named else named)


def _notice(progress: Progress, text: str) -> None:
    progress(ProgressEvent(Event.RUN_NOTICE, data={"message": text}))


def _default_workers(config: TesterConfig) -> int:
    """As many as there are cores; agents that mostly wait for a model are more, as far as memory lets them."""
    cores = len(os.sched_getaffinity(0))
    waiting = isinstance(config.harness, ChatHarness | CodexHarness | ClaudeCodeHarness)
    return config.run.max_workers or (_WAITING_PER_CORE * cores if waiting else cores)
