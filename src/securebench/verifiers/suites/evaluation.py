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
    held: bool
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


def judge_suite(staged: Staged, report: Report, ignored: Collection[TestId] = ()) -> SuiteVerdict:
    """The verdict on one run of a suite. It passes only if

    1. the runner came to its own end and wrote nothing else,
    2. every expected test was reported once and passed, none skipped,
    3. the canary was reported and failed,
    4. every decoy of every expected test was reported and failed, but for those in `ignored`, which pass on the
       reference solution too and so tell nothing.

    Where an expected test passes and 3 or 4 do not hold, that is tampering; where none does, there was nothing to gain
    and the code simply does not load."""
    outcomes = {test: _outcome(report, truth) for test, truth in staged.truths.items()}
    controls = (_canary(staged, report), _twins(staged, report, frozenset(ignored)))
    if not report.ended:
        return SuiteVerdict(outcomes, controls, FailureReason.TESTS_FAILED, "the suite did not come to its end")
    broken = [control.name for control in controls if not control.held]
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


def decoys_that_pass(staged: Staged, report: Report) -> frozenset[TestId]:
    """Decoys that the reference solution passes: their wrong value makes no difference to the test."""
    passed = {_function(test) for test in report.outcomes if report.passed(test)}
    return frozenset(decoy for some in staged.decoys.values() for decoy in some if _node(decoy) in passed)


def _outcome(report: Report, test: TestId) -> str:
    if str(test) in report.repeated:
        return "reported_twice"
    return report.outcomes.get(str(test), "not_reported")


def _canary(staged: Staged, report: Report) -> Control:
    seen = _outcome(report, staged.canary)
    return Control("canary", seen == "failed", f"a test that must fail was seen as {seen}")


def _twins(staged: Staged, report: Report, ignored: frozenset[TestId]) -> Control:
    """Decoys count where their test passed: where it failed for another reason, so may they."""
    reported: dict[str, set[str]] = {}
    for node, outcome in report.outcomes.items():
        reported.setdefault(_function(node), set()).add(outcome)
    looked_at = wrong = 0
    for test, decoys in staged.decoys.items():
        if not report.passed(str(staged.truths[test])):
            continue
        for decoy in decoys:
            if decoy not in ignored:
                looked_at += 1
                wrong += reported.get(_node(decoy), set()) != {"failed"}
    detail = (
        f"{looked_at} decoys looked at, {wrong} did not fail; "
        f"{staged.twinned} of {staged.assertions} assertions have twins"
    )
    return Control("twins", wrong == 0, detail)


def _function(node: str) -> str:
    return node.partition("[")[0]


def _node(test: TestId) -> str:
    return _function(str(test))
