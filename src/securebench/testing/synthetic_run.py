"""A run that never ran: a valid plan, records, evidence, summary and seal, as many as are wanted, in seconds.

For tests and benchmarks of what reads runs. Everything is written by the code that writes real runs, so `verify`
finds nothing wrong with it; what the records say is made up from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from securebench._canonical import digest_bytes
from securebench.candidates.store import CandidateStore
from securebench.records.keys import SigningKey, load_signing_key
from securebench.records.plan import BenchmarkName, Plan, PlannedTask, rfc3339, write_plan
from securebench.records.record import securebench_digest
from securebench.records.seal import Progress, seal_run
from securebench.records.seed import commit
from securebench.records.store import RecordStore
from securebench.records.summary import RunPlan, Tally, write_summary
from securebench.testing.synthetic_texts import FAMILIES, Family, candidate, controls, prose, transcript, verified

Record = dict[str, Any]
_SEED = b"synthetic"
_PACK = digest_bytes(b"a pack that is not there")
_CONFIG = digest_bytes(b"a tester file that is not there")
_AUDIT: dict[str, Any] = {"id": "synthetic", "time": 1.0, "level": "bubblewrap", "checks": 323, "passed": True}
_AT_ONCE = 512  # records that are synced together


LEVELS = (("easy", 1.25), ("medium", 1.0), ("hard", 0.6))
SUBJECTS = ("algebra", "parsing", "networks", "geometry")


@dataclass(frozen=True, slots=True)
class SyntheticRun:
    """What to make up. `skill` scales every family's; `transcripts` is the share of attempts with a trajectory,
    `faults` that of attempts on which the host failed; `alter` may change each record before its digests are taken."""

    run_id: str = "synthetic"
    tasks: int = 100
    attempts: int = 3
    seed: int = 1
    skill: float = 1.0
    transcripts: float = 0.1
    faults: float = 0.0
    lines: int = 12  # of a candidate
    started: float = 1_790_000_000.0
    alter: Callable[[Record], None] | None = None
    key: SigningKey | None = field(default=None, repr=False)


def write_run(directory: Path, wanted: SyntheticRun | None = None) -> Path:
    """Write it into a new directory, which is returned. Raises StoreError."""
    wanted = wanted or SyntheticRun()
    plan = _plan(wanted)
    tally, counts = Tally(RunPlan.of(plan, directory)), Counter[str]()
    with RecordStore(directory) as store, CandidateStore(directory / "candidates").batch() as evidence:
        write_plan(directory, plan)
        store.begin(plan.digest)
        batch: list[Record] = []
        for record in _records(wanted, plan, evidence.put_bytes):
            tally.add(record)
            counts[record["verification_status"]] += 1
            batch.append(record)
            if len(batch) == _AT_ONCE:
                anyio.run(_append, store, batch)
                batch = []
        anyio.run(_append, store, batch)
        write_summary(directory, tally.summary(wanted.tasks * 0.7))
        progress = Progress(
            run_id=plan.run_id,
            plan_digest=plan.digest,
            chain=store.state,
            counts=counts,
            seed=_SEED,
            started_at=plan.created_at,
            finished_at=rfc3339(wanted.started + wanted.tasks * 0.7),
            securebench=plan.securebench,
        )
        # As the engine does it: where the host failed, the run can go on and its seed stays a secret.
        key = wanted.key or load_signing_key(directory=directory / "none", environ={})
        seal_run(directory, progress, "interrupted" if counts["error"] else "complete", key)
    return directory


async def _append(store: RecordStore, records: list[Record]) -> None:
    async with anyio.create_task_group() as tasks:
        for record in records:
            tasks.start_soon(store.append, record)


def _plan(wanted: SyntheticRun) -> Plan:
    return Plan(
        run_id=wanted.run_id,
        created_at=rfc3339(wanted.started),
        benchmark=BenchmarkName(id="synthetic-suite", version="1"),
        pack_digest=_PACK,
        tasks=tuple(
            PlannedTask(id=id_, task_type=_family(n).name, digest=digest_bytes(id_.encode()), tags=_tags(n))
            for n, id_ in enumerate(map(_task_id, range(wanted.tasks)))
        ),
        attempts=wanted.attempts,
        pack_tasks=wanted.tasks,
        harness={"type": "chat", "tools": {}},
        limits={"sandbox": {"backend": "auto", "memory": None}, "budget": {"usd": 50.0}},
        config_digest=_CONFIG,
        securebench=securebench_digest(),
        seed_commitment=commit(_SEED),
        audit=_AUDIT,
        host={"backend": "bubblewrap", "kernel": "6.1.0", "machine": "x86_64", "python": "3.11.7", "cores": 8},
    )


def _task_id(number: int) -> str:
    return f"{_family(number).name.replace('_', '-')}/{SUBJECTS[number // 4 % 4]}-{number:05}"


def _family(number: int) -> Family:
    return FAMILIES[number % len(FAMILIES)]


def _tags(number: int) -> tuple[str, ...]:
    return LEVELS[number // 16 % 3][0], SUBJECTS[number // 4 % 4]


def _records(wanted: SyntheticRun, plan: Plan, put: Callable[[bytes], str]) -> Iterator[Record]:
    chance = random.Random(wanted.seed)  # noqa: S311 - nothing secret
    shared = chance.getrandbits(64)
    easiness = random.Random(shared).random  # noqa: S311
    ease = [easiness() for _ in plan.tasks]
    for attempt in range(1, wanted.attempts + 1):
        for number, task in enumerate(plan.tasks):
            family, level = _family(number), LEVELS[number // 16 % 3][1]
            share = min(0.97, family.skill * level * wanted.skill)
            # Attempts at one task agree more than attempts at two: a task is easy or hard for all of them.
            passed = chance.random() < 0.75 * (ease[number] < share) + 0.25 * share
            record = _record(wanted, plan, task, attempt, family, passed, chance)
            if chance.random() < wanted.transcripts:
                data = transcript(task.id, attempt, record, chance)
                record["evidence"] = {"trajectory.json": {"digest": put(data), "size": len(data)}}
            if wanted.alter is not None:
                wanted.alter(record)
            judged = record["candidate_patch"] or record["candidate_text"]
            if judged is not None:
                record["digests"]["candidate"] = digest_bytes(judged.encode("utf-8", "surrogatepass"))
            yield record


def _record(
    wanted: SyntheticRun,
    plan: Plan,
    task: PlannedTask,
    attempt: int,
    family: Family,
    passed: bool,
    chance: random.Random,
) -> Record:
    fault = chance.random() < wanted.faults
    reason = None if passed or fault else chance.choice(family.reasons)
    seconds = chance.lognormvariate(3.0, 0.7)
    tokens = int(chance.lognormvariate(7.6, 0.8))
    spent = {
        "requests": 1 + tokens // 3000,
        "input_tokens": tokens * 3,
        "cached_tokens": tokens,
        "output_tokens": tokens,
    }
    cost = round(tokens * 3 * 2.5e-6 + tokens * 1e-5, 6)
    text = None if fault or reason == "no_candidate" else candidate(task.id, family.name, wanted.lines, chance)
    is_patch = family.name == "repo_patch"
    return {
        "record_version": 1,
        "run_id": plan.run_id,
        "task_id": task.id,
        "attempt": attempt,
        "benchmark_id": plan.benchmark.id,
        "task_type": task.task_type,
        "verification_status": "error" if fault else "passed" if passed else "failed",
        "passed": None if fault else passed,
        "score": None if fault else float(passed),
        "assurance": None if fault else family.assurance,
        "audit": _AUDIT,
        "failure_reason": reason,
        "failure_message": "the provider did not answer" if fault else "" if passed else f"{reason} on {task.id}",
        "candidate_text": None if is_patch else text,
        "candidate_patch": text if is_patch else None,
        "candidate_workspace": None,
        "producer_stdout": prose(chance, 40),
        "producer_stderr": "",
        "producer_metadata": {
            "harness": "chat",
            "agent": {"model": "example-large", "version": "chat"},
            "outcome": "exited",
            "exit_code": 0,
            "wall_seconds": round(seconds, 3),
            "cpu_seconds": round(seconds / 9, 3),
            "peak_memory": chance.randrange(20, 900) * 2**20,
        },
        "verifier_stdout": "" if passed else prose(chance, 25),
        "verifier_stderr": "",
        "verifier_metadata": verified(family, passed, chance),
        "resource_summary": {
            "question": {"visibility": "public", "value": f"What does {task.id} ask? {prose(chance, 30)}"},
            "answer": {"visibility": "hidden", "value": "[redacted]"},
        },
        "hidden_values": {"answer": "[redacted]"},
        "controls": controls(family, reason),
        "usage": {
            "wall_seconds": 0.4,
            "cpu_seconds": 0.2,
            "peak_memory": 40 * 2**20,
            "models": spent | {"cost_usd": cost},
        },
        "cost": cost,
        "evidence": {},
        "repeats": [],
        "lost_starts": 0,
        "timings": {
            "started_at": wanted.started + chance.random() * wanted.tasks,
            "produce_seconds": round(seconds, 4),
            "verify_seconds": round(chance.random(), 4),
        },
        "digests": {
            "pack": plan.pack_digest,
            "row": task.digest,
            "candidate": None,
            "image": None,
            "harness": digest_bytes(b"harness"),
            "config": plan.config_digest,
            "securebench": plan.securebench,
        },
    }
