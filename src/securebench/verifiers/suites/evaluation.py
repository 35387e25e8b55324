"""From what a suite reported to what it means. Pure: the same reports give the same verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from securebench.errors import FailureReason
from securebench.verifiers.suites.ids import TestId
from securebench.verifiers.suites.observations import Report
from securebench.verifiers.suites.staging import Staged


@dataclass(frozen=True, slots=True)
class Control:
    """One thing run beside the tests: what had to come out, and whether it did."""

    name: str
    held: bool | None  # None: it was not run, and so shows nothing
    detail: str = ""

    def as_record(self) -> dict[str, object]:
        return {"name": self.name, "held": self.held, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class SuiteVerdict:
    """Per expected test what came of it, the controls, and the reason where it is not a pass."""

    outcomes: Mapping[TestId, str]
    controls: tuple[Control, ...]
    reason: FailureReason | None
    message: str = ""

    @property
    def passed(self) -> bool:
        return self.reason is None


def judge_suite(staged: Staged, report: Report, must_fail: Collection[str] | None = None) -> SuiteVerdict:
    """The verdict on one run of a suite. It passes only if

    1. the runner came to its own end and wrote nothing else,
    2. every expected test was reported once and passed, none skipped,
    3. every canary was reported and failed,
    4. for every expected test that passed, its decoys failed: those that fail on the reference solution, which are in
       `must_fail` with their parameters, or, where there is none to ask, each with at least one of its parameters.

    Where an expected test passes and 3 or 4 do not hold, that is tampering; where none does, there was nothing to gain
    and the code simply does not load."""
    outcomes = {test: _outcome(report, truth) for test, truth in staged.truths.items()}
    controls = (_canary(staged, report), _twins(staged, report, must_fail))
    if not report.ended:
        return SuiteVerdict(outcomes, controls, FailureReason.TESTS_FAILED, "the suite did not come to its end")
    broken = [control.name for control in controls if control.held is False]
    if broken and "passed" in outcomes.values():
        message = f"the suite reported what cannot be: {', '.join(broken)}"
        return SuiteVerdict(outcomes, controls, FailureReason.TAMPERING, message)
    failed = sum(outcome != "passed" for outcome in outcomes.values())
    if failed:
        message = f"{failed} of {len(outcomes)} tests did not pass"
        return SuiteVerdict(outcomes, controls, FailureReason.TESTS_FAILED, message)
    return SuiteVerdict(outcomes, controls, None)


def judge_sabotage(staged: Staged, report: Report, must_fail: Collection[TestId]) -> Control:
    """Whether the tests that fail on broken code failed on the broken candidate. A run that did not end holds: nothing
    was reported as passed that should not have been."""
    survivors = sum(report.passed(str(staged.truths[test])) for test in must_fail)
    return Control("sabotage", survivors == 0, f"{survivors} of {len(must_fail)} tests passed on broken code")


def decoys_that_fail(staged: Staged, report: Report) -> frozenset[str]:
    """What fails on the reference solution, of all decoys and their parameters: there the wrong value counts."""
    decoys = {_node(decoy) for some in staged.decoys.values() for decoy in some}
    return frozenset(
        node for node, outcome in report.outcomes.items() if outcome == "failed" and _function(node) in decoys
    )


def guessing(staged: Staged, wanted: Collection[TestId], must_fail: Collection[str] | None = None) -> float:
    """The chance of a forger who knows all of this and has to guess which variants of `wanted` are true. 1.0: nothing
    but the canary and sabotage stands in the way, and both can be seen through."""
    telling = None if must_fail is None else {_function(node) for node in must_fail}
    twinned = sum(
        any(telling is None or _node(decoy) in telling for decoy in staged.decoys.get(test, ())) for test in wanted
    )
    return float(0.5**twinned)


def _outcome(report: Report, test: TestId) -> str:
    if str(test) in report.repeated:
        return "reported_twice"
    return report.outcomes.get(str(test), "not_reported")


def _canary(staged: Staged, report: Report) -> Control:
    seen = [_outcome(report, canary) for canary in staged.canaries]
    others = sorted({outcome for outcome in seen if outcome != "failed"})
    detail = f"{len(seen)} tests that must fail were seen as {', '.join(others) or 'failed'}"
    return Control("canary", not others, detail)


def _twins(staged: Staged, report: Report, must_fail: Collection[str] | None) -> Control:
    """Decoys count where their test passed: where it failed for another reason, so may they."""
    reported: dict[str, list[str]] = {}
    for node in report.outcomes if must_fail is None else must_fail:
        reported.setdefault(_function(node), []).append(report.outcomes.get(node, "not_reported"))
    looked_at = wrong = 0
    for test, decoys in staged.decoys.items():
        if not report.passed(str(staged.truths[test])):
            continue
        for seen in [reported.get(_node(decoy), []) for decoy in decoys]:
            if must_fail is None:
                looked_at, wrong = looked_at + 1, wrong + ("failed" not in seen)
            else:
                looked_at, wrong = looked_at + len(seen), wrong + sum(outcome != "failed" for outcome in seen)
    detail = (
        f"{looked_at} decoys looked at, {wrong} did not fail; "
        f"{staged.twinned} of {staged.assertions} assertions have twins"
    )
    return Control("twins", wrong == 0, detail)


def _function(node: str) -> str:
    return node.partition("[")[0]


def _node(test: TestId) -> str:
    return _function(str(test))
