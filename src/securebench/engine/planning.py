"""From a checked configuration and pack to the plan of a run."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from securebench._canonical import digest_bytes
from securebench.benchmark_compiler import CompiledTasks
from securebench.harnesses.sample_file import SampleFile
from securebench.records.plan import BenchmarkName, Filters, Plan, PlannedTask, rfc3339
from securebench.records.record import securebench_digest
from securebench.records.seed import commit
from securebench.tester_config import TesterConfig


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What was found, checked and installed before anything runs, as far as a plan states it."""

    backend: str | None = None
    audit: Mapping[str, Any] | None = None
    unsafe: bool = False
    images: Mapping[str, str] | None = None  # reference → digest
    tools: Mapping[str, str] | None = None  # an agent's tool@version → digest of its files
    executor: Mapping[str, Any] | None = None  # the cluster that carries attempts out


def make_plan(
    config: TesterConfig,
    tasks: CompiledTasks,
    filters: Filters,
    found: Circumstances,
    seed: bytes,
    now: float,
    samples: SampleFile | None = None,
) -> Plan:
    """Every task × attempt that will run, and everything that decides how."""
    pack = tasks.pack
    harness: dict[str, Any] = {"type": config.harness.type, "tools": dict(found.tools or {})}
    if samples is not None:
        without = sum(not samples.count(entry.id) for entry in tasks.entries)
        harness["samples"] = {"digest": samples.digest, "samples": len(samples), "tasks_without": without}
    return Plan(
        run_id=config.run_id,
        created_at=rfc3339(now),
        benchmark=BenchmarkName(id=pack.manifest.id, version=str(pack.manifest.version)),
        pack_digest=pack.digest,
        tasks=tuple(
            PlannedTask(
                id=entry.id,
                task_type=entry.family,
                digest=pack.row_digest(entry),
                image=entry.image,
                tags=entry.tags,
                attempts=None if samples is None else _unless_one(samples.count(entry.id)),
            )
            for entry in tasks.entries
        ),
        attempts=config.run.attempts,
        filters=filters,
        pack_tasks=len(pack),
        harness=harness,
        images=dict(found.images or {}),
        limits={
            "sandbox": config.sandbox.model_dump(mode="json", exclude={"pull", "warm"}),
            "budget": config.budget.model_dump(mode="json"),
            "egress": config.egress.model_dump(mode="json"),
        },
        config_digest=config.digest(),
        prompt_digest=None if config.prompt is None else digest_bytes(config.prompt),
        securebench=securebench_digest(),
        seed_commitment=commit(seed),
        audit=None if found.audit is None else dict(found.audit),
        unsafe=found.unsafe,
        host={
            "backend": found.backend,
            "kernel": platform.release(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)),
        },
        executor=None if found.executor is None else dict(found.executor),
    )


def _unless_one(count: int) -> int | None:
    """A task without a sample is still attempted once, and fails."""
    return count if count > 1 else None


def secret_seed(config: TesterConfig) -> bytes:
    """Decides what no candidate may guess. A run that sets `run.seed` can be repeated; it is then no secret to those
    who read its tester file, which no sandbox can."""
    if config.run.seed is None:
        return secrets.token_bytes(32)
    return hashlib.sha256(f"securebench seed {config.run.seed}".encode()).digest()
