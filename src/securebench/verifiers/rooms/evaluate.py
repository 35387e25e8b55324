"""From what was observed to a verdict. Pure; the only path to a pass is at the end of `judge`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from securebench.errors import FailureReason
from securebench.verifiers.rooms.relay import Conversation

PASSED = "passed"


@dataclass(frozen=True, slots=True)
class RoomVerdict:
    """What one suite says about one candidate."""

    passed: bool
    reason: FailureReason | None
    rule: str


def judge(seen: Conversation) -> RoomVerdict:
    """The verdict on a conversation.

    1. A fault the host saw fails it, whatever the tests report; so does a report that never came.
    2. Code that does not load fails it; so does a worker the tests lost because its bytes were no answer.
    3. At least one test was planned, each planned test has exactly one outcome, there are no others, each is `passed`,
       and the candidate was asked at least once.
    """
    if seen.faults:
        return RoomVerdict(False, seen.faults[0].reason, seen.faults[0].detail)
    report = seen.report
    if report is None:
        return _failed(FailureReason.WRONG_ANSWER, "the tests gave no report")
    if report.get("losses") != 0:
        return _failed(FailureReason.PROTOCOL_VIOLATION, "the worker sent what is no answer")
    if report.get("loaded") is not True:
        return _failed(FailureReason.WRONG_ANSWER, "the candidate's code does not load")
    return _outcomes(report)


def _outcomes(report: Mapping[str, Any]) -> RoomVerdict:
    planned, outcomes = report.get("planned"), report.get("outcomes")
    if type(planned) is not int or planned < 1 or type(outcomes) is not list:
        return _failed(FailureReason.WRONG_ANSWER, "no test was run")
    if sorted(outcome[0] for outcome in outcomes) != list(range(planned)):
        return _failed(FailureReason.WRONG_ANSWER, "the tests that ran are not the tests that were planned")
    if any(outcome[1] != PASSED for outcome in outcomes):
        return _failed(FailureReason.WRONG_ANSWER, "a test did not pass")
    if not report.get("requests"):
        return _failed(FailureReason.WRONG_ANSWER, "the tests asked nothing of the candidate")
    return RoomVerdict(True, None, "every test passed")


def _failed(reason: FailureReason, rule: str) -> RoomVerdict:
    return RoomVerdict(False, reason, rule)


def described(seen: Conversation) -> dict[str, Any]:
    """What a record keeps of it: numbers and fixed words, no name and no value of a test."""
    report = seen.report or {}
    outcomes = sorted(report.get("outcomes", []), key=lambda outcome: outcome[0])
    return {
        "tests": {"planned": report.get("planned", 0), "passed": sum(item[1] == PASSED for item in outcomes)},
        "outcomes": [
            {"test": index, "outcome": outcome, "why": why, "seconds": round(seconds, 4)}
            for index, outcome, why, seconds in outcomes
        ],
        "faults": [{"reason": str(fault.reason), "detail": fault.detail} for fault in seen.faults],
        "workers": seen.workers,
        "messages": seen.messages,
        "bytes": seen.bytes,
        "seconds": round(seen.seconds, 4),
        "guarantees": sorted({str(name) for result in seen.results for name in result.guarantees}),
    }


def used(seen: Conversation) -> dict[str, Any]:
    """Processor time and memory of all rooms, as measured from outside."""
    usages = [result.usage for result in seen.results]
    cpu = [usage.cpu_seconds for usage in usages if usage.cpu_seconds is not None]
    memory = [usage.peak_memory for usage in usages if usage.peak_memory is not None]
    return {
        "wall_seconds": round(seen.seconds, 4),
        "cpu_seconds": round(sum(cpu), 4) if cpu else None,
        "peak_memory": max(memory) if memory else None,
    }
