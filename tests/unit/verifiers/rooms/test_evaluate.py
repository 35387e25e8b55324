"""The one path from observations to a pass, and everything beside it."""

from __future__ import annotations

from typing import Any

import pytest

from securebench.errors import FailureReason
from securebench.sandboxes.base import Guarantee, Outcome, Output, SandboxResult, Usage
from securebench.verifiers.rooms.evaluate import RoomVerdict, described, judge, used
from securebench.verifiers.rooms.relay import Conversation, Fault

GOOD: dict[str, Any] = {
    "pack": None,
    "loaded": True,
    "planned": 2,
    "outcomes": [[1, "passed", "", 0.1], [0, "passed", "", 0.1]],
    "requests": 3,
    "losses": 0,
    "stale": False,
}


@pytest.mark.parametrize("planned", [1, 2, 3])
def test_all_planned_tests_passed_is_a_pass(planned: int) -> None:
    outcomes = [[number, "passed", "", 0.1] for number in reversed(range(planned))]
    verdict = judge(Conversation(report=GOOD | {"planned": planned, "outcomes": outcomes}))
    assert verdict.passed is True
    assert verdict.reason is None


@pytest.mark.parametrize(
    "change",
    [
        {"planned": 0, "outcomes": []},
        {"planned": 3},
        {"planned": 1},
        {"planned": True, "outcomes": [[0, "passed", "", 0.1]]},
        {"planned": None},
        {"outcomes": None},
        {"outcomes": []},
        {"outcomes": [[0, "passed", "", 0.1]]},
        {"outcomes": [[0, "passed", "", 0.1], [0, "passed", "", 0.1]]},
        {"outcomes": [[0, "passed", "", 0.1], [1, "passed", "", 0.1], [1, "passed", "", 0.1]]},
        {"outcomes": [[0, "passed", "", 0.1], [2, "passed", "", 0.1]]},
        {"outcomes": [[0, "passed", "", 0.1], [1, "failed", "", 0.1]]},
        {"outcomes": [[0, "passed", "", 0.1], [1, "skipped", "", 0.1]]},
        {"outcomes": [[0, "passed", "", 0.1], [1, "PASSED", "", 0.1]]},
        {"loaded": False},
        {"loaded": 1},
        {"losses": 1},
        {"losses": None},
        {"requests": 0},
    ],
    ids=repr,
)
def test_anything_else_is_not(change: dict[str, Any]) -> None:
    verdict = judge(Conversation(report=GOOD | change))
    assert verdict.passed is False
    assert isinstance(verdict.reason, FailureReason)
    assert verdict.rule


@pytest.mark.parametrize("key", sorted(GOOD.keys() - {"pack", "stale"}))
def test_a_report_with_a_part_missing_is_not(key: str) -> None:
    assert not judge(Conversation(report={name: value for name, value in GOOD.items() if name != key})).passed


def test_no_report_is_not() -> None:
    assert judge(Conversation()) == RoomVerdict(False, FailureReason.WRONG_ANSWER, "the tests gave no report")


@pytest.mark.parametrize("reason", list(FailureReason))
def test_a_fault_the_host_saw_outweighs_every_report(reason: FailureReason) -> None:
    verdict = judge(Conversation(report=GOOD, faults=[Fault(reason, "seen")]))
    assert (verdict.passed, verdict.reason, verdict.rule) == (False, reason, "seen")


def test_a_record_keeps_numbers_in_the_order_of_the_tests() -> None:
    kept = described(Conversation(report=GOOD, workers=2))
    assert kept["tests"] == {"planned": 2, "passed": 2}
    assert [outcome["test"] for outcome in kept["outcomes"]] == [0, 1]
    assert described(Conversation())["tests"] == {"planned": 0, "passed": 0}


def _result(usage: Usage) -> SandboxResult:
    nothing = Output(b"", 0)
    return SandboxResult(Outcome.EXITED, 0, None, nothing, nothing, usage, frozenset({Guarantee.NET}), {})


def test_a_record_keeps_what_the_host_saw() -> None:
    seen = Conversation(
        report=GOOD,
        faults=[Fault(FailureReason.WORKER_TIMEOUT, "too slow")],
        seconds=1.23456,
        results=[_result(Usage(1.0, 0.5, 100)), _result(Usage(1.0, 0.25, 300)), _result(Usage(1.0))],
    )
    kept = described(seen)
    assert kept["faults"] == [{"reason": "worker_timeout", "detail": "too slow"}]
    assert (kept["seconds"], kept["guarantees"]) == (1.2346, ["net"])
    assert used(seen) == {"wall_seconds": 1.2346, "cpu_seconds": 0.75, "peak_memory": 300}
    assert used(Conversation()) == {"wall_seconds": 0.0, "cpu_seconds": None, "peak_memory": None}
