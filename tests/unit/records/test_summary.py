"""What a run came to: every number from the records alone, in any order."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from securebench._statistics.clusters import METHOD
from securebench._statistics.intervals import wilson
from securebench.records.plan import BenchmarkName, Filters, Plan, PlannedTask
from securebench.records.summary import VOLATILE, RunPlan, Tally, summarize

DIGEST = "sha256:" + "0" * 64


def a_plan(tasks: int, attempts: int = 1, filters: Filters | None = None, pack_tasks: int | None = None) -> Plan:
    return Plan(
        run_id="r",
        created_at="2026-01-01T00:00:00Z",
        benchmark=BenchmarkName(id="b", version="1"),
        pack_digest=DIGEST,
        tasks=tuple(PlannedTask(id=f"t{number}", task_type="short_answer", digest="d") for number in range(tasks)),
        attempts=attempts,
        filters=filters or Filters(),
        pack_tasks=pack_tasks,
        harness={"type": "command"},
        config_digest=DIGEST,
        securebench="s",
        seed_commitment="0" * 64,
    )


def a_record(task: int = 0, attempt: int = 1, status: str = "passed", **more: Any) -> dict[str, Any]:
    judged = status in {"passed", "failed"}
    record = {
        "task_id": f"t{task}",
        "attempt": attempt,
        "task_type": "short_answer",
        "verification_status": status,
        "passed": status == "passed" if judged else None,
        "score": float(status == "passed") if judged else None,
        "assurance": "pure" if judged else None,
        "failure_reason": "wrong_answer" if status == "failed" else None,
    }
    return record | more


def models(tokens: int, cost: float | None) -> dict[str, Any]:
    used = {"requests": 1, "input_tokens": tokens, "cached_tokens": 1, "output_tokens": 2, "cost_usd": cost}
    return {"usage": {"models": used}}


def test_every_attempt_is_counted_once_in_every_way() -> None:
    records = [
        a_record(0, **models(10, 0.5), timings={"produce_seconds": 1.5, "verify_seconds": 0.25}),
        a_record(1, status="failed", **models(20, None), repeats=[{"phase": "produce"}], lost_starts=2),
        a_record(2, status="pending"),
        a_record(3, status="error", repeats=[{}, {}]),
    ]
    summary = summarize(a_plan(5), records)
    assert (summary.planned, summary.total, summary.verified, summary.score) == (5, 4, 2, 0.5)
    assert summary.statuses == {"passed": 1, "failed": 1, "pending": 1, "error": 1}
    assert (summary.failure_reasons, summary.assurance) == ({"wrong_answer": 1}, {"pure": 2})
    assert summary.usage == {"requests": 2, "input_tokens": 30, "cached_tokens": 2, "output_tokens": 4}
    assert (summary.cost_usd, summary.cost_unknown) == (0.5, 1)
    assert (summary.retries, summary.lost_starts) == (3, 2)
    assert (summary.produce_seconds, summary.verify_seconds) == (1.5, 0.25)
    assert (summary.verification_status, summary.filtered, summary.filters) == ("partial", None, {})


def test_score_comes_with_its_interval() -> None:
    summary = summarize(a_plan(164), [a_record(n, status="passed" if n < 103 else "failed") for n in range(164)])
    expected = wilson(103, 164)
    assert summary.interval == {
        "low": pytest.approx(expected.low),
        "high": pytest.approx(expected.high),
        "confidence": 0.95,
        "method": METHOD,
    }
    assert summary.pass_at_k == {}
    assert summary.mean_task_variance is None


def test_several_attempts_give_pass_at_k_and_the_spread_within_tasks() -> None:
    statuses = [["passed", "failed"], ["failed", "failed"], ["passed", "passed"], ["passed", "error"]]
    records = [a_record(t, a + 1, s) for t, attempts in enumerate(statuses) for a, s in enumerate(attempts)]
    summary = summarize(a_plan(4, attempts=2), records)
    assert summary.pass_at_k == {"1": pytest.approx((0.5 + 0 + 1 + 1) / 4), "2": pytest.approx(2 / 3)}
    assert summary.mean_task_variance == pytest.approx(0.5 / 3)
    assert (summary.tasks, summary.attempts) == (4, 2)


def test_order_of_the_records_does_not_matter() -> None:
    source = random.Random(1)
    records = [
        a_record(n // 3, n % 3 + 1, source.choice(["passed", "failed"]), score=source.random(), **models(n, n / 7))
        for n in range(90)
    ]
    plan = a_plan(30, attempts=3)
    first = summarize(plan, records).as_json()
    source.shuffle(records)
    second = summarize(plan, records).as_json()
    assert _close(first, second)


def _close(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return list(first) == list(second) and all(_close(first[key], second[key]) for key in first)
    return bool(first == pytest.approx(second)) if isinstance(first, float) else bool(first == second)


@pytest.mark.parametrize(
    "filters, words",
    [
        (Filters(limit=2), "2 of 164 tasks (limit 2)"),
        (Filters(tasks=("t*",), tags=("easy",), limit=2), "2 of 164 tasks (task t*, tag easy, limit 2)"),
        (
            Filters(tasks=tuple(f"t{n}" for n in range(9))),
            "2 of 164 tasks (task t0, task t1, task t2, task t3, task t4, …)",
        ),
    ],
)
def test_filtered_run_says_so(filters: Filters, words: str) -> None:
    summary = summarize(a_plan(2, filters=filters, pack_tasks=164), [])
    assert summary.filtered == words
    assert summary.filters == filters.as_json() | {"pack_tasks": 164}
    assert summary.limit == filters.limit


def test_only_the_volatile_fields_depend_on_where_and_how_long() -> None:
    plan, records = a_plan(2), [a_record(0), a_record(1)]
    tally = Tally(RunPlan.of(plan, Path("/elsewhere")))
    for record in records:
        tally.add(record)
    here, there = summarize(plan, records).as_json(), tally.summary(12.5).as_json()
    assert {name for name in here if here[name] != there[name]} == VOLATILE


def test_seed_fields_are_all_there() -> None:
    fields = {
        "run_id",
        "output_path",
        "total",
        "verified",
        "passed",
        "failed",
        "pending",
        "score_sum",
        "verification_status",
    }
    assert fields <= summarize(a_plan(1), []).as_json().keys()
    assert summarize(a_plan(0), []).verification_status == "complete"


def test_strange_values_in_unchecked_fields_do_no_harm() -> None:
    record = a_record(usage="much", timings=None, repeats=3, lost_starts="2")
    assert summarize(a_plan(1), [record, a_record(usage={"models": {"requests": True, "cost_usd": "x"}})]).retries == 0


@pytest.mark.parametrize("attempts, limit", [(1, 4_000_000), (4, 4_000_000)])
def test_memory_is_small_whatever_the_number_of_records(attempts: int, limit: int) -> None:
    plan = RunPlan("r", Path(), "b", "command", 10_000 * attempts, None, tasks=10_000)
    tally = Tally(plan)
    tracemalloc.start()
    for number in range(10_000):
        for attempt in range(attempts):
            tally.add(a_record(number, attempt + 1, "passed" if number % 3 else "failed"))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < limit
    assert tally.summary(1.0).passed == 6666 * attempts
