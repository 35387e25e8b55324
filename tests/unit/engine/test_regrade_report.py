"""What a regrade counts as the same, as better or worse, and as fine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from securebench.engine.regrade_report import Category, Direction, Regraded, RegradeReport, Totals, Verdict
from securebench.engine.stored_run import SeedOrigin
from securebench.records.plan import BenchmarkName

PASSED = Verdict("passed", 1.0, "pure", None)
FAILED = Verdict("failed", 0.0, "pure", "wrong_answer")
TIMED_OUT = Verdict("failed", 0.0, "isolated", "worker_timeout")
FAULT = Verdict("error", None, None, None)


def attempt(category: Category, old: Verdict, new: Verdict | None = None) -> Regraded:
    return Regraded("t", 1, "short_answer", 1, category, old, new)


def report(*attempts: Regraded, **more: Any) -> RegradeReport:
    values: dict[str, Any] = {
        "run": Path("run"),
        "run_id": "r",
        "benchmark": BenchmarkName(id="b", version="1"),
        "sealed": "complete",
        "problems": (),
        "pack": Path("pack"),
        "pack_digest": "sha256:a",
        "planned_pack_digest": "sha256:a",
        "since": (),
        "seed": SeedOrigin.REVEALED,
        "only": (),
        "not_recorded": 0,
        "attempts": attempts,
    }
    return RegradeReport(**values | more)


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        (FAILED, PASSED, Direction.IMPROVED),
        (PASSED, FAILED, Direction.WORSENED),
        (FAILED, TIMED_OUT, Direction.LEVEL),
        (FAULT, PASSED, Direction.IMPROVED),
        (FAULT, FAILED, Direction.LEVEL),
    ],
)
def test_direction_of_a_change(old: Verdict, new: Verdict, direction: Direction) -> None:
    assert attempt(Category.CHANGED, old, new).direction is direction


def test_what_is_said_about_a_verdict_is_not_the_verdict() -> None:
    assert Verdict("failed", 0.0, "pure", "wrong_answer", "then") == Verdict(
        "failed", 0.0, "pure", "wrong_answer", "now"
    )


def test_failed_production_counts_as_it_did_and_what_has_no_verdict_does_not_count() -> None:
    crashed = Verdict("failed", 0.0, None, "producer_failed")
    done = report(
        attempt(Category.SAME, PASSED, PASSED),
        attempt(Category.NOT_JUDGED_BEFORE, crashed),
        attempt(Category.UNVERIFIABLE, PASSED),
        attempt(Category.ERROR, FAILED),
    )
    assert done.old == Totals(4, 2, 0.5)
    assert done.new == Totals(2, 1, 0.5)
    assert report().new == Totals(0, 0, None)


@pytest.mark.parametrize(
    ("done", "ok"),
    [
        (report(attempt(Category.SAME, PASSED, PASSED), attempt(Category.NOT_JUDGED_BEFORE, FAILED)), True),
        (report(attempt(Category.CHANGED, PASSED, FAILED)), False),
        (report(attempt(Category.UNVERIFIABLE, PASSED)), False),
        (report(attempt(Category.ERROR, PASSED)), False),
        (report(attempt(Category.SAME, PASSED, PASSED), problems=("plan.json: changed",)), False),
        (report(interrupted=True), False),
    ],
)
def test_fine_is_only_what_came_out_as_recorded(done: RegradeReport, ok: bool) -> None:
    assert done.ok is ok
    assert done.as_json()["ok"] is ok


def test_counts_name_every_category_and_direction() -> None:
    counts = report(attempt(Category.CHANGED, FAILED, PASSED)).counts
    assert counts.keys() == {str(name) for name in (*Category, *Direction)}
    assert (counts["changed"], counts["improved"], counts["worsened"], counts["same"]) == (1, 1, 0, 0)
