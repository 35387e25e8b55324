"""`run_tester_config`: the story of a run, readable top to bottom."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from securebench._tasks import one_error, side_tasks
from securebench.benchmark_compiler import CompiledTasks, compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack, candidate_kinds, load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.egress.broker import Broker
from securebench.engine.admission import Memory, memory_for_attempts
from securebench.engine.attempt import AttemptContext
from securebench.engine.collector import spared
from securebench.engine.court import open_court
from securebench.engine.executors.base import Executor
from securebench.engine.executors.local import LocalExecutor
from securebench.engine.executors.processes import open_processes
from securebench.engine.executors.setup import Setup
from securebench.engine.judges import judge_of
from securebench.engine.lanes import Lanes, order_for, order_from
from securebench.engine.notary import Notary
from securebench.engine.planning import Circumstances, make_plan, secret_seed
from securebench.engine.preflight import (
    check_collectable,
    check_out_of_sight,
    reachable_domains,
    task_roots,
)
from securebench.engine.resume import Opened, open_run
from securebench.engine.selection import select_tasks
from securebench.errors import ConfigError, SecureBenchError, StoreError
from securebench.families.registry import FAMILIES
from securebench.harness_schema import ChatHarness, ClaudeCodeHarness, CodexHarness
from securebench.harnesses.base import HarnessProducer
from securebench.harnesses.factory import (
    Overlays,
    build_harness_producer,
    check_environment,
    check_program,
    needs_sandbox,
    prepare_overlays,
)
from securebench.harnesses.models import open_broker
from securebench.harnesses.sample_file import SampleFile, open_samples
from securebench.harnesses.samples import SamplesProducer
from securebench.preparation import prepare_sandbox
from securebench.progress import Event, Progress, ProgressEvent, Unbreakable, both, silent
from securebench.records.audits import SignedAudit, store_audit
from securebench.records.events import EVENTS_FILE, EventLog, lost_starts
from securebench.records.keyless import require_sigstore, seal_keyless
from securebench.records.keys import SigningKey, load_signing_key, signing_key_from
from securebench.records.nodes import keep_enrolment, kept_enrolment
from securebench.records.plan import PLAN_FILE, Filters
from securebench.records.record import Identity
from securebench.records.store import RecordStore
from securebench.records.summary import TesterRunSummary, write_summary
from securebench.sandboxes.base import Root, Sandbox
from securebench.tester_config import TesterConfig, chosen_executor

if TYPE_CHECKING:  # a cluster and the attack suite are loaded by runs that have them
    from securebench.cluster.members import Cluster
    from securebench.cluster.setup import NodeReport


def with_tester_overrides(
    config: TesterConfig, *, output_dir: Path | str | None = None, executor: str | None = None
) -> TesterConfig:
    """The configuration with command-line choices put in. `executor` is `local`, `ray`, or a cluster's address."""
    if output_dir is not None:
        config = replace(config, output_dir=Path(output_dir).absolute())
    if executor is not None:
        config = replace(config, executor=config.executor.model_copy(update=chosen_executor(executor)))
    return config


_WAITING_PER_CORE = 4
_UNBOUNDED = 2**63  # nodes of a cluster admit by their own memory


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
    ignore_missing: bool = False
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What a run is about: a pack, and candidates for it where they were produced elsewhere."""

    pack: BenchmarkPack
    samples: SampleFile | None = None


@contextmanager
def open_work(config: TesterConfig) -> Iterator[Work]:
    """Raises ConfigError with every problem of the pack, then of the samples."""
    pack = load_benchmark_pack(config.manifest, config.tasks)
    if config.samples is None:
        yield Work(pack)
        return
    with open_samples(config.samples, candidate_kinds(pack)) as samples:
        yield Work(pack, samples)


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
    ignore_missing: bool = False,
    processes: int | None = None,
) -> TesterRunSummary:
    """Run every planned attempt: plan, records, summary and seal are in the output directory afterwards.

    Only the tasks that `tasks` names (ids or patterns) and that have one of `tags` run, of these the first `limit`.
    `unsafe` goes without the audit of the walls, and every record says so. `resume_anyway` continues a run although
    what decides its results has changed, and the records say so. `with_audit` attaches the signed proof that this host
    withstood the attack suite: played now, or made earlier where it names a file. Where candidates come from a file,
    `ignore_missing` leaves tasks out that it has none for, which the plan states, and so many `processes` judge.

    Raises ConfigError, SandboxUnavailable, AuditFailed or StoreError before anything runs; afterwards one bad task
    never ends the run. An interrupt stops the agents, finishes what is being verified and returns a summary that says
    so; a second one ends everything."""
    options = RunOptions(
        limit,
        tuple(tasks),
        tuple(tags),
        resume or resume_anyway,
        workers,
        unsafe,
        resume_anyway,
        with_audit,
        ignore_missing,
        processes,
    )
    with open_work(config) as work:
        return run_work(config, options, progress or silent, work)


def run_work(config: TesterConfig, options: RunOptions, progress: Progress, work: Work) -> TesterRunSummary:
    """`run_tester_config` for what is open already."""
    if work.samples is None and (options.ignore_missing or options.processes is not None):
        raise ConfigError("only candidates from a file (harness type samples) can be missing or judged by processes")
    return anyio.run(_run, config, options, Unbreakable(progress), work)


async def _run(config: TesterConfig, options: RunOptions, progress: Progress, work: Work) -> TesterRunSummary:
    if config.records.sigstore:
        require_sigstore()
    sampled = work.samples if options.ignore_missing else None
    selection = select_tasks(work.pack, options.limit, options.tasks, options.tags, sampled)
    tasks = compile_benchmark_pack(work.pack, indexes=selection.indexes)
    async with one_error(), open_broker(config) as broker, _open_stage(config, tasks, progress, options) as found:
        stage = replace(found, broker=broker, samples=work.samples)
        digest = None if work.samples is None else work.samples.digest
        if stage.cluster is None or not needs_sandbox(config):
            producer = build_harness_producer(config, stage.sandbox, broker, stage.overlays, digest)
            stage = replace(stage, producer=producer)
        with RecordStore(config.output_dir) as store:
            return await _carry_out(config, options, selection.filters, tasks, progress, stage, store)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What was found, checked and installed before anything runs."""

    sandbox: Sandbox | None = None
    roots: tuple[Root, ...] = ()
    notices: tuple[str, ...] = ()
    audit: Mapping[str, Any] | None = None
    suite: SignedAudit | None = None
    key: SigningKey | None = None  # where something was signed with it already
    overlays: Overlays = field(default_factory=lambda: MappingProxyType({}))
    images: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    broker: Broker | None = None
    samples: SampleFile | None = None
    producer: HarnessProducer = field(default_factory=SamplesProducer)
    cluster: Cluster | None = None
    first: NodeReport | None = None  # of the nodes, what the first one said of itself
    enrolment: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)

    def circumstances(self, unsafe: bool) -> Circumstances:
        tools = {overlay.label: overlay.digest for overlay in self.overlays.values()}
        backend = None if self.sandbox is None else self.sandbox.name
        if self.first is None:
            return Circumstances(backend, self.audit, unsafe, self.images, tools)
        executor = {"type": "ray", "enrolment": signing_key_from(self.enrolment).id}
        return Circumstances(self.first.backend, self.audit, unsafe, self.images, self.first.tools, executor)


@asynccontextmanager
async def _open_stage(
    config: TesterConfig, tasks: CompiledTasks, progress: Progress, options: RunOptions
) -> AsyncIterator[_Stage]:
    """This machine, or a cluster, made ready. Raises ConfigError, InfrastructureError, SandboxUnavailable,
    AuditFailed, SuiteFailed."""
    executed = any(FAMILIES[entry.family].executes for entry in tasks.entries)
    roles = (*(["produce"] if needs_sandbox(config) else []), *(["verify"] if executed else []))
    if config.executor.type == "local" or not roles:
        yield await _prepare(config, tasks, progress, options)
        return
    if options.with_audit is not False:
        raise ConfigError("--with-audit plays the attack suite on this machine, and a cluster's nodes are others")
    check_collectable(config, tasks.entries)
    if needs_sandbox(config):
        check_environment(config)
    images = tuple(dict.fromkeys(entry.image for entry in tasks.entries))
    check_out_of_sight(config, task_roots(images))
    notice = partial(_notice, progress)
    from securebench.cluster.opening import open_cluster

    async with open_cluster(config, images, roles, notice, unsafe=options.unsafe) as (cluster, first):
        report = first.report
        yield _Stage(
            notices=tuple(reachable_domains(config, tasks.entries)),
            audit=report.audit,
            images=report.images,
            cluster=cluster,
            first=report,
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
    ready = await prepare_sandbox(config.sandbox, roots, notice, unsafe=options.unsafe)
    if ready.sandbox is not None:
        await check_program(config, ready.sandbox, roots)
    overlays = await prepare_overlays(config, ready.sandbox, roots, notice)
    notices = (*ready.notices, *reachable_domains(config, entries))
    stage = _Stage(ready.sandbox, ready.roots, notices, ready.audit, overlays=overlays, images=ready.images)
    return await _with_suite(stage, config, roots, progress, options)


async def _with_suite(
    stage: _Stage, config: TesterConfig, roots: Sequence[Root], progress: Progress, options: RunOptions
) -> _Stage:
    """With the signed audit that was asked for, named in what goes into plan and records."""
    if options.with_audit is False:
        return stage
    from securebench.audit.suite.attach import attached_audit

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
    store: RecordStore,
) -> TesterRunSummary:
    directory, began, now = store.directory, anyio.current_time(), time.time()
    seed = secret_seed(config)
    wanted = make_plan(config, tasks, filters, stage.circumstances(options.unsafe), seed, now, stage.samples)
    if stage.suite is not None and (options.resume or not (directory / PLAN_FILE).exists()):
        store_audit(directory, stage.suite)  # before a plan or a record names it
    if wanted.executor is not None and not (directory / PLAN_FILE).exists():
        keep_enrolment(directory, stage.enrolment)
    run = await open_run(store, wanted, seed, now=now, resume=options.resume, anyway=options.resume_anyway)
    if stage.broker is not None:
        used = run.tally.usage
        stage.broker.spent_before(used["requests"], used["input_tokens"] + used["output_tokens"], run.tally.cost or 0.0)
    plan, journal = run.plan, directory / EVENTS_FILE
    todo = run.missing(lost_starts(journal))
    order = partial(order_for, tasks) if stage.samples is None else partial(order_from, stage.samples, tasks)
    with EventLog(journal) as events:
        progress = both(Unbreakable(events), progress)
        data = {"run_id": plan.run_id, "benchmark_id": plan.benchmark.id, "planned": plan.total}
        data |= {"done_before": len(run.done), "output_dir": str(directory)}
        progress(ProgressEvent(Event.RUN_START, data=data))
        for text in filter(None, (*stage.notices, str(store.repair) if store.repair else "")):
            _notice(progress, text)
        if run.seed is None:
            summary = run.tally.summary(0.0)  # sealed and complete: nothing is left to do, and nothing is touched
        else:
            notary = _notary(config, stage, run, store, run.seed, progress)
            async with _executor(config, options, stage, run, tasks, directory, progress) as executor:
                lanes = Lanes(executor, store, run.tally, run.statuses, run.faults, todo, order, progress)
                with spared():
                    summary = await _sealed(lanes, notary, config.records.sign, began)
            if config.records.sigstore:
                await anyio.to_thread.run_sync(seal_keyless, directory)
        progress(ProgressEvent(Event.RUN_DONE, data=summary.as_json()))
    return summary


@asynccontextmanager
async def _executor(
    config: TesterConfig,
    options: RunOptions,
    stage: _Stage,
    run: Opened,
    tasks: CompiledTasks,
    directory: Path,
    progress: Progress,
) -> AsyncIterator[Executor]:
    """Who carries the attempts out: this process, or several that judge what was produced elsewhere."""
    plan, pack, seed = run.plan, tasks.pack, run.seed or b""
    identity = Identity(
        plan.run_id, plan.pack_digest, plan.config_digest, config.harness.type, stage.audit, options.unsafe
    )
    candidates, memory = CandidateStore(directory / "candidates"), Memory(memory_for_attempts())
    if options.processes is not None and stage.cluster is None:
        setup = Setup.of(
            pack,
            identity,
            config,
            sandbox=stage.sandbox,
            roots=stage.roots,
            candidates=candidates.directory,
            seed=seed,
            samples=None if stage.samples is None else stage.samples.digest,
        )
        number = max(1, min(options.processes, plan.total - len(run.done)))
        async with open_processes(setup, pack.entries, number, memory, progress) as processes:
            yield processes
        return
    judge = judge_of(config.judge, config.judge_key)
    policy, warm = config.verification, config.sandbox.warm
    producers, verifiers = options.workers or _default_workers(config), len(os.sched_getaffinity(0))
    async with open_court(stage.sandbox, candidates, seed, judge, policy, warm=warm) as court:
        context = AttemptContext(identity, stage.producer, progress, candidates, court)
        if stage.cluster is not None and plan.executor is not None:
            from securebench.cluster.remote import on_cluster
            from securebench.cluster.shipping import StoredContents

            stage.cluster.enrol_with(plan.run_id, kept_enrolment(directory, plan.executor))
            stage.cluster.contents = StoredContents(candidates, images=stage.cluster.contents.images)
            context = on_cluster(context, stage.cluster, court, config, stage.broker)
            producers = verifiers = config.executor.in_flight
            memory = Memory(_UNBOUNDED)
        yield LocalExecutor(
            context, compile_benchmark_pack(pack), memory, producers, verifiers, fault=lambda: _fault(stage)
        )


def _fault(stage: _Stage) -> SecureBenchError | None:
    return None if stage.cluster is None else stage.cluster.fault


def _notary(
    config: TesterConfig, stage: _Stage, run: Opened, store: RecordStore, seed: bytes, progress: Progress
) -> Notary:
    key = stage.key or _signing_key(config)
    if key.ephemeral and config.records.sign:
        _notice(progress, "sealed with a key made for this run only; `securebench keys new NAME` makes one of yours")
    return Notary(key, run.plan, run.begun_with, store, seed, run.statuses)


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
