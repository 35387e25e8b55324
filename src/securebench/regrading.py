"""`regrade_run`: the story of verifying a run's stored candidates again, readable top to bottom."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import anyio
import anyio.to_thread

from securebench._schema import suggest
from securebench._tasks import one_error
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack, RowIndex, load_benchmark_pack
from securebench.engine.admission import Memory, memory_for_attempts
from securebench.engine.court import open_court
from securebench.engine.judges import judge_of
from securebench.engine.preflight import check_places_out_of_sight
from securebench.engine.regrade import Regrading
from securebench.engine.regrade_report import Regraded, RegradeReport
from securebench.engine.since import Since
from securebench.engine.stored_run import Key, StoredRun
from securebench.errors import ConfigError
from securebench.evidence.verify import Verification, verify_run
from securebench.preparation import executed_roots, prepare_sandbox
from securebench.sandboxes.base import Sandbox
from securebench.tester_config import SandboxSection, TesterConfig


@dataclass(frozen=True, slots=True)
class RegradeOptions:
    """What the caller decides. `config` brings the verification policy, the sandbox and the judge; without one the
    defaults hold, and no model judges."""

    manifest: Path
    tasks: Path
    config: TesterConfig | None = None
    only: tuple[str, ...] = ()  # tasks
    workers: int | None = None
    trusted: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # ids of keys to their names


@dataclass(frozen=True, slots=True)
class Listener:
    """Is told how it goes: a sentence, how many attempts there are, and each that is done."""

    notice: Callable[[str], None] = lambda _: None
    begin: Callable[[int], None] = lambda _: None
    done: Callable[[Regraded], None] = lambda _: None


def regrade_run(directory: Path, options: RegradeOptions, listener: Listener | None = None) -> RegradeReport:
    """Verify a run's candidates again and compare. Nothing is written beneath `directory`.

    Raises ConfigError, SandboxUnavailable, AuditFailed, IntegrityError or StoreError before anything is judged;
    afterwards whatever happens is in the report. An interrupt ends it early, which the report says."""
    return anyio.run(_regrade, directory, options, listener or Listener())


async def _regrade(directory: Path, options: RegradeOptions, listener: Listener) -> RegradeReport:
    pack = load_benchmark_pack(options.manifest, options.tasks)
    run = await anyio.to_thread.run_sync(StoredRun, directory)
    keys = _selected(run, options.only)
    listener.notice("checking what is stored")
    checked = await anyio.to_thread.run_sync(verify_run, directory, options.trusted)
    tasks = compile_benchmark_pack(pack)
    wanted = {task for task, _ in keys}
    entries = [entry for entry in pack.entries if entry.id in wanted]
    sandbox, images = await _prepare(run, pack, entries, options, listener)
    seed, origin = run.seed()
    config = options.config
    since = Since(run.plan, pack, origin, None if config is None else config.digest(), images)
    listener.begin(len(keys))
    judge = None if config is None else judge_of(config.judge, config.judge_key)
    policy = None if config is None else config.verification
    warm = config is None or config.sandbox.warm
    async with one_error(), open_court(sandbox, run.candidates, seed, judge, policy, warm=warm) as court:
        regrading = Regrading(
            run=run,
            tasks=tasks,
            court=court,
            since=since,
            memory=Memory(memory_for_attempts()),
            workers=options.workers or len(os.sched_getaffinity(0)),
            on_done=listener.done,
        )
        completed = await regrading.judge_all(keys)
    planned = [key for key in run.plan.attempt_keys() if not options.only or key[0] in options.only]
    return RegradeReport(
        run=directory,
        run_id=run.plan.run_id,
        benchmark=run.plan.benchmark,
        sealed=str(checked.facts.get("status", "unsealed")),
        problems=tuple(_problems(checked)),
        pack=options.manifest.parent,
        pack_digest=pack.digest,
        planned_pack_digest=run.plan.pack_digest,
        since=tuple(since.lines()),
        seed=origin,
        only=options.only,
        not_recorded=len(planned) - len(keys),
        attempts=tuple(regrading.done),
        interrupted=not completed,
    )


def _selected(run: StoredRun, only: Sequence[str]) -> list[Key]:
    """The attempts to judge. Raises ConfigError for a task the run does not have."""
    for name in only:
        if name not in run.plan.by_id:
            raise ConfigError(f"the run has no task {name!r}{suggest(name, run.plan.by_id)}")
    return [key for key in run.recorded() if not only or key[0] in only]


async def _prepare(
    run: StoredRun, pack: BenchmarkPack, entries: Sequence[RowIndex], options: RegradeOptions, listener: Listener
) -> tuple[Sandbox | None, Mapping[str, str]]:
    """The sandbox as a run would choose and audit it, and which images it has. Raises ConfigError,
    SandboxUnavailable, AuditFailed."""
    roots = executed_roots(entries)
    if not roots:
        return None, {}
    check_places_out_of_sight({"pack": (pack.manifest_path, pack.tasks_path), "run": (run.directory,)}, roots)
    section = SandboxSection() if options.config is None else options.config.sandbox
    ready = await prepare_sandbox(section, roots, listener.notice)
    listener.notice(ready.notices[0])
    return ready.sandbox, ready.images


def _problems(checked: Verification) -> list[str]:
    """What is not as it was written. A run that is not sealed may still go on, so what its files lack is no problem."""
    sealed = checked.facts.get("status", "unsealed") != "unsealed"
    found = [str(finding) for finding in checked.errors if sealed or finding.line]
    return [*found, *([f"… and {checked.unlisted} more"] if checked.unlisted else [])]
