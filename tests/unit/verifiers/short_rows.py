"""One short_answer row judged: what the tables of its four formats share."""

from __future__ import annotations

from typing import Any

from securebench import _json
from securebench.errors import FailureReason
from securebench.families.short_answer import ShortAnswerEval, ShortAnswerInput
from securebench.verifiers.short_answer import judge_short_answer

PASS = None
NO = FailureReason.NO_ANSWER
BAD = FailureReason.MALFORMED_ANSWER
TWO = FailureReason.AMBIGUOUS_ANSWER
WRONG = FailureReason.WRONG_ANSWER

Reason = FailureReason | None


def judge(response: str, accepted: Any, answer_format: Any = None, tolerance: Any = None) -> Reason:
    public = ShortAnswerInput.model_validate_json(_json.dumps({"question": "?", "answer_format": answer_format}))
    private = ShortAnswerEval.model_validate_json(_json.dumps({"accepted_answers": accepted, "tolerance": tolerance}))
    verdict = judge_short_answer(public, private, response)
    assert verdict.passed == (verdict.reason is None)
    return verdict.reason


def shown(value: object) -> str:
    return str(value)[:40].encode("unicode_escape").decode()
