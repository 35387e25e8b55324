"""`multiple_choice`: a question with 2 to 26 options; the answer is one letter, or several where declared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from securebench._yaml import Loc
from securebench.answers.options import LETTERS
from securebench.families.base import HIDDEN, CandidateKind, EvalModel, Family, InputModel, Text

Key = Annotated[int | str, Field(union_mode="left_to_right")]


class MultipleChoiceInput(InputModel):
    question: Text
    choices: Annotated[tuple[Text, ...], Field(min_length=2, max_length=26)]
    multi_select: bool = False


class MultipleChoiceEval(EvalModel):
    answer: Annotated[Key | Annotated[tuple[Key, ...], Field(min_length=1)], HIDDEN]


def right_options(choices: tuple[str, ...], answer: int | str | tuple[int | str, ...]) -> frozenset[int]:
    """The indices of the right options. Raises ValueError where the key names no option, or two."""
    keys = answer if isinstance(answer, tuple) else (answer,)
    indices = [_option(choices, key) for key in keys]
    if len(set(indices)) != len(indices):
        raise ValueError("names the same option twice")
    return frozenset(indices)


def _option(choices: tuple[str, ...], key: int | str) -> int:
    if isinstance(key, int):
        if not 0 <= key < len(choices):
            raise ValueError(f"index is outside 0…{len(choices) - 1}")
        return key
    matches = {index for index, choice in enumerate(choices) if choice == key}
    if len(key) == 1 and key in LETTERS[: len(choices)]:
        matches.add(LETTERS.index(key))
    if not matches:
        raise ValueError(f"is neither a letter A…{LETTERS[len(choices) - 1]}, an index, nor the text of a choice")
    if len(matches) > 1:
        raise ValueError("is a letter and also the text of another choice; write the 0-based index instead")
    return matches.pop()


def _check(public: MultipleChoiceInput, private: MultipleChoiceEval) -> Iterable[tuple[Loc, str]]:
    if len(set(public.choices)) != len(public.choices):
        yield ("input", "choices"), "two choices are the same"
        return
    try:
        right = right_options(public.choices, private.answer)
    except ValueError as error:
        yield ("eval", "answer"), str(error)
        return
    if not public.multi_select and len(right) == len(public.choices):
        yield ("eval", "answer"), "every option is right, so any answer would score"


FAMILY = Family(
    name="multiple_choice",
    input_model=MultipleChoiceInput,
    eval_model=MultipleChoiceEval,
    candidate=CandidateKind.TEXT,
    verifier="securebench.verifiers.multiple_choice:MultipleChoiceVerifier",
    check=_check,
)
