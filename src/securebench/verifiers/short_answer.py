"""`short_answer`: the typed value in the final slot against the accepted values."""

from __future__ import annotations

from securebench.answers.short import AnswerKey
from securebench.answers.slot import final_slot
from securebench.answers.verdict import TextVerdict, malformed, passed, wrong
from securebench.families.short_answer import ShortAnswerEval, ShortAnswerInput, row_key
from securebench.verifiers._text_answers import result, typed
from securebench.verifiers.base import Verification, VerificationResult


def judge_short_answer(public: ShortAnswerInput, private: ShortAnswerEval, text: str) -> TextVerdict:
    """The verdict on a response.

    1. The response must have one final slot (`answers.slot`).
    2. The whole slot must read as the row's format: number, text, set or date (`answers.numbers`, `.text`,
       `.sets`, `.dates`); where none is declared, the accepted answers tell (`answers.short.kind_of`).
    3. It passes if the value equals an accepted one; a number also if it lies within the tolerance, a set only if
       it is the whole set. Arithmetic is exact and every number finite.
    """
    return judge_with_key(row_key(public, private), text)


def judge_with_key(key: AnswerKey, text: str) -> TextVerdict:
    """`judge_short_answer` with the row's key made once."""
    slot = final_slot(text)
    if isinstance(slot, TextVerdict):
        return slot
    value = key.read(slot.text)
    if value is None:
        return malformed(f"not_a_{key.kind}")
    return passed(slot.rule, slot.text) if key.accepts(value) else wrong(slot.rule, slot.text)


class ShortAnswerVerifier:
    async def verify(self, verification: Verification) -> VerificationResult:
        task_id = verification.task_id
        public = typed(ShortAnswerInput, verification.evaluator, task_id)
        private = typed(ShortAnswerEval, verification.evaluator, task_id)
        return result(task_id, judge_short_answer(public, private, verification.candidate.text or ""))
