"""`multiple_choice`: the letters in the final slot against the right options."""

from __future__ import annotations

from dataclasses import dataclass

from securebench.answers.options import letters, read_labelled_option, read_options
from securebench.answers.slot import final_slot
from securebench.answers.verdict import TextVerdict, passed, wrong
from securebench.families.multiple_choice import FAMILY, MultipleChoiceEval, MultipleChoiceInput, right_options
from securebench.verifiers._text_answers import require_checked, result, typed
from securebench.verifiers.base import Verification, VerificationResult


def judge_multiple_choice(public: MultipleChoiceInput, private: MultipleChoiceEval, text: str) -> TextVerdict:
    """The verdict on a response.

    1. The response must have one final slot (`answers.slot`).
    2. The slot must hold one option letter, or with `multi_select` a comma-separated list of different ones
       (`answers.options`). A letter may be followed by exactly its own option's text; a text alone is no answer.
    3. It passes if the option is one of the right ones; with `multi_select` only if the options are exactly the
       right ones.

    The row must have passed its family's check.
    """
    return judge_with_key(option_key(public, private), text)


@dataclass(frozen=True, slots=True)
class OptionKey:
    """What a response is compared with: the right options, out of which, and whether all of them must be named."""

    right: frozenset[int]
    choices: tuple[str, ...]
    several: bool


def option_key(public: MultipleChoiceInput, private: MultipleChoiceEval) -> OptionKey:
    """The key of one row, for many responses to it."""
    return OptionKey(right_options(public.choices, private.answer), public.choices, public.multi_select)


def judge_with_key(key: OptionKey, text: str) -> TextVerdict:
    """`judge_multiple_choice` with the row's key made once."""
    slot = final_slot(text)
    if isinstance(slot, TextVerdict):
        return slot
    if key.several:
        named = read_options(slot.text, len(key.choices))
        if isinstance(named, TextVerdict):
            return named
        return passed(slot.rule, letters(named)) if named == key.right else wrong(slot.rule, letters(named))
    option = read_labelled_option(slot.text, key.choices)
    if isinstance(option, TextVerdict):
        return option
    answer = letters(frozenset({option}))
    return passed(slot.rule, answer) if option in key.right else wrong(slot.rule, answer)


class MultipleChoiceVerifier:
    async def verify(self, verification: Verification) -> VerificationResult:
        task_id = verification.task_id
        public = typed(MultipleChoiceInput, verification.evaluator, task_id)
        private = typed(MultipleChoiceEval, verification.evaluator, task_id)
        require_checked(FAMILY, public, private, task_id)
        return result(task_id, judge_multiple_choice(public, private, verification.candidate.text or ""))
