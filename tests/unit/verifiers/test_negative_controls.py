from __future__ import annotations

from typing import Any

import pytest

from securebench.families.free_response import ContainsAnyRubric
from securebench.families.multiple_choice import MultipleChoiceEval, MultipleChoiceInput
from securebench.families.short_answer import ShortAnswerEval, ShortAnswerInput
from securebench.verifiers.free_response import judge_contains_any
from securebench.verifiers.multiple_choice import judge_multiple_choice
from securebench.verifiers.negative_controls import Control, negative_controls
from securebench.verifiers.short_answer import judge_short_answer

CHOICE: dict[str, Any] = {"question": "Is A better than B?", "choices": ["yes", "no", "A", "B"]}
SHORT: dict[str, Any] = {"question": "How many of the 42 are primes?\nCount."}
FREE: dict[str, Any] = {"prompt": "Name the capital of France.", "context": "France: Paris"}


def controls(family: str, public: dict[str, Any]) -> list[Control]:
    return list(negative_controls(family, public))


@pytest.mark.parametrize("right", range(4))
def test_no_control_that_must_fail_passes_multiple_choice(right: int) -> None:
    public = MultipleChoiceInput(question=CHOICE["question"], choices=tuple(CHOICE["choices"]))
    for control in controls("multiple_choice", CHOICE):
        if control.must_fail:
            assert not judge_multiple_choice(public, MultipleChoiceEval(answer=right), control.response).passed


@pytest.mark.parametrize("accepted", [0, 42, "yes", "A", "2024-01-01", "{} x"])
@pytest.mark.parametrize("kind", [None, "text", "set"])
def test_no_control_that_must_fail_passes_short_answer(accepted: Any, kind: Any) -> None:
    public = ShortAnswerInput(question=SHORT["question"], answer_format=kind)
    private = ShortAnswerEval(accepted_answers=(accepted,))
    for control in controls("short_answer", SHORT):
        if control.must_fail:
            assert not judge_short_answer(public, private, control.response).passed, control.name


def test_no_control_that_must_fail_passes_a_strict_rubric() -> None:
    rubric = ContainsAnyRubric(type="contains_any", accepted_answers=("Paris",))
    for control in controls("free_response", FREE):
        if control.must_fail:
            assert not judge_contains_any(rubric, control.response).passed, control.name


def test_controls_find_a_rubric_so_loose_that_an_echo_scores() -> None:
    rubric = ContainsAnyRubric(type="contains_any", accepted_answers=("Paris",), min_token_f1=0.1)
    scored = {c.name for c in controls("free_response", FREE) if judge_contains_any(rubric, c.response).passed}
    assert "echo:context" in scored


def test_constant_guess_may_be_right_and_is_marked_so() -> None:
    guesses = {c.response for c in controls("multiple_choice", CHOICE) if not c.must_fail}
    assert {"A", "0", "yes", "42"} <= guesses
    every_letter = next(c for c in controls("multiple_choice", CHOICE) if c.name == "dump_all:letters")
    assert every_letter.must_fail
    several = controls("multiple_choice", {**CHOICE, "multi_select": True})
    assert not next(c for c in several if c.name == "dump_all:letters").must_fail


@pytest.mark.parametrize(
    "family, public", [("multiple_choice", CHOICE), ("short_answer", SHORT), ("free_response", FREE)]
)
def test_control_names_are_distinct_and_cover_every_class(family: str, public: dict[str, Any]) -> None:
    names = [control.name for control in controls(family, public)]
    guesses = [name for name in names if name.startswith("guess:")]
    distinct = [name for name in names if name not in guesses]
    assert len(set(distinct)) == len(distinct)
    assert {"empty", "whitespace", "shape", "master_key", "echo", "dump_all", "constant"} == {
        name.partition(":")[0] for name in distinct
    }


def test_numbers_of_the_question_are_guesses_not_faults() -> None:
    found = [c for c in controls("short_answer", {"question": "What is 144/12, or 3/8, or 7?"}) if "guess" in c.name]
    assert [control.response for control in found] == ["144/12", "3/8", "7"]
    assert not any(control.must_fail for control in found)
