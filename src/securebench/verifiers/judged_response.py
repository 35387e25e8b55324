"""`free_response` with a model judge: deterministic checks first, then controls, then votes."""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType
from typing import Any

from securebench.answers.characters import MAX_RESPONSE, without_invisible
from securebench.answers.numbers import exact
from securebench.answers.tokens import read_tokens
from securebench.answers.verdict import TextVerdict, malformed, no_answer, wrong
from securebench.errors import FailureReason, JudgeUnfit
from securebench.families.free_response import JudgeRubric
from securebench.verifiers.base import Assurance, Status, VerificationResult
from securebench.verifiers.judge.panel import ControlOutcome, KnownResponse, Panel
from securebench.verifiers.judge.question import Matter
from securebench.verifiers.judge.reply import Vote
from securebench.verifiers.negative_controls import MASTER_KEYS


def precheck(rubric: JudgeRubric, text: str) -> TextVerdict | str:
    """What no judge needs to be asked, or the text that one is asked about.

    1. Longer than MAX_RESPONSE: malformed.
    2. Nothing but white space, punctuation or a phrase that fits every task: no answer.
    3. A rejected answer of the rubric stands in it: wrong.
    """
    if len(text) > MAX_RESPONSE:
        return malformed("too_long")
    seen = without_invisible(text)
    tokens = read_tokens(seen)
    if tokens is None:
        return malformed("unreadable_character")
    folded = tokens.folded()
    if folded.count == 0 or folded in _EMPTY_PHRASES:
        return no_answer("empty")
    for answer in rubric.rejected_answers:
        rejected = read_tokens(answer)
        if rejected is None or folded.contain(rejected.folded()):
            return wrong("rejected_answer")
    return seen


_EMPTY_PHRASES = frozenset(tokens.folded() for phrase in MASTER_KEYS if (tokens := read_tokens(phrase)) is not None)


async def judge_response(
    task_id: str, matter: Matter, rubric: JudgeRubric, text: str, panel: Panel
) -> VerificationResult:
    """The verdict of a panel. Raises JudgeUnfit where a control did not come out as it must: then the judge's word
    counts neither for nor against the response."""
    asked = precheck(rubric, text)
    if isinstance(asked, TextVerdict):
        return _verdict(task_id, False, Assurance.PURE, asked.reason, {"rule": asked.rule})
    known = [
        KnownResponse(f"pack: {number}", control.response, control.passes)
        for number, control in enumerate(rubric.controls, 1)
    ]
    controls = await panel.control(matter, known)
    if broken := [control.name for control in controls if not control.held]:
        raise JudgeUnfit(
            f"the judge {panel.model.name} got {len(broken)} of {len(controls)} control responses wrong "
            f"({', '.join(broken)}), so its verdicts on this task count for nothing; "
            "use another judge or mend the rubric"
        )
    votes = await panel.vote(matter, asked)
    passing = Fraction(votes.count(Vote.PASS), len(votes))
    metadata = {
        "rule": "judge",
        "judge": panel.model.name,
        "votes": [str(vote) for vote in votes],
        "unanimous": len(set(votes)) == 1,
        "removed_characters": len(text) - len(asked),
    }
    won = passing >= exact(rubric.pass_score)
    reason = None if won else FailureReason.WRONG_ANSWER
    return _verdict(task_id, won, Assurance.JUDGED, reason, metadata, controls)


def _verdict(
    task_id: str,
    won: bool,
    assurance: Assurance,
    reason: FailureReason | None,
    metadata: dict[str, Any],
    controls: tuple[ControlOutcome, ...] = (),
) -> VerificationResult:
    return VerificationResult(
        task_id=task_id,
        status=Status.PASSED if won else Status.FAILED,
        passed=won,
        score=1.0 if won else 0.0,
        assurance=assurance,
        failure_reason=reason,
        metadata=MappingProxyType(metadata),
        controls=tuple(
            {"name": c.name, "expected": str(c.expected), "seen": str(c.vote), "held": c.held} for c in controls
        ),
    )
