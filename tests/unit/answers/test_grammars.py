"""The grammars on their own: what each reads, and the bounds that keep it total and fast."""

from __future__ import annotations

from fractions import Fraction

import pytest

from securebench.answers.characters import (
    MAX_ANSWER,
    MAX_COMBINING,
    MAX_RESPONSE,
    is_readable,
    without_invisible,
)
from securebench.answers.dates import Date, is_iso_date, read_date
from securebench.answers.numbers import MAX_DIGITS, exact, read_number, unit_problem
from securebench.answers.sets import MAX_ELEMENTS, read_set
from securebench.answers.short import kind_of
from securebench.answers.slot import Slot, final_slot
from securebench.answers.text import read_text
from securebench.answers.tokens import read_tokens
from securebench.answers.verdict import TextVerdict
from securebench.errors import FailureReason


@pytest.mark.parametrize(
    "response, text, rule",
    [
        ("x", "x", "whole_response"),
        ("\n x y \n", "x y", "whole_response"),
        ("**x**", "x", "whole_response"),
        ("Answer: x", "x", "final_line"),
        ("a\nb\n\n  answer:x  ", "x", "final_line"),
        ("**Answer: x**", "x", "final_line"),
        ("**Answer:** **x**", "x", "final_line"),
        ("Answer: **", "**", "final_line"),
        ("Answer: x** y", "x** y", "final_line"),
        ("The answer: y\nAnswer: x: y", "x: y", "final_line"),
        ("Answers: y", "Answers: y", "whole_response"),
    ],
)
def test_final_slot_is_the_whole_line_or_the_last_answer_line(response: str, text: str, rule: str) -> None:
    assert final_slot(response) == Slot(text, rule)


def test_response_and_answer_are_read_up_to_their_caps_and_no_further() -> None:
    reasoning = "x" * (MAX_RESPONSE - len("\nAnswer: B"))
    assert final_slot(f"{reasoning}\nAnswer: B") == Slot("B", "final_line")
    assert isinstance(final_slot(f"{reasoning}x\nAnswer: B"), TextVerdict)
    assert final_slot("y" * MAX_ANSWER) == Slot("y" * MAX_ANSWER, "whole_response")
    assert isinstance(final_slot("y" * (MAX_ANSWER + 1)), TextVerdict)


@pytest.mark.parametrize(
    "text, value",
    [
        ("0", 0),
        ("+7", 7),
        ("007", 7),
        (".5", Fraction(1, 2)),
        ("-.5", Fraction(-1, 2)),
        ("1,234,567.8", Fraction(12345678, 10)),
        ("1e-2", Fraction(1, 100)),
        ("1,000e3", 10**6),
        ("12.5%", Fraction(1, 8)),
        ("6/4", None),
        ("144/12", None),
        ("5/1", None),
        ("3/2", Fraction(3, 2)),
        ("2 1/4", Fraction(9, 4)),
        ("-2 1/4", Fraction(-9, 4)),
        ("1e400", 10**400),
        ("0,123", None),
        ("1,23", None),
        ("1234,567", None),
        ("1,234,56", None),
        ("1.234.567", None),
        ("1e401", None),
        ("1e-401", None),
        ("1/2%", None),
        ("2 4/4", None),
        ("2  1/4", None),
        ("-2 -1/4", None),
        ("", None),
        ("+", None),
        ("²", None),
    ],
)
def test_number(text: str, value: int | Fraction | None) -> None:
    assert read_number(text) == value


def test_digits_are_bounded() -> None:
    assert read_number("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1
    assert read_number("9" * (MAX_DIGITS + 1)) is None
    assert read_number("1/" + "9" * MAX_DIGITS) == Fraction(1, 10**MAX_DIGITS - 1)
    assert read_number("1/" + "9" * (MAX_DIGITS + 1)) is None


@pytest.mark.parametrize(
    "text, unit, value",
    [
        ("5 kg", "kg", 5),
        ("5kg", "kg", 5),
        ("5   kg", "kg", 5),
        ("$ 5", "$", 5),
        ("5\tkg", "kg", None),
        ("5\u00a0kg", "kg", None),
        ("$\t5", "$", None),
        ("kg 5", "kg", None),
    ],
)
def test_nothing_but_spaces_stands_between_a_number_and_its_unit(text: str, unit: str, value: int | None) -> None:
    assert read_number(text, unit) == value


def test_number_of_the_pack_is_what_its_author_wrote() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert exact(1e-300) == Fraction(1, 10**300)
    assert exact(2**70) == 2**70


@pytest.mark.parametrize("unit", ["km", "%", "$", "m/s", "°C", "eV", "e", "kg·m²", "in."])
def test_unit_that_cannot_be_mistaken_is_fine(unit: str) -> None:
    assert unit_problem(unit) is None


@pytest.mark.parametrize(
    "unit", ["5", "0", ".5", ",000", "/2", "-", "+x", "e5", "E-3", " km", "km\n", "k\u200bm", "k\tm", "1st"]
)
def test_unit_that_looks_like_digits_is_a_problem(unit: str) -> None:
    assert unit_problem(unit) is not None


@pytest.mark.parametrize(
    "text, value",
    [
        ("1999", Date(1999)),
        ("1999-12", Date(1999, 12)),
        ("Dec 1999", Date(1999, 12)),
        ("may 1 2000", Date(2000, 5, 1)),
        ("0001-01-01", Date(1, 1, 1)),
        ("2023-02-29", None),
        ("99", None),
        ("Ma 1999", None),
        ("1999-12-", None),
        ("1999-12-31\n", None),
    ],
)
def test_date(text: str, value: Date | None) -> None:
    assert read_date(text) == value


def test_iso_date_is_a_day_that_exists() -> None:
    assert is_iso_date("2024-02-29")
    assert not is_iso_date("2023-02-29")
    assert not is_iso_date("2024-02")
    assert not is_iso_date("29 Feb 2024")


@pytest.mark.parametrize(
    "accepted, kind",
    [
        ([1, 2.5], "number"),
        (["1"], "text"),
        ([1, "one"], "text"),
        (["2024-03-05"], "date"),
        (["2024-03-05", "2024-02-30"], "text"),
        (["2024"], "text"),
        (["a", "b"], "text"),
    ],
)
def test_format_is_derived_from_json_types_and_iso_dates_only(accepted: list[int | float | str], kind: str) -> None:
    assert kind_of(accepted) == kind


def test_set_reads_each_element_once_and_at_most_so_many() -> None:
    assert read_set("b, a", read_text) == {"a", "b"}
    assert read_set("a, A", read_text) is None
    assert read_set(",".join(map(str, range(MAX_ELEMENTS))), read_text) is not None
    assert read_set(",".join(map(str, range(MAX_ELEMENTS + 1))), read_text) is None


def test_readable_text_has_no_invisible_character() -> None:
    assert is_readable("Grüße, 東京, é, עברית, हिन्दी, 🙂\t")
    for (
        char
    ) in "\x00\x07\x1b\x7f\x85\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u202e\u2028\u2066\u2800\u3164\ufe0f\ufeff":
        assert not is_readable(f"a{char}b"), hex(ord(char))
    assert not is_readable("\ud800")
    assert not is_readable("\U000e0041")
    assert is_readable("a\nb", also="\n")
    assert not is_readable("a\nb")


def test_long_runs_of_combining_marks_are_refused_because_normalising_them_is_slow() -> None:
    run = "\u0300\u0316"
    assert is_readable("a" + run * (MAX_COMBINING // 2))
    assert not is_readable("a" + run * (MAX_COMBINING // 2 + 1))


@pytest.mark.parametrize(
    "text, line",
    [
        ("The Cat, sat.", " the cat sat "),
        ('say "hi"', " say hi "),
        ('5" pipe', ' 5" pipe '),
        ('"5"', ' "5" '),
        ("**bold words** here", " bold words here "),
        ("2**3**4 **kwargs", " 2**3**4 **kwargs "),
        ("don\u2019t", " don't "),
        ("5! n! x?", " 5! n! x "),
        ("[1, 2)", " [1 2) "),
        ("... , ;", " "),
    ],
)
def test_tokens_keep_what_carries_meaning(text: str, line: str) -> None:
    tokens = read_tokens(text)
    assert tokens is not None
    assert tokens.line == line


@pytest.mark.parametrize(
    "text, line",
    [
        ("P\u0336a\u0336ris", " paris "),  # struck out
        ("\u0333Paris", " paris "),
        ("P\u20ddaris", " paris "),  # in a circle
        ("\u1f00\u0336x", " \u1f00x "),
        ("\u1e01\u0336x", " \u1e01x "),
        ("x \u0939\u093f\u0902\u0926\u0940 x", " x \u0939\u093f\u0902\u0926\u0940 x "),  # marks that are letters
        ("\u0e01\u0e35\u0e48", " \u0e01\u0e35\u0e48 "),
        ("\u2261\u20d2", " \u2261\u20d2 "),
        ("(5) [x] {y}", " 5 x y "),
        ("$x .net $5 .5 -x", " x net $5 .5 -x "),
        ("C++ C# 50% x!", " c++ c# 50% x "),
        ("Paris/London km/h", " paris london km/h "),
        ("\uff30aris\u2122", " paris "),
    ],
)
def test_folded_tokens_leave_out_what_only_decorates(text: str, line: str) -> None:
    tokens = read_tokens(text)
    assert tokens is not None
    assert tokens.folded().line == line


def test_text_as_a_person_sees_it_has_no_invisible_character() -> None:
    assert without_invisible("a\u200b\tb\n\u3164c\x00\u202e \ue000d\ud800") == "a\tb\nc d"


def test_verdict_has_a_reason_exactly_when_it_failed() -> None:
    with pytest.raises(ValueError, match="reason"):
        TextVerdict(True, "x", FailureReason.WRONG_ANSWER)
    with pytest.raises(ValueError, match="reason"):
        TextVerdict(False, "x")
