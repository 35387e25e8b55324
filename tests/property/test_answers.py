"""What must hold for every text answer, whatever the text and whatever the row."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from securebench.answers.numbers import read_number
from securebench.answers.text import read_text
from securebench.answers.tokens import read_tokens
from securebench.answers.verdict import TextVerdict
from securebench.families import free_response, multiple_choice, short_answer
from securebench.families.free_response import ContainsAnyRubric
from securebench.families.multiple_choice import LETTERS, MultipleChoiceEval, MultipleChoiceInput
from securebench.families.short_answer import ShortAnswerEval, ShortAnswerInput
from securebench.verifiers.free_response import judge_contains_any
from securebench.verifiers.multiple_choice import judge_multiple_choice
from securebench.verifiers.negative_controls import negative_controls
from securebench.verifiers.short_answer import judge_short_answer

unhurried = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
"""A loaded machine is not a failure; how long a verdict may take is measured in `test_answer_bombs`."""

HOSTILE = (
    "ABCDabcd0159+-.,%/eE()*:;!?\"' \t\r\n\x00\x0b\x1b\x85\u00ad\u0301\u0391\u0410"
    "\u200b\u202e\u2028\u2212\uff21\uff15\ufeff\ud800"
)
PIECES = st.sampled_from(
    ["Answer:", "answer:", "**", "Answer: ", "\n", "1e", "nan", "inf", "1/0", "not ", "March", "2024-"]
)
TEXT = st.one_of(
    st.text(st.characters(), max_size=60),
    st.text(HOSTILE, max_size=60),
    st.lists(st.one_of(PIECES, st.text(HOSTILE, max_size=4)), max_size=12).map("".join),
)


def _is_json_text(text: str) -> bool:
    return text != "" and not any("\ud800" <= char <= "\udfff" for char in text)


KEY = TEXT.filter(_is_json_text)


@st.composite
def choice_rows(draw: st.DrawFn) -> tuple[MultipleChoiceInput, MultipleChoiceEval]:
    choices = draw(st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=26, unique=True))
    several = draw(st.booleans())
    most = len(choices) if several else len(choices) - 1
    right = draw(st.lists(st.integers(0, len(choices) - 1), min_size=1, max_size=most, unique=True))
    public = MultipleChoiceInput(question="?", choices=tuple(choices), multi_select=several)
    return public, MultipleChoiceEval(answer=tuple(right))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
ACCEPTED = st.one_of(st.integers(), FINITE, KEY, st.sampled_from(["1/3", "2024-03-05", "March 2024"]))
TOLERANCE = st.one_of(st.none(), st.floats(0, 1e308))


@st.composite
def short_rows(draw: st.DrawFn) -> tuple[ShortAnswerInput, ShortAnswerEval]:
    kind = draw(st.sampled_from([None, "number", "text", "set", "date"]))
    accepted = tuple(draw(st.lists(ACCEPTED, min_size=1, max_size=4)))
    private = ShortAnswerEval(accepted_answers=accepted, tolerance=draw(TOLERANCE))
    return ShortAnswerInput(question="?", answer_format=kind), private


@st.composite
def rubrics(draw: st.DrawFn) -> ContainsAnyRubric:
    texts = st.lists(KEY, max_size=3).map(tuple)
    return ContainsAnyRubric(
        type="contains_any",
        accepted_answers=(draw(KEY), *draw(texts)),
        rejected_answers=draw(texts),
        min_token_f1=draw(st.floats(0.001, 1)),
    )


def is_a_verdict(verdict: TextVerdict) -> bool:
    return verdict.passed is (verdict.reason is None)


@unhurried
@given(choice_rows(), TEXT)
def test_every_response_to_every_choice_gets_a_verdict(row: Any, response: str) -> None:
    assert is_a_verdict(judge_multiple_choice(*row, response))


@unhurried
@given(short_rows(), TEXT)
def test_every_response_to_every_short_question_gets_a_verdict(row: Any, response: str) -> None:
    assert is_a_verdict(judge_short_answer(*row, response))
    list(short_answer.FAMILY.check(*row))


@unhurried
@given(rubrics(), TEXT)
def test_every_response_to_every_rubric_gets_a_verdict(rubric: ContainsAnyRubric, response: str) -> None:
    assert is_a_verdict(judge_contains_any(rubric, response))


REASONING = st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=4).map("\n".join)
FORMS: list[Callable[[str], str]] = [
    lambda answer: answer,
    lambda answer: f"  {answer}\n",
    lambda answer: f"**{answer}**",
    lambda answer: f"Answer: {answer}",
    lambda answer: f"ANSWER:{answer}\r\n",
    lambda answer: f"**Answer:** {answer}",
    lambda answer: f"**Answer: {answer}**",
]


@unhurried
@given(choice_rows(), st.data())
def test_right_letters_in_the_slot_pass_in_every_form(row: Any, data: st.DataObject) -> None:
    public, private = row
    right = multiple_choice.right_options(public.choices, private.answer)
    order = data.draw(st.permutations(sorted(right)))
    names = [LETTERS[index] for index in (order if public.multi_select else order[:1])]
    answer = data.draw(st.sampled_from([", ", ","])).join(
        data.draw(st.sampled_from([name, name.lower(), f"({name})", f"{name}.", f"{name})"])) for name in names
    )
    for form in FORMS:
        assert judge_multiple_choice(public, private, form(answer)).passed


@unhurried
@given(short_rows(), st.data())
def test_accepted_answer_of_a_sound_row_passes_in_every_form(row: Any, data: st.DataObject) -> None:
    public, private = row
    if public.answer_format != "number":
        private = private.model_copy(update={"tolerance": None})
    assume(not list(short_answer.FAMILY.check(public, private)))
    key = short_answer.row_key(public, private)
    accepted = [text if isinstance(text, str) else repr(text) for text in private.accepted_answers]
    answer = "; ".join(accepted) if key.kind == "set" and len(accepted) > 1 else data.draw(st.sampled_from(accepted))
    reasoning = data.draw(REASONING)
    assume("answer" not in reasoning.lower())
    for response in (answer, f"Answer: {answer}", f"{reasoning}\nAnswer: {answer}\n"):
        assert judge_short_answer(public, private, response).passed, response


@unhurried
@given(rubrics())
def test_accepted_answer_of_a_sound_rubric_passes_alone(rubric: ContainsAnyRubric) -> None:
    private = free_response.FreeResponseEval(rubric=rubric)
    assume(not list(free_response.FAMILY.check(free_response.FreeResponseInput(prompt="?"), private)))
    for answer in rubric.accepted_answers:
        assert judge_contains_any(rubric, answer).passed


INVISIBLE = st.sampled_from(
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u202e\u2060\u2066\u2800\u3164\ufe0f\ufeff\U000e0020\x00\x1b\x7f"
)
WORD = st.text(string.ascii_letters, min_size=1, max_size=8)


@unhurried
@given(WORD, INVISIBLE, st.data())
def test_invisible_character_anywhere_in_a_right_answer_fails(word: str, char: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(word)))
    mutated = word[:at] + char + word[at:]
    short = ShortAnswerEval(accepted_answers=(word,))
    assert not judge_short_answer(ShortAnswerInput(question="?"), short, mutated).passed
    rubric = ContainsAnyRubric(type="contains_any", accepted_answers=(word,), min_token_f1=0.01)
    assert not judge_contains_any(rubric, mutated).passed
    letters = MultipleChoiceInput(question="?", choices=("x", "y"))
    assert not judge_multiple_choice(letters, MultipleChoiceEval(answer="B"), f"Answer: B{char}").passed


LOOK_ALIKES = dict(zip("ABCEHIKMOPTXaceopxy", "АВСЕНІКМОРТХасеорху", strict=True))  # Cyrillic


@unhurried
@given(WORD, st.booleans())
def test_look_alike_letters_never_pass(word: str, full_width: bool) -> None:
    mutated = "".join(chr(ord(c) + 0xFEE0) if full_width else LOOK_ALIKES.get(c, c) for c in word)
    assume(mutated != word)
    short = ShortAnswerEval(accepted_answers=(word,))
    assert not judge_short_answer(ShortAnswerInput(question="?"), short, mutated).passed
    rubric = ContainsAnyRubric(type="contains_any", accepted_answers=(word,), min_token_f1=0.01)
    assert not judge_contains_any(rubric, mutated).passed


@unhurried
@given(st.integers(2, 26), st.data())
def test_naming_a_second_option_never_passes(count: int, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(LETTERS[:count]), min_size=2, max_size=count))
    response = data.draw(st.sampled_from([", ", " ", "", " or ", "/", "\n", ") (", "\nAnswer: "])).join(names)
    public = MultipleChoiceInput(question="?", choices=tuple(f"choice {i}" for i in range(count)))
    for right in range(count):
        assert not judge_multiple_choice(public, MultipleChoiceEval(answer=right), f"Answer: {response}").passed


@unhurried
@given(FINITE, FINITE, st.floats(0, 1e300))
def test_number_passes_exactly_when_the_difference_is_within_the_tolerance(a: float, b: float, margin: float) -> None:
    row = ShortAnswerInput(question="?", answer_format="number")
    private = ShortAnswerEval(accepted_answers=(a,), tolerance=margin)
    first, second, allowed = read_number(repr(a)), read_number(repr(b)), read_number(repr(margin))
    assert first is not None
    assert second is not None
    assert allowed is not None
    assert judge_short_answer(row, private, repr(b)).passed is (abs(first - second) <= allowed)


@unhurried
@given(st.fractions())
def test_every_fraction_reads_as_itself(value: Any) -> None:
    text = f"{value.numerator}/{value.denominator}" if value.denominator > 1 else f"{value.numerator}"
    assert read_number(text) == value


@unhurried
@given(st.fractions(), st.integers(2, 50))
def test_a_fraction_that_can_be_reduced_is_no_number(value: Any, factor: int) -> None:
    assert read_number(f"{value.numerator * factor}/{value.denominator * factor}") is None


@unhurried
@given(st.integers(-(10**30), 10**30))
def test_thousands_separators_change_nothing(value: int) -> None:
    assert read_number(f"{value:,}") == value


def spellings(alphabet: str, length: int) -> list[str]:
    return ["".join(chars) for n in range(1, length + 1) for chars in itertools.product(alphabet, repeat=n)]


def collisions(read: Callable[[str], object], texts: list[str]) -> list[tuple[str, str]]:
    seen: dict[object, str] = {}
    found = []
    for text in texts:
        value = read(text)
        if value is not None:
            other = seen.setdefault(value, text)
            if other != text:
                found.append((other, text))
    return found


def differ_only_in_the_case_of_plain_words(first: str, second: str) -> bool:
    before = ""
    for one, other in zip(first.split(), second.split(), strict=True):
        if one != other and (one.lower() != other.lower() or set(before[-1:] + one) & set(string.digits)):
            return False
        before = one
    return True


def test_normaliser_keeps_signs_points_and_units_apart() -> None:
    texts = [text for text in spellings("15-+.,%mM/! ", 4) if text == " ".join(text.split())]
    found = collisions(read_text, texts)
    assert found, "the search must find the harmless ones, or it searches nothing"
    for first, second in found:
        assert differ_only_in_the_case_of_plain_words(first.removesuffix("."), second.removesuffix(".")), (
            first,
            second,
        )


def test_tokens_keep_signs_points_and_units_apart() -> None:
    texts = [text for text in spellings("15-+.%mM/!", 4) if not text.endswith(".")]

    def line(text: str) -> str | None:
        tokens = read_tokens(text)
        return tokens.line if tokens else None

    for first, second in collisions(line, texts):
        assert first.lower() == second.lower(), (first, second)
        assert not set(first + second) & set(string.digits), (first, second)


def test_a_punctuation_stripping_normaliser_would_collide() -> None:
    def naive(text: str) -> str:
        return "".join(c for c in text.lower() if c not in string.punctuation)

    found = collisions(naive, ["1.5", "15", "-5", "5", "C", "C++", "5%"])
    assert {("1.5", "15"), ("-5", "5"), ("C", "C++"), ("-5", "5%")} <= set(found)


@unhurried
@given(choice_rows(), st.sampled_from(["question text", "A", "B?"]))
def test_controls_that_must_fail_do(row: Any, question: str) -> None:
    public, private = row
    for control in negative_controls("multiple_choice", {**public.model_dump(), "question": question + " …"}):
        if control.must_fail:
            assert not judge_multiple_choice(public, private, control.response).passed, control.name
