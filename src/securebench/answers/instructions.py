"""The answer grammar in the agent's words. Made from public fields only: it cannot know an accepted answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from securebench.answers.characters import MAX_ANSWER, MAX_RESPONSE
from securebench.answers.options import LETTERS

FINAL_SLOT = (
    "Give one final answer. Either the answer alone is your whole response, on a single line, or the last line of "
    "your response is `Answer: <answer>`, and no other line starts with `Answer:`. A response without such an "
    "answer, or with more than one, is wrong."
)

_LIMITS = f"Write plain text without invisible characters, at most {MAX_RESPONSE} characters in all."
_SHORT_LIMITS = f"{_LIMITS[:-1]} and {MAX_ANSWER} in the answer."

_NUMBER = (
    "a number in ASCII digits with a decimal point, such as -1234.5, 1,234.5, 1.2e-3, 3/4 or 1 3/4 (in lowest terms) "
    "or 50% (which is 0.5)"
)
_DATE = "a date such as 2024-03-05 or 5 March 2024, or only a month (2024-03) or a year (2024) if that is asked for"
_TEXT = "the text itself, without quotation marks or explanation; letter case counts only next to digits"
_ANY = (
    "a number in plain ASCII digits such as -1234.5, without thousands separators; a date as YYYY-MM-DD; "
    "anything else as the text itself, without quotation marks or explanation"
)
_SET = (
    "all elements and nothing else, in any order, each once, separated by commas (by semicolons if an element "
    "contains a comma), without brackets"
)


def answer_instructions(family: str, public: Mapping[str, Any]) -> str:
    """How to answer a task of `family` with these `input` fields; empty for families that collect no text."""
    if family == "multiple_choice":
        return f"{FINAL_SLOT} {_choice(len(public['choices']), bool(public.get('multi_select', False)))} {_LIMITS}"
    if family == "short_answer":
        return f"{FINAL_SLOT} The answer is {_short(public.get('answer_format'))}. {_SHORT_LIMITS}"
    if family == "free_response":
        return f"Your whole response is judged. Answer directly; everything you add can count against you. {_LIMITS}"
    return ""


def _choice(count: int, several: bool) -> str:
    span = f"A to {LETTERS[count - 1]}"
    if several:
        return (
            f"The answer is the letters ({span}) of all right options and of no other, in any order, each once, "
            "separated by commas."
        )
    return f"The answer is the letter ({span}) of exactly one option, and not the option's text."


def _short(answer_format: Any) -> str:
    if answer_format is None:
        return f"one line: {_ANY}"
    if isinstance(answer_format, str):
        answer_format = {"type": answer_format}
    kind, unit = answer_format["type"], answer_format.get("unit")
    described = {"number": _NUMBER, "date": _DATE, "text": _TEXT, "set": _SET}[kind]
    if kind == "number" and unit == "%":
        return f"{described.partition(' or 50%')[0]}, in percent; the sign `%` may follow it and changes nothing"
    return f"{described}; the unit `{unit}` may follow it, and no other" if unit is not None else described
