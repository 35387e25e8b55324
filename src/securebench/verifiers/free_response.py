"""`free_response`: a whole response against a deterministic rubric. A judge's rubric stays pending."""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType

from securebench.answers.characters import MAX_RESPONSE
from securebench.answers.numbers import exact
from securebench.answers.tokens import Tokens, read_tokens, token_f1
from securebench.answers.verdict import TextVerdict, malformed, no_answer, passed, wrong
from securebench.candidates.artifact import CandidateArtifact
from securebench.families.free_response import ContainsAnyRubric, FreeResponseEval, JudgeRubric
from securebench.resources import ResourceView
from securebench.verifiers._text_answers import result, typed
from securebench.verifiers.base import Assurance, Status, VerificationResult


def judge_contains_any(rubric: ContainsAnyRubric, text: str) -> TextVerdict:
    """The verdict on a response.

    1. Longer than MAX_RESPONSE or holding an invisible character: malformed. No words: no answer.
    2. Some accepted answer's tokens must stand in the response in a row (`answers.tokens`), and the token F1 of
       the response and that answer must reach `min_token_f1`; at 1.0 the response is nothing but the answer.
    3. No rejected answer's tokens may stand in the response in a row, whatever their case or decoration.
    """
    if len(text) > MAX_RESPONSE:
        return malformed("too_long")
    response = read_tokens(text)
    if response is None:
        return malformed("unreadable_character")
    if response.count == 0:
        return no_answer("empty")
    least = exact(rubric.min_token_f1)
    accepted = (read_tokens(answer) for answer in rubric.accepted_answers)
    if not any(tokens is not None and _states(response, tokens, least) for tokens in accepted):
        return wrong("no_accepted_answer_or_too_much_else")
    folded = response.folded()
    rejected = (read_tokens(answer) for answer in rubric.rejected_answers)
    if any(tokens is None or folded.contain(tokens.folded()) for tokens in rejected):
        return wrong("rejected_answer")
    return passed("accepted_answer")


def _states(response: Tokens, answer: Tokens, least: Fraction) -> bool:
    return token_f1(response, answer) >= least and response.contain(answer)


class FreeResponseVerifier:
    async def verify(self, task_id: str, evaluator: ResourceView, candidate: CandidateArtifact) -> VerificationResult:
        rubric = typed(FreeResponseEval, evaluator, task_id, without=("reference_answer",)).rubric
        if isinstance(rubric, JudgeRubric):
            return _no_judge_yet(task_id)
        return result(task_id, judge_contains_any(rubric, candidate.text or ""))


def _no_judge_yet(task_id: str) -> VerificationResult:
    return VerificationResult(
        task_id=task_id,
        status=Status.PENDING,
        passed=False,
        score=0.0,
        assurance=Assurance.PURE,
        metadata=MappingProxyType({"rule": "judge", "note": "this rubric needs a model judge, and none is available"}),
    )
