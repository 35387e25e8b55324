"""Responses made to stall a judge. Each gets its verdict in time, and the verdict is: failed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from securebench.answers.verdict import TextVerdict
from securebench.families.free_response import ContainsAnyRubric
from securebench.families.multiple_choice import MultipleChoiceEval, MultipleChoiceInput
from securebench.families.short_answer import ShortAnswerEval, ShortAnswerInput
from securebench.verifiers.free_response import judge_contains_any
from securebench.verifiers.multiple_choice import judge_multiple_choice
from securebench.verifiers.short_answer import judge_short_answer

K = 64 * 1024
BOMBS = {
    "a megabyte": "A" * 2**20,
    "line breaks": "x" + "\n" * (K - 2) + "y",
    "answer lines": "Answer: x\n" * 6_000,
    "almost labels": "answer " * 9_000,
    "label prefixes": ("\n" + "*" * 60) * 1_000,
    "spaces": "a" + " " * (K - 2) + "b",
    "combining marks": "a" + "\u0300\u0316" * 30_000,
    "short mark runs": ("a" + "\u0316\u0300" * 15) * 2_100,
    "many characters": "".join(map(chr, range(0x4E00, 0x4E00 + 20_000))),
    "exponent": "1e999999999",
    "power tower": "9**9**9**9**9",
    "digits": "9" * K,
    "tiny numbers": ",".join(f"{i}e-400" for i in range(1, 257)),
    "fractions": ";".join(f"{i}/{'7' * 25}" for i in range(1, 257)),
    "thousands": "1" + ",000" * 16_000,
    "commas": "," * K,
    "quotes": '"' * K,
    "bold": " **a" * 16_000,
    "open bold": " **" + "a " * 32_000,
    "expanding letters": "\ufdfa " * 32_000,
    "brackets": "[" * K,
    "slashes": "1/" * 32_000,
    "surrogates": "\ud800" * K,
    "separators": "\u2028" * K,
    "numbers and units": "5 mW " * 13_000,
    "regular expression": "(a+)+$" * 10_000,
}


def _judges() -> list[Callable[[str], TextVerdict]]:
    judges: list[Callable[[str], TextVerdict]] = []
    tiny = tuple(float(f"{i}e-300") for i in range(1, 257))
    for kind, accepted in (("number", tiny), ("text", ("a b",)), ("set", tiny), ("date", ("2024",))):
        row = ShortAnswerInput.model_validate({"question": "?", "answer_format": kind})
        private = ShortAnswerEval(accepted_answers=accepted)
        judges.append(lambda text, row=row, private=private: judge_short_answer(row, private, text))  # type: ignore[misc]
    for several in (False, True):
        choice = MultipleChoiceInput(question="?", choices=("x", "y"), multi_select=several)
        judges.append(lambda text, row=choice: judge_multiple_choice(row, MultipleChoiceEval(answer="B"), text))  # type: ignore[misc]
    rubric = ContainsAnyRubric(
        type="contains_any", accepted_answers=("needle", "a a b"), rejected_answers=("zz",), min_token_f1=0.1
    )
    judges.append(lambda text: judge_contains_any(rubric, text))
    return judges


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_bomb_is_a_failure_within_fifty_milliseconds(bomb: str) -> None:
    for judge in _judges():
        for form in ("", "Answer: "):
            best = float("inf")
            for _ in range(3):  # the best of three: the machine's noise is not the judge's cost
                start = time.process_time()
                verdict = judge(form + bomb)
                best = min(best, time.process_time() - start)
                if best < 0.05:
                    break
            assert not verdict.passed
            assert best < 0.05
