"""`free_response`: prose, graded by a deterministic rubric or by a model judge with negative controls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Discriminator, Field

from securebench._schema import ClosedModel
from securebench._yaml import Loc
from securebench.answers.characters import MAX_RESPONSE
from securebench.answers.tokens import read_tokens
from securebench.families.base import HIDDEN, CandidateKind, EvalModel, Family, InputModel, Text, TextOrFile

Texts = tuple[Text, ...]


class FreeResponseInput(InputModel):
    prompt: Text
    context: Text | None = None


class ContainsAnyRubric(ClosedModel):
    """Passes when the response states an accepted answer, states no rejected one, and adds little else."""

    type: Literal["contains_any"]
    accepted_answers: Annotated[Texts, Field(min_length=1)]
    rejected_answers: Texts = ()
    min_token_f1: Annotated[float, Field(gt=0, le=1)] = 1.0


class Control(ClosedModel):
    """A response whose verdict is known; a judge that gets one wrong decides nothing."""

    response: str
    passes: bool = False


class JudgeRubric(ClosedModel):
    """A model decides by `criteria`; its negative controls must fail first."""

    type: Literal["judge"]
    criteria: Text
    rejected_answers: Texts = ()
    pass_score: Annotated[float, Field(gt=0, le=1)] = 1.0  # the share of votes it takes
    controls: Annotated[tuple[Control, ...], Field(min_length=1)]


class FreeResponseEval(EvalModel):
    rubric: Annotated[Annotated[ContainsAnyRubric | JudgeRubric, Discriminator("type")], HIDDEN]
    reference_answer: Annotated[TextOrFile | None, HIDDEN] = None


def _check(public: FreeResponseInput, private: FreeResponseEval) -> Iterable[tuple[Loc, str]]:  # noqa: ARG001
    rubric = private.rubric
    rejected = []
    for index, answer in enumerate(rubric.rejected_answers):
        tokens = read_tokens(answer)
        if tokens is None or tokens.folded().count == 0:
            yield ("eval", "rubric", "rejected_answers", index), _UNREADABLE
        else:
            rejected.append(tokens.folded())
    if isinstance(rubric, JudgeRubric):
        if all(control.passes for control in rubric.controls):
            yield ("eval", "rubric", "controls"), "needs a response that must not pass, or any judge will do"
        return
    for index, answer in enumerate(rubric.accepted_answers):
        place = ("eval", "rubric", "accepted_answers", index)
        tokens = read_tokens(answer)
        if tokens is None or tokens.count == 0:
            yield place, _UNREADABLE
        elif any(tokens.folded().contain(other) for other in rejected):
            yield place, "contains a rejected answer, so it could never pass"


_UNREADABLE = f"expected words, at most {MAX_RESPONSE} characters, none of them invisible"


FAMILY = Family(
    name="free_response",
    input_model=FreeResponseInput,
    eval_model=FreeResponseEval,
    candidate=CandidateKind.TEXT,
    verifier="securebench.verifiers.free_response:FreeResponseVerifier",
    check=_check,
)
