"""A record that the plan has no place for is found, also where tasks have attempts of their own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.records.test_plan import DIGEST, plan

from securebench.evidence.lines import _against_plan
from securebench.records.plan import Plan
from securebench.records.shape import RecordShape, checked_record

SAMPLES = {"digest": "sha256:mine", "samples": 4, "tasks_without": 0}


def uneven() -> Plan:
    a, b = plan().tasks
    return plan(
        tasks=(a.model_copy(update={"attempts": 3}), b), attempts=1, harness={"type": "samples", "samples": SAMPLES}
    )


def record(task: str = "a", attempt: int = 1, samples: str | None = "sha256:mine", **changes: Any) -> RecordShape:
    value = {
        "record_version": 1,
        "run_id": "r1",
        "task_id": task,
        "attempt": attempt,
        "benchmark_id": "b",
        "task_type": "short_answer" if task == "a" else "x",
        "verification_status": "passed",
        "passed": True,
        "score": 1.0,
        "failure_reason": None,
        "assurance": "pure",
        "candidate_text": "x",
        "candidate_patch": None,
        "candidate_workspace": None,
        "producer_metadata": {} if samples is None else {"samples": samples},
        "evidence": {},
        "digests": {
            "pack": DIGEST,
            "config": DIGEST,
            "row": DIGEST if task == "a" else "d",
            "securebench": "0.1.0 sha256:0",
        },
        "previous": "sha256:0",
    }
    return checked_record(value | changes, "here")


@pytest.mark.parametrize(("task", "attempt"), [("a", 1), ("a", 3), ("ü", 1)])
def test_planned_attempts_are_fine(task: str, attempt: int) -> None:
    assert list(_against_plan(record(task, attempt), uneven())) == []
    assert list(_against_plan(record(task, attempt, samples=None), uneven())) == []  # a fault, before any candidate


@pytest.mark.parametrize(("task", "attempt", "planned"), [("a", 4, 3), ("ü", 2, 1)])
def test_attempt_beyond_those_of_its_task_is_found(task: str, attempt: int, planned: int) -> None:
    [problem] = _against_plan(record(task, attempt), uneven())
    assert problem == f"task '{task}' attempt {attempt} is not in the plan, which has {planned} attempts of it"


def test_candidate_from_another_file_is_found() -> None:
    [problem] = _against_plan(record(samples="sha256:other"), uneven())
    assert "from the samples 'sha256:other', which are not those of the plan" in problem
    [problem] = _against_plan(record(), plan())
    assert "not those of the plan" in problem
