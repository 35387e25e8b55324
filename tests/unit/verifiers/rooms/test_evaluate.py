"""The one path from observations to a pass, and everything beside it."""

from __future__ import annotations

from typing import Any

import pytest

from securebench.errors import FailureReason
from securebench.verifiers.rooms.evaluate import described, judge, used
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


def test_all_planned_tests_passed_is_a_pass() -> None:
    verdict = judge(Conversation(report=GOOD))
    assert verdict.passed
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
    assert not verdict.passed
    assert verdict.reason is not None


@pytest.mark.parametrize("key", sorted(GOOD.keys() - {"pack", "stale"}))
def test_a_report_with_a_part_missing_is_not(key: str) -> None:
    assert not judge(Conversation(report={name: value for name, value in GOOD.items() if name != key})).passed


def test_no_report_is_not() -> None:
    assert not judge(Conversation()).passed


@pytest.mark.parametrize("reason", list(FailureReason))
def test_a_fault_the_host_saw_outweighs_every_report(reason: FailureReason) -> None:
    verdict = judge(Conversation(report=GOOD, faults=[Fault(reason, "seen")]))
    assert (verdict.passed, verdict.reason, verdict.rule) == (False, reason, "seen")


def test_a_record_keeps_numbers_in_the_order_of_the_tests() -> None:
    kept = described(Conversation(report=GOOD, workers=2))
    assert kept["tests"] == {"planned": 2, "passed": 2}
    assert [outcome["test"] for outcome in kept["outcomes"]] == [0, 1]
    assert used(Conversation())["cpu_seconds"] is None
