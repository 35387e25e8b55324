"""`short_answer`: one number, text, set or date, compared as that type."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from securebench._schema import ClosedModel
from securebench.families.base import HIDDEN, CandidateKind, EvalModel, Family, InputModel, Text

Kind = Literal["number", "text", "set", "date"]
Accepted = Annotated[int | float | Text, Field(union_mode="left_to_right")]
NonNegative = Annotated[float, Field(ge=0, strict=False)]


class AnswerFormat(ClosedModel):
    """How the answer is read. A unit is accepted only where it is declared here, and is then optional."""

    type: Kind
    unit: Text | None = None


def _format_shape(value: object) -> str:
    return "kind" if isinstance(value, str) else "format"


class ShortAnswerInput(InputModel):
    question: Text
    answer_format: (
        Annotated[Annotated[Kind, Tag("kind")] | Annotated[AnswerFormat, Tag("format")], Discriminator(_format_shape)]
        | None
    ) = None


class Tolerance(ClosedModel):
    """A number passes within `absolute`, or within `relative` times the accepted value's size."""

    absolute: NonNegative = 0.0
    relative: Annotated[NonNegative, Field(lt=1)] = 0.0


def _tolerance_shape(value: object) -> str:
    return "object" if isinstance(value, dict | Tolerance) else "number"


class ShortAnswerEval(EvalModel):
    accepted_answers: Annotated[tuple[Accepted, ...], Field(min_length=1, max_length=1000), HIDDEN]
    tolerance: Annotated[
        Annotated[
            Annotated[NonNegative, Tag("number")] | Annotated[Tolerance, Tag("object")],
            Discriminator(_tolerance_shape),
        ]
        | None,
        HIDDEN,
    ] = None


FAMILY = Family(
    name="short_answer",
    input_model=ShortAnswerInput,
    eval_model=ShortAnswerEval,
    candidate=CandidateKind.TEXT,
    verifier="securebench.verifiers.short_answer:ShortAnswerVerifier",
)
