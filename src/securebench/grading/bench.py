"""What a grader judges on: the sandbox made ready, and an executor on it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from securebench._canonical import digest_value
from securebench._leftovers import staging_directory
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack
from securebench.candidates.store import CandidateStore
from securebench.engine.admission import Memory, memory_for_attempts
from securebench.engine.attempt import AttemptContext
from securebench.engine.court import open_court
from securebench.engine.executors.base import Executor
from securebench.engine.executors.local import LocalExecutor
from securebench.engine.executors.processes import open_processes
from securebench.engine.executors.setup import Setup
from securebench.engine.judges import judge_of
from securebench.engine.preflight import check_places_out_of_sight
from securebench.harnesses.samples import SamplesProducer
from securebench.preparation import Prepared, executed_roots, prepare_sandbox
from securebench.progress import silent
from securebench.records.record import Identity
from securebench.tester_config import SandboxSection, TesterConfig


@asynccontextmanager
async def open_bench(
    pack: BenchmarkPack, config: TesterConfig | None, processes: int, seed: bytes, *, unsafe: bool = False
) -> AsyncIterator[Executor]:
    """An executor for all tasks of the pack. Raises ConfigError, SandboxUnavailable, AuditFailed."""
    ready = await _ready(pack, config, unsafe)
    digest = digest_value({}) if config is None else config.digest()
    identity = Identity("grading", pack.digest, digest, "samples", ready.audit, unsafe)
    memory = Memory(memory_for_attempts())
    with staging_directory() as private:
        private.chmod(0o700)
        candidates = CandidateStore(private / "candidates")
        if processes:
            setup = Setup.of(
                pack,
                identity,
                config,
                sandbox=ready.sandbox,
                roots=ready.roots,
                candidates=candidates.directory,
                seed=seed,
            )
            async with open_processes(setup, pack.entries, processes, memory) as executor:
                yield executor
            return
        judge, policy = (
            (None, None) if config is None else (judge_of(config.judge, config.judge_key), config.verification)
        )
        warm = config is None or config.sandbox.warm
        async with open_court(ready.sandbox, candidates, seed, judge, policy, warm=warm) as court:
            context = AttemptContext(identity, SamplesProducer(), silent, candidates, court)
            cores = len(os.sched_getaffinity(0))
            yield LocalExecutor(context, compile_benchmark_pack(pack), memory, producers=cores, verifiers=cores)


async def _ready(pack: BenchmarkPack, config: TesterConfig | None, unsafe: bool) -> Prepared:
    roots = executed_roots(pack.entries)
    if not roots:
        return Prepared()
    check_places_out_of_sight({"pack": (pack.manifest_path, pack.tasks_path)}, roots)
    section = SandboxSection() if config is None else config.sandbox
    return await prepare_sandbox(section, roots, lambda _: None, unsafe=unsafe)
