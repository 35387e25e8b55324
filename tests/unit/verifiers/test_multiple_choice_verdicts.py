"""The answer grammar of multiple_choice as a table: every response and what it gets."""

from __future__ import annotations

import pytest

from securebench.errors import FailureReason
from securebench.families.multiple_choice import MultipleChoiceEval, MultipleChoiceInput
from securebench.verifiers.multiple_choice import judge_multiple_choice

PASS = None
NO = FailureReason.NO_ANSWER
BAD = FailureReason.MALFORMED_ANSWER
TWO = FailureReason.AMBIGUOUS_ANSWER
WRONG = FailureReason.WRONG_ANSWER

FOUR = MultipleChoiceInput(question="Which?", choices=("a cat", "B", "Paris", "none of the above"))
B = MultipleChoiceEval(answer=1)


def judge(response: str, public: MultipleChoiceInput = FOUR, private: MultipleChoiceEval = B) -> FailureReason | None:
    verdict = judge_multiple_choice(public, private, response)
    assert verdict.passed == (verdict.reason is None)
    return verdict.reason


HONEST = [
    "B",
    "b",
    "(B)",
    "(b)",
    "B.",
    "B)",
    " B \n",
    "\r\n\tB\r\n",
    "**B**",
    "Answer: B",
    "answer: b",
    "ANSWER: (B)",
    "Answer:B",
    "Answer:   B",
    "Answer: B.",
    "**Answer:** B",
    "**Answer: B**",
    "**Answer:** **B**",
    "Answer: **B**",
    "It cannot be A, because cats are not letters.\nSo the rest follows.\n\nAnswer: B",
    "The answer: C looks tempting.\r\nBut no.\r\nAnswer: B\r\n\r\n",
    "A A A C C D\nAnswer: B",
    "Thinking about Привет and 👩‍👩‍👧 first.\nAnswer: B",
]

HOSTILE = [
    # nothing, or only a shape
    ("", NO),
    (" \t\r\n", NO),
    ("Answer:", NO),
    ("**Answer:**", NO),
    ("**Answer: **", NO),
    ("Thought process:", BAD),
    ("{}", BAD),
    ('{"answer": "B"}', BAD),
    ("null", BAD),
    # no slot
    ("I think so.\nB is right.", NO),
    ("B\nbecause it is", NO),
    ("The answer is B", BAD),
    ("My answer is\nB", NO),
    # wrong, plainly
    ("A", WRONG),
    ("Answer: C", WRONG),
    ("a", WRONG),
    ("d.", WRONG),
    # J02, J05: several options, position tricks, the article, the letters of words
    ("A B C D", TWO),
    ("ABCD", BAD),
    ("A, B, C, D", TWO),
    ("B, B", TWO),
    ("A or B", TWO),
    ("B and C", TWO),
    ("B/C", TWO),
    ("(A) (B)", TWO),
    ("Answer: B Answer: C", BAD),
    ("Answer: B, C", TWO),
    ("Answer: not A, so B", BAD),
    ("A cat", BAD),
    ("a cat", BAD),
    ("Banana", BAD),
    ("Paris", BAD),
    ("B. B", TWO),
    ("B) Paris", BAD),
    ("none of the above", BAD),
    ("B?", BAD),
    ("B!", BAD),
    ("!B", BAD),
    ("~B", BAD),
    ("-B", BAD),
    ("'B'", BAD),
    ('"B"', BAD),
    ("`B`", BAD),
    ("[B]", BAD),
    ("{B}", BAD),
    ("<B>", BAD),
    ("$B$", BAD),
    ("\\boxed{B}", BAD),
    ("((B))", BAD),
    ("(B", BAD),
    ("(B).", BAD),
    ("B..", BAD),
    ("B.)", BAD),
    ("****B****", BAD),
    ("***B***", BAD),
    ("**B", BAD),
    ("BB", BAD),
    ("B1", BAD),
    ("1", BAD),
    ("E", BAD),
    ("Z", BAD),
    ("@", BAD),
    ("Option B", BAD),
    # two slots, a slot that is not last, a slot spelt otherwise
    ("Answer: A\nAnswer: B", TWO),
    ("Answer: B\nAnswer: B", TWO),
    ("**Answer:** A\nAnswer: B", TWO),
    ("> answer : C\nAnswer: B", TWO),
    ("### Answer: C\nAnswer: B", TWO),
    ("Answer： C\nAnswer: B", TWO),
    ("x\x0bAnswer: A\nAnswer: B", TWO),
    ("x\u2028Answer: A\nAnswer: B", TWO),
    ("x\x85Answer: A\nAnswer: B", TWO),
    ("Answer: B\u2028Answer: A", TWO),
    ("Answer: A\rAnswer: B", TWO),
    ("Answer: B\nas I said", BAD),
    ("Answer: B\n```", BAD),
    ("Answer:\nB", BAD),
    ("Answer : B", BAD),
    ("# Answer: B", BAD),
    ("- Answer: B", BAD),
    ("Answer：B", BAD),
    ("Final answer: B", BAD),
    ("so\nFinal answer: B", NO),
    ("so\nAnswer is: B", NO),
    ("so\n\u0410nswer: B", NO),
    ("so\nAnſwer: B", NO),
    ("foo\u2028Answer: B", BAD),
    # J06: look-alikes, invisible characters, bidi
    ("\u0392", BAD),
    ("\u0412", BAD),
    ("\uff22", BAD),
    ("\u24b7", BAD),
    ("\U0001d401", BAD),
    ("\u13f4", BAD),
    ("B\u200b", BAD),
    ("\u200bB", BAD),
    ("\ufeffB", BAD),
    ("B\u200d", BAD),
    ("B\u00ad", BAD),
    ("\u202eB", BAD),
    ("\u2067B\u2069", BAD),
    ("B\ufe0f", BAD),
    ("B\u0301", BAD),
    ("B\u3164", BAD),
    ("B\U000e0041", BAD),
    ("\xa0B", BAD),
    ("\u3000B", BAD),
    ("B\x00", BAD),
    ("B\x1b[2K", BAD),
    ("A\x08B", BAD),
    ("B\x0c", BAD),
    ("B\u2028", BAD),
    ("\ud800B", BAD),
    # J08, J09: payloads and bombs
    ("__import__('os').system('touch /tmp/pwned')", BAD),
    ("B if True else A", BAD),
    ("${B}", BAD),
    ("B" * 1_000_000, BAD),
    (" " * 70_000 + "B", BAD),
    ("x\n" * 40_000 + "Answer: B", BAD),
    ("[" * 60_000, BAD),
]


@pytest.mark.parametrize("response", HONEST)
def test_right_letter_in_the_final_slot_passes(response: str) -> None:
    assert judge(response) is PASS


@pytest.mark.parametrize(
    "response, reason", HOSTILE, ids=lambda value: str(value)[:40].encode("unicode_escape").decode()
)
def test_everything_else_fails_with_a_reason(response: str, reason: FailureReason) -> None:
    assert judge(response) is reason


MANY = MultipleChoiceInput(question="Which?", choices=("p", "q", "r", "s"), multi_select=True)
A_AND_C = MultipleChoiceEval(answer=("A", 2))


@pytest.mark.parametrize(
    "response, reason",
    [
        ("A, C", PASS),
        ("C, A", PASS),
        ("A,C", PASS),
        ("a , c", PASS),
        ("(A), (C)", PASS),
        ("Answer: A, C.", PASS),
        ("**Answer:** C,A", PASS),
        ("A", WRONG),
        ("C", WRONG),
        ("A, B", WRONG),
        ("A, B, C", WRONG),
        ("A, B, C, D", WRONG),
        ("A, A, C", BAD),
        ("A, a", BAD),
        ("A, C,", BAD),
        (",A,C", BAD),
        ("A,,C", BAD),
        ("A C", BAD),
        ("AC", BAD),
        ("A; C", BAD),
        ("A/C", BAD),
        ("A and C", BAD),
        ("A, and C", BAD),
        ("{A, C}", BAD),
        ("[A, C]", BAD),
        ("A, E", BAD),
        ("p, r", BAD),
        ("A, \u0421", BAD),
        ("A\uff0c C", BAD),
        ("Answer: A\nAnswer: C", TWO),
        ("A,C," * 10_000, BAD),
    ],
)
def test_several_options_are_all_named_and_no_other(response: str, reason: FailureReason | None) -> None:
    assert judge(response, MANY, A_AND_C) is reason


@pytest.mark.parametrize("response, reason", [("A", PASS), ("C", PASS), ("B", WRONG), ("A, C", TWO)])
def test_any_one_of_several_right_options_is_enough_where_one_is_asked_for(
    response: str, reason: FailureReason | None
) -> None:
    assert judge(response, MultipleChoiceInput(question="?", choices=("p", "q", "r")), A_AND_C) is reason


def test_letter_beyond_the_options_is_no_option() -> None:
    two = MultipleChoiceInput(question="?", choices=("yes", "no"))
    assert judge("C", two, MultipleChoiceEval(answer="A")) is BAD
    letters = MultipleChoiceInput(question="?", choices=tuple(f"choice {i}" for i in range(26)))
    assert judge("Z", letters, MultipleChoiceEval(answer=25)) is PASS


def test_metadata_shows_the_candidates_letter_and_the_form_it_came_in() -> None:
    assert judge_multiple_choice(FOUR, B, "x\nAnswer: (c)").metadata == {"answer": "C", "rule": "final_line"}
    assert judge_multiple_choice(FOUR, B, "b").metadata == {"answer": "B", "rule": "whole_response"}


@pytest.mark.parametrize(
    "response, passes",
    [
        ("Answer: B) Canberra", True),
        ("B. Canberra", True),
        ("(B) Canberra", True),
        ("**Answer**: B", True),
        ("Answer: B) Sydney", False),
        ("Answer: A) Canberra", False),
        ("Answer: B) canberra", False),
        ("Answer: B) Canberra or A) Sydney", False),
        ("Answer: Canberra", False),
    ],
)
def test_a_letter_may_carry_its_own_text_and_no_other(response: str, passes: bool) -> None:
    cities = MultipleChoiceInput(question="?", choices=("Sydney", "Canberra"))
    key = MultipleChoiceEval.model_validate_json('{"answer": "B"}')
    assert judge_multiple_choice(cities, key, response).passed is passes
