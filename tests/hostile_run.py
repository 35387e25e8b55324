"""A sealed run in which every text that a stranger can choose is one of the injection corpus: names of tasks, families,
tags, benchmark and harness in the plan, and everything in the records. Written by the code that writes real runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from tests.injection import SHORT

from securebench._canonical import digest_bytes
from securebench.records.keys import load_signing_key
from securebench.records.plan import BenchmarkName, Plan, PlannedTask, write_plan
from securebench.records.record import securebench_digest
from securebench.records.seal import Progress, seal_run
from securebench.records.seed import commit
from securebench.records.store import RecordStore
from securebench.records.summary import RunPlan, Tally, write_summary

SEED = b"hostile"
TEXTS: Mapping[str, str] = {
    name: text for name, text in SHORT.items() if not any("\ud800" <= char <= "\udfff" for char in text)
}
"""A plan and a record hold no lone surrogates: they are UTF-8."""


def hostile_run(directory: Path, run_id: str = "hostile", *, better: bool = False) -> Path:
    """One task for each text. Passed, failed, pending and error take turns; `better` passes what failed."""
    texts = list(TEXTS.values())
    plan = Plan(
        run_id=run_id,
        created_at="2026-01-01T00:00:00Z",
        benchmark=BenchmarkName(id=TEXTS["script"], version=TEXTS["formula"]),
        pack_digest=digest_bytes(b"pack"),
        tasks=tuple(_task(texts, number) for number in range(len(texts))),
        attempts=1,
        pack_tasks=len(texts),
        harness={"type": TEXTS["markdown link"], "tools": {TEXTS["cdata"]: TEXTS["cdata"]}},
        images={TEXTS["ansi erase"]: TEXTS["ansi erase"]},
        limits={TEXTS["jinja value"]: TEXTS["formula at"] if better else TEXTS["formula plus"]},
        config_digest=digest_bytes(b"config"),
        securebench=securebench_digest(),
        seed_commitment=commit(SEED),
        host={"backend": TEXTS["workflow command"]},
    )
    anyio.run(_write, directory, plan, better)
    return directory


async def _write(directory: Path, plan: Plan, better: bool) -> None:
    tally, counts = Tally(RunPlan.of(plan, directory)), Counter[str]()
    with RecordStore(directory) as store:
        write_plan(directory, plan)
        store.begin(plan.digest)
        for number, task in enumerate(plan.tasks):
            record = _record(plan, task, ("passed", "failed", "pending", "error")[number % 4], better)
            tally.add(record)
            counts[record["verification_status"]] += 1
            await store.append(record)
        write_summary(directory, tally.summary(1.0))
        progress = Progress(
            plan.run_id, plan.digest, store.state, counts, SEED, plan.created_at, plan.created_at, plan.securebench
        )
        seal_run(directory, progress, "interrupted", load_signing_key(directory=directory / "none", environ={}))


def _record(plan: Plan, task: PlannedTask, status: str, better: bool) -> dict[str, Any]:
    text = task.id
    status = "passed" if better and status == "failed" else status
    judged = status in {"passed", "failed"}
    return {
        "record_version": 1,
        "run_id": plan.run_id,
        "task_id": task.id,
        "attempt": 1,
        "benchmark_id": plan.benchmark.id,
        "task_type": task.task_type,
        "verification_status": status,
        "passed": status == "passed" if judged else None,
        "score": float(status == "passed") if judged else None,
        "assurance": text if judged else None,
        "audit": None,
        "failure_reason": text if status == "failed" else None,
        "failure_message": "" if status == "passed" else text,
        "candidate_text": text,
        "candidate_patch": None,
        "candidate_workspace": None,
        "producer_stdout": text,
        "producer_stderr": text,
        "producer_metadata": {"agent": {"model": text}, text: text},
        "verifier_stdout": text,
        "verifier_stderr": text,
        "verifier_metadata": {text: text},
        "resource_summary": {text: {"visibility": "public", "value": text}},
        "hidden_values": {},
        "controls": [{"name": text, "held": True, "detail": text}],
        "usage": {"models": {"requests": 1, "input_tokens": 10**400, "output_tokens": -1, "cost_usd": "x", text: text}},
        "cost": None,
        "evidence": {},
        "repeats": [],
        "lost_starts": True,
        "timings": {"started_at": 2**52, "produce_seconds": 1e300, "verify_seconds": text},
        "digests": {
            "pack": plan.pack_digest,
            "row": task.digest,
            "candidate": digest_bytes(text.encode()),
            "image": text,
            "harness": text,
            "config": plan.config_digest,
            "securebench": plan.securebench,
        },
    }


def _task(texts: list[str], number: int) -> PlannedTask:
    text = texts[number]
    tags = (_next(texts, number, 2), "easy")
    return PlannedTask(id=text, task_type=_next(texts, number, 1), digest=digest_bytes(text.encode()), tags=tags)


def _next(texts: list[str], place: int, step: int) -> str:
    return texts[(place + step) % len(texts)]
