"""`free_response`: a whole response against a deterministic rubric, or before a model judge where the run names one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from securebench.answers.characters import MAX_RESPONSE
from securebench.answers.numbers import exact
from securebench.answers.tokens import Tokens, read_tokens, token_f1
from securebench.answers.verdict import TextVerdict, malformed, no_answer, passed, wrong
from securebench.families.free_response import ContainsAnyRubric, FreeResponseEval, FreeResponseInput, JudgeRubric
from securebench.verifiers._pack_text import read_pack_text
from securebench.verifiers._text_answers import result, typed
from securebench.verifiers.base import Assurance, Status, Verification, VerificationResult
from securebench.verifiers.judge.question import Matter
from securebench.verifiers.judged_response import judge_response


def judge_contains_any(rubric: ContainsAnyRubric, text: str) -> TextVerdict:
    """The verdict on a response.

    1. Longer than MAX_RESPONSE or holding an invisible character: malformed. No words: no answer.
    2. Some accepted answer's tokens must stand in the response in a row (`answers.tokens`), and the token F1 of
       the response and that answer must reach `min_token_f1`; at 1.0 the response is nothing but the answer.
    3. No rejected answer's tokens may stand in the response in a row, whatever their case or decoration.
    """
    return judge_with_key(rubric_key(rubric), text)


@dataclass(frozen=True, slots=True)
class RubricKey:
    """What a response is compared with; None where the rubric's own text cannot be read."""

    accepted: tuple[Tokens | None, ...]
    rejected: tuple[Tokens | None, ...]
    least: Fraction


def rubric_key(rubric: ContainsAnyRubric) -> RubricKey:
    """The key of one row, for many responses to it."""
    rejected = (read_tokens(answer) for answer in rubric.rejected_answers)
    return RubricKey(
        accepted=tuple(read_tokens(answer) for answer in rubric.accepted_answers),
        rejected=tuple(None if tokens is None else tokens.folded() for tokens in rejected),
        least=exact(rubric.min_token_f1),
    )


def judge_with_key(key: RubricKey, text: str) -> TextVerdict:
    """`judge_contains_any` with the row's key made once."""
    if len(text) > MAX_RESPONSE:
        return malformed("too_long")
    response = read_tokens(text)
    if response is None:
        return malformed("unreadable_character")
    if response.count == 0:
        return no_answer("empty")
    if not any(tokens is not None and _states(response, tokens, key.least) for tokens in key.accepted):
        return wrong("no_accepted_answer_or_too_much_else")
    folded = response.folded()
    if any(tokens is None or folded.contain(tokens) for tokens in key.rejected):
        return wrong("rejected_answer")
    return passed("accepted_answer")


def _states(response: Tokens, answer: Tokens, least: Fraction) -> bool:
    return response.contain(answer) and token_f1(response, answer) >= least


class FreeResponseVerifier:
    async def verify(self, verification: Verification) -> VerificationResult:
        task_id = verification.task_id
        rubric = typed(FreeResponseEval, verification.evaluator, task_id, without=("reference_answer",)).rubric
        if isinstance(rubric, JudgeRubric):
            if verification.judge is None:
                return _no_judge(task_id)
            matter = _matter(verification, rubric)
            return await judge_response(task_id, matter, rubric, verification.candidate.text or "", verification.judge)
        return result(task_id, judge_contains_any(rubric, verification.candidate.text or ""))


def _matter(verification: Verification, rubric: JudgeRubric) -> Matter:
    public = typed(FreeResponseInput, verification.evaluator, verification.task_id)
    reference = verification.evaluator.values().get("reference_answer")
    if isinstance(reference, dict):
        [file] = [f for r in verification.evaluator if r.name == "reference_answer" for f in r.files]
        reference = read_pack_text(file, verification.task_id)
    return Matter(public.prompt, public.context, rubric.criteria, reference)


def _no_judge(task_id: str) -> VerificationResult:
    return VerificationResult(
        task_id=task_id,
        status=Status.PENDING,
        passed=False,
        score=0.0,
        assurance=Assurance.PURE,
        metadata=MappingProxyType(
            {"rule": "judge", "note": "this rubric needs a model judge; name one in the tester file under judge"}
        ),
    )
