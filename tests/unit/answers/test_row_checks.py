"""Keys that no agent could match are found when the pack is loaded, without repeating them."""

from __future__ import annotations

from typing import Any

import pytest

from securebench import _json
from securebench.answers.characters import MAX_ANSWER
from securebench.answers.sets import MAX_ELEMENTS
from securebench.families.registry import FAMILIES


def problems(family_name: str, public: dict[str, Any], private: dict[str, Any]) -> list[tuple[str, str]]:
    family = FAMILIES[family_name]
    found = family.check(
        family.input_model.model_validate_json(_json.dumps(public)),
        family.eval_model.model_validate_json(_json.dumps(private)),
    )
    return [(".".join(map(str, place)), message) for place, message in found]


def short(accepted: list[Any], answer_format: Any = None, tolerance: Any = None) -> list[tuple[str, str]]:
    return problems(
        "short_answer",
        {"question": "?", "answer_format": answer_format},
        {"accepted_answers": accepted, "tolerance": tolerance},
    )


@pytest.mark.parametrize(
    "accepted, answer_format, tolerance",
    [
        ([1, 2.5], None, 0.1),
        (["1/3", "50%", "1,234"], "number", {"relative": 0.1}),
        (["5 km", 5], {"type": "number", "unit": "km"}, None),
        (["yes", "Yes.", 1], None, None),
        (["2024-03-05"], None, None),
        (["2024", "March 2024", 2024], "date", None),
        (["red", "green"], "set", None),
        (["Paris, France", "Rome"], "set", None),
        ([2, 3, 5], "set", None),
        (["C++", "-5", "Grüße"], "text", None),
        ([f"e{number}" for number in range(MAX_ELEMENTS)], "set", None),
    ],
)
def test_sound_short_answer_key_has_no_problem(accepted: list[Any], answer_format: Any, tolerance: Any) -> None:
    assert short(accepted, answer_format, tolerance) == []


@pytest.mark.parametrize(
    "accepted, answer_format, tolerance, place",
    [
        (["forty-two"], "number", None, "eval.accepted_answers.0"),
        ([1, "nan"], "number", None, "eval.accepted_answers.1"),
        (["1e999"], "number", None, "eval.accepted_answers.0"),
        ([10**500], "number", None, "eval.accepted_answers.0"),
        (["5 m"], {"type": "number", "unit": "km"}, None, "eval.accepted_answers.0"),
        (["5 km"], "number", None, "eval.accepted_answers.0"),
        (["03/04/2024"], "date", None, "eval.accepted_answers.0"),
        ([2024.5], "date", None, "eval.accepted_answers.0"),
        (["zero\u200bwidth"], "text", None, "eval.accepted_answers.0"),
        (["x" * (MAX_ANSWER + 1)], "text", None, "eval.accepted_answers.0"),
        (["two\nlines"], None, None, "eval.accepted_answers.0"),
        (["   "], "text", None, "eval.accepted_answers.0"),
        (["x" * 9000], "text", None, "eval.accepted_answers.0"),
        (["Answer: B"], "text", None, "eval.accepted_answers.0"),
        (["**bold**"], "text", None, "eval.accepted_answers.0"),
        (["a;b", "c"], "set", None, "eval.accepted_answers.0"),
        (["Paris, France"], "set", None, "eval.accepted_answers.0"),
        (["red", "RED"], "set", None, "eval.accepted_answers"),
        ([1, 1.0], "set", None, "eval.accepted_answers"),
        (list(range(300)), "set", None, "eval.accepted_answers"),
        (["yes"], "text", 0.1, "eval.tolerance"),
        (["42"], None, 0.1, "eval.tolerance"),
        ([2, 3], "set", 0.1, "eval.tolerance"),
        (["5"], {"type": "text", "unit": "km"}, None, "input.answer_format.unit"),
        ([5], {"type": "number", "unit": "e5"}, None, "input.answer_format.unit"),
        ([5], {"type": "number", "unit": "0"}, None, "input.answer_format.unit"),
    ],
)
def test_short_answer_key_that_cannot_be_met_is_a_problem(
    accepted: list[Any], answer_format: Any, tolerance: Any, place: str
) -> None:
    found = short(accepted, answer_format, tolerance)
    assert place in [where for where, _ in found]
    texts = [answer for answer in accepted if isinstance(answer, str) and len(answer) > 3 and answer.strip()]
    assert not any(text in message for text in texts for _, message in found)


def rubric(accepted: list[str], rejected: list[str]) -> list[tuple[str, str]]:
    shape = {"type": "contains_any", "accepted_answers": accepted, "rejected_answers": rejected}
    return problems("free_response", {"prompt": "?"}, {"rubric": shape})


@pytest.mark.parametrize(
    "accepted, rejected, places",
    [
        (["-5", "the cat"], ["5", "a cat"], []),
        (["New York City"], ["new YORK"], ["eval.rubric.accepted_answers.0"]),
        (["Rome", "(London)"], ["London"], ["eval.rubric.accepted_answers.1"]),
        (["..."], [], ["eval.rubric.accepted_answers.0"]),
        (["ok"], ["?!"], ["eval.rubric.rejected_answers.0"]),
        (["o\u200bk"], [], ["eval.rubric.accepted_answers.0"]),
        (["x" * 70_000], [], ["eval.rubric.accepted_answers.0"]),
    ],
)
def test_rubric_that_contradicts_itself_is_a_problem(
    accepted: list[str], rejected: list[str], places: list[str]
) -> None:
    assert [place for place, _ in rubric(accepted, rejected)] == places


def test_judge_rubric_is_left_to_the_judge() -> None:
    shape = {"type": "judge", "criteria": "x", "controls": [{"response": ""}]}
    assert problems("free_response", {"prompt": "?"}, {"rubric": shape}) == []
