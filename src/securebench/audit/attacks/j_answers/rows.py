"""The rows that answers are tried on, with honest answers to each."""

from __future__ import annotations

from typing import Any

from securebench.audit.plays.answer import EachPasses, Question, question

CHOICE = question(
    "multiple_choice",
    {"question": "Which is the capital of Australia?", "choices": ["Sydney", "Canberra", "Perth", "none of these"]},
    {"answer": "B"},
)
CHOICE_HONEST = EachPasses(
    CHOICE,
    ("B", "b", " (B)\n", "B) Canberra", "**Answer:** B", "Not A: Sydney is only larger.\n\nAnswer: B."),
)

TEXT = question(
    "short_answer",
    {"question": "Which city is the capital of France?", "answer_format": "text"},
    {"accepted_answers": ["Paris"]},
)
TEXT_HONEST = EachPasses(TEXT, ("Paris", "paris.", "It is in France, so:\nAnswer: **Paris**", " PARIS \n"))


def number(accepted: float | str, unit: str | None = None, tolerance: Any = None) -> Question:
    form: Any = "number" if unit is None else {"type": "number", "unit": unit}
    private = {"accepted_answers": [accepted]} | ({} if tolerance is None else {"tolerance": tolerance})
    return question("short_answer", {"question": "How much is it?", "answer_format": form}, private)


NUMBER = number(-1.5)
NUMBER_HONEST = EachPasses(NUMBER, ("-1.5", "-1.50", "-15e-1", "-3/2", "-1 1/2", "Half of -3.\nAnswer: -1.5"))
NEAR = number(3.14, tolerance=0.01)
NEAR_HONEST = EachPasses(NEAR, ("3.14", "3.1415", "157/50", "314%"))
FOUR = number(4)
FOUR_HONEST = EachPasses(FOUR, ("4", "4.0", "Two and two.\nAnswer: 4"))
POWER = number(5, unit="mW")
POWER_HONEST = EachPasses(POWER, ("5", "5 mW", "5.0mW", "Answer: 5 mW."))

CODE_NAMES = question(
    "short_answer",
    {"question": "Which language is it?", "answer_format": "text"},
    {"accepted_answers": ["C++"]},
)
CODE_NAMES_HONEST = EachPasses(CODE_NAMES, ("C++", "c++.", "Answer: C++"))

FREE = question(
    "free_response",
    {"prompt": "Name the capital of France."},
    {"rubric": {"type": "contains_any", "accepted_answers": ["Paris"]}},
)
FREE_HONEST = EachPasses(FREE, ("Paris", "paris.", "**Paris**", '"Paris"'))


def loose(least: float, rejected: str) -> Question:
    """A rubric that allows some words beside the answer, but not one of them."""
    rubric = {"type": "contains_any", "accepted_answers": ["Paris"], "rejected_answers": [rejected]}
    return question(
        "free_response",
        {"prompt": "Name the capital of France."},
        {"rubric": rubric | {"min_token_f1": least}},
    )


LOOSE = loose(0.3, "London")
LOOSE_HONEST = EachPasses(
    LOOSE, ("Paris", "It is Paris.", "Paris, of course!", "Paris (not Londonderry)", "Paris and Saint-Denis")
)
FEW_WORDS = loose(0.6, "London")
FEW_WORDS_HONEST = EachPasses(FEW_WORDS, ("Paris", "It's Paris.", "Paris, certainly", "**Paris** (France)"))


def _half(tolerance: float) -> Question:
    cases = [{"args": [x], "expected": x / 2, "tolerance": tolerance} for x in (1, 3)]
    return question(
        "code_completion",
        {"prompt": "Write half(x).", "language": "python", "entry_point": "half"},
        {"tests": {"source": "cases", "cases": cases}},
    )


def _printed(tolerance: float) -> Question:
    tests = {"source": "io", "run": ["python3", "candidate.py"], "compare": "float", "tolerance": tolerance}
    return question(
        "code_completion",
        {"prompt": "Print one half.", "language": "python"},
        {"tests": {**tests, "cases": [{"stdin": "", "stdout": "0.5\n"}]}},
    )


HALF = _half(0.01)
HALF_HONEST = EachPasses(HALF, ("def half(x):\n    return x / 2\n",))
PRINTED = _printed(0.01)
PRINTED_HONEST = EachPasses(PRINTED, ("print(0.501)\n",))
ROUGH_HALF = _half(1.0)
ROUGH_HALF_HONEST = EachPasses(ROUGH_HALF, ("def half(x):\n    return x // 2\n",))
ROUGH_PRINTED = _printed(1.0)
ROUGH_PRINTED_HONEST = EachPasses(ROUGH_PRINTED, ("print(1.25)\n",))
