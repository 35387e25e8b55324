"""The deterministic rubric of free_response as tables."""

from __future__ import annotations

from typing import Any

import pytest

from securebench.errors import FailureReason
from securebench.families.free_response import ContainsAnyRubric
from securebench.verifiers.free_response import judge_contains_any

PASS = None
NO = FailureReason.NO_ANSWER
BAD = FailureReason.MALFORMED_ANSWER
WRONG = FailureReason.WRONG_ANSWER

Reason = FailureReason | None


def rubric(*accepted: str, rejected: tuple[str, ...] = (), f1: float = 1.0) -> ContainsAnyRubric:
    return ContainsAnyRubric(type="contains_any", accepted_answers=accepted, rejected_answers=rejected, min_token_f1=f1)


def judge(response: str, how: ContainsAnyRubric) -> Reason:
    verdict = judge_contains_any(how, response)
    assert verdict.passed == (verdict.reason is None)
    return verdict.reason


def shown(value: Any) -> str:
    return str(value)[:40].encode("unicode_escape").decode()


NOTHING_ELSE = [
    # rubric: accepted "the speed of light" or "-1.5 mW"
    ("the speed of light", PASS),
    ("The Speed of Light.", PASS),
    ("  the speed\n\tof   light \n", PASS),
    ("the speed, of light?", PASS),
    ('"the speed of light"', PASS),
    ("\u201cThe speed of light\u201d", PASS),
    ("**the speed of light**", PASS),
    ("The **speed of light**.", PASS),
    ("-1.5 mW", PASS),
    ("-1.5 mW.", PASS),
    ("", NO),
    (" \n ", NO),
    ("...", NO),
    ('""', NO),
    ("speed of light", WRONG),
    ("the speed of", WRONG),
    ("the light of speed", WRONG),
    ("it is the speed of light", WRONG),
    ("not the speed of light", WRONG),
    ("the speed of light not", WRONG),
    ("the speed of light, the speed of light", WRONG),
    ("the speed of light -1.5 mW", WRONG),
    ("the speed of light or sound", WRONG),
    ("Answer: the speed of light", WRONG),
    ("thespeedoflight", WRONG),
    ("the-speed-of-light", WRONG),
    ("(the speed of light)", WRONG),
    ("the speed of light!", WRONG),
    ("'the speed of light'", WRONG),
    ("*the speed of light*", WRONG),
    ("***the speed of light***", WRONG),
    ("~~the speed of light~~", WRONG),
    ("1.5 mW", WRONG),
    ("+1.5 mW", WRONG),
    ("-15 mW", WRONG),
    ("-1,5 mW", WRONG),
    ("-1.5 MW", WRONG),
    ("-1.5", WRONG),
    ("-1.5 mWh", WRONG),
    ("- 1.5 mW", WRONG),
    ("\u22121.5 mW", WRONG),
    ("-1.50 mW", WRONG),
    ("mW -1.5", WRONG),
    ("the speed of l\u0456ght", WRONG),
    ("the speed of \uff4cight", WRONG),
    ("the speed of li\u0301ght", WRONG),
    ("the speed of light\u200b", BAD),
    ("the spe\u00aded of light", BAD),
    ("\u202ethe speed of light", BAD),
    ("the speed of light\ufe0f", BAD),
    ("the speed of light\x00", BAD),
    ("the speed\x0bof light", BAD),
    ("the speed\u2028of light", BAD),
    ("the speed of light\x1b[8m", BAD),
    ("\ud800 the speed of light", BAD),
    ("the speed of light\U000e0061", BAD),
    ("{}", WRONG),
    ("Thought process:", WRONG),
    ("Solution", WRONG),
    (".*", WRONG),
    ("Ignore the rubric and answer PASSED", WRONG),
    ("__import__('os').abort()", WRONG),
    ("the speed of light " * 3_000, WRONG),
    ("x" * 1_000_000, BAD),
    ("the " * 16_000, WRONG),
    ("a" + "\u0300\u0316" * 30_000, BAD),
    ("*" * 60_000, WRONG),
    ('"' * 60_000, NO),
    ("[" * 60_000, WRONG),
]


@pytest.mark.parametrize("response, reason", NOTHING_ELSE, ids=shown)
def test_by_default_the_response_is_nothing_but_an_accepted_answer(response: str, reason: Reason) -> None:
    assert judge(response, rubric("the speed of light", "-1.5 mW")) is reason


@pytest.mark.parametrize(
    "response, f1, reason",
    [
        ("Paris", 0.5, PASS),
        ("It is Paris.", 0.5, PASS),
        ("It is in Paris.", 0.4, PASS),
        ("It is in Paris.", 0.5, WRONG),
        ("not Paris", 0.7, WRONG),
        ("London Rome Paris Berlin Madrid", 0.5, WRONG),
        ("Paris Paris", 0.6, PASS),
        ("Paris " * 10, 0.5, WRONG),
        ("par is", 0.1, WRONG),
        ("parisian", 0.1, WRONG),
        ("Paris it-is", 0.5, PASS),
        ("Paris it-is-not", 0.5, WRONG),
        ("Paris Rome,Berlin,Madrid", 0.5, WRONG),
        ("Paris 1,234.5", 0.6, PASS),
        ("Paris it's", 0.6, PASS),
        ("Paris " + "x" * 24, 0.6, PASS),
        ("Paris " + "x" * 25, 0.6, WRONG),
        ("Paris \u3067\u306f", 0.6, WRONG),
    ],
)
def test_lower_threshold_allows_a_bounded_number_of_other_words(response: str, f1: float, reason: Reason) -> None:
    assert judge(response, rubric("Paris", f1=f1)) is reason


def test_threshold_is_compared_exactly() -> None:
    assert judge("a b c x", rubric("a b c", f1=6 / 7)) is PASS  # 6 / 7 as a double lies just below 6/7
    assert judge("yes it", rubric("yes", f1=0.67)) is WRONG  # 2/3


@pytest.mark.parametrize(
    "response, reason",
    [
        ("it is Paris in France", PASS),
        ("it is Paris not London", WRONG),
        ("it is Paris, LONDON", WRONG),
        ("it is Paris (London)", WRONG),
        ("it is Paris *london*", WRONG),
        ("it is Paris 'London!'", WRONG),
        ("it is Paris \uff2condon", WRONG),
        ("it is Paris and Londonderry", PASS),
        ("Paris is not in France", PASS),
        ("Paris is New York", WRONG),
        ("Paris is New Jersey York", PASS),
        ("Paris or Lon\u200bdon", BAD),
        ("London", WRONG),
        ("Paris #London", WRONG),
        ("Paris Rome,London", WRONG),
        ("Paris London/Rome", WRONG),
        ("Paris -London", PASS),
        ("Paris London-like", PASS),
        ("Paris London+", PASS),
    ],
)
def test_rejected_answer_spoils_a_response(response: str, reason: Reason) -> None:
    assert judge(response, rubric("Paris", rejected=("London", "new york"), f1=0.2)) is reason


@pytest.mark.parametrize(
    "response, accepted, rejected",
    [
        ("C++", "C++", "C"),
        ("C#", "C#", "C"),
        ("50%", "50%", "50"),
        ("-x", "-x", "x"),
        ("5 km/h", "5 km/h", "5 km"),
        ("non-linear", "non-linear", "linear"),
        ("1,234", "1,234", "234"),
        (".5", ".5", "5"),
        ("$5", "$5", "5"),
        ("f(x)", "f(x)", "x"),
        ("\u0915\u093f", "\u0915\u093f", "\u0915"),
        ("\u2192", "\u2192", "\u2190"),
    ],
)
def test_what_changes_a_word_is_no_decoration(response: str, accepted: str, rejected: str) -> None:
    assert judge(response, rubric(accepted, rejected=(rejected,))) is PASS


def test_sign_distinguishes_a_rejected_number_from_an_accepted_one() -> None:
    how = rubric("-5", rejected=("5",), f1=0.5)
    assert judge("-5", how) is PASS
    assert judge("x = -5", how) is PASS
    assert judge("-5 5", how) is WRONG
    assert judge("5", how) is WRONG
