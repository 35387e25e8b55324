"""`short_answer`: one number, text, set or date, compared as that type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from securebench._schema import ClosedModel
from securebench._yaml import Loc
from securebench.answers.numbers import Margin, exact, unit_problem
from securebench.answers.short import AnswerKey, Kind, answer_key, kind_of, unanswerable
from securebench.families.base import HIDDEN, CandidateKind, EvalModel, Family, InputModel, Text

Accepted = Annotated[int | float | Text, Field(union_mode="left_to_right")]
NonNegative = Annotated[float, Field(ge=0)]


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


def row_format(public: ShortAnswerInput, private: ShortAnswerEval) -> AnswerFormat:
    """How an answer to this row is read; derived from the accepted answers where the row declares nothing."""
    if isinstance(public.answer_format, AnswerFormat):
        return public.answer_format
    return AnswerFormat(type=public.answer_format or kind_of(private.accepted_answers))


def row_key(public: ShortAnswerInput, private: ShortAnswerEval) -> AnswerKey:
    """What an answer to this row is compared with."""
    form = row_format(public, private)
    return answer_key(form.type, form.unit, private.accepted_answers, _margin(private.tolerance))


def _margin(tolerance: float | Tolerance | None) -> Margin:
    if isinstance(tolerance, Tolerance):
        return Margin(exact(tolerance.absolute), exact(tolerance.relative))
    return Margin(exact(tolerance or 0))


def _check(public: ShortAnswerInput, private: ShortAnswerEval) -> Iterable[tuple[Loc, str]]:
    form = row_format(public, private)
    if form.unit is not None:
        problem = unit_problem(form.unit) if form.type == "number" else "only an answer of type number has a unit"
        if problem:
            yield ("input", "answer_format", "unit"), problem
            return
    if private.tolerance is not None and form.type != "number":
        hint = "" if public.answer_format else "; none is declared, and the accepted answers are not all numbers"
        yield ("eval", "tolerance"), f"only an answer of type number has a tolerance{hint}"
    for index, message in unanswerable(form.type, form.unit, private.accepted_answers):
        yield ("eval", "accepted_answers", *(() if index is None else (index,))), message


FAMILY = Family(
    name="short_answer",
    input_model=ShortAnswerInput,
    eval_model=ShortAnswerEval,
    candidate=CandidateKind.TEXT,
    verifier="securebench.verifiers.short_answer:ShortAnswerVerifier",
    check=_check,
)
