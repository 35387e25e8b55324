"""Sets as short answers: every response and what it gets."""

from __future__ import annotations

import pytest
from tests.unit.verifiers.short_rows import BAD, NO, PASS, TWO, WRONG, Reason, judge, shown

SETS = [
    ("2, 3, 5", PASS),
    ("5,3,2", PASS),
    ("5; 2; 3", PASS),
    ("2, 3, 10/2", BAD),
    ("2.0, 3e0, 500%", PASS),
    ("2, 3, 5.", PASS),
    ("Primes!\nAnswer: 2, 3, 5", PASS),
    ("2, 3", WRONG),
    ("2, 3, 5, 7", WRONG),
    ("2, 3, -5", WRONG),
    ("2", WRONG),
    ("2, 3, 5, 5", BAD),
    ("2, 3, 5, 5.0", BAD),
    ("2, 3, 5,", BAD),
    (",2, 3, 5", BAD),
    ("2,, 3, 5", BAD),
    ("2 3 5", BAD),
    ("2, 3 and 5", BAD),
    ("2, 3, and 5", BAD),
    ("{2, 3, 5}", BAD),
    ("[2, 3, 5]", BAD),
    ("(2, 3, 5)", BAD),
    ("2, 3; 5", BAD),
    ("2\n3\n5", NO),
    ("2, 3, nan", BAD),
    ("2, 3, five", BAD),
    ("2, 3, \uff15", BAD),
    ("2, 3, 5\u200b", BAD),
    ("Answer: 2\nAnswer: 3", TWO),
    (", ".join(map(str, range(100))), WRONG),
    (", ".join(map(str, range(1000))), BAD),
    ("," * 8_000, BAD),
    ("", NO),
    ("Answer: ", NO),
    ("set()", BAD),
]


@pytest.mark.parametrize("response, reason", SETS, ids=shown)
def test_set_of_numbers(response: str, reason: Reason) -> None:
    assert judge(response, [2, 3, 5], "set") is reason


@pytest.mark.parametrize(
    "response, reason",
    [
        ("red, Green", PASS),
        ("GREEN; red.", PASS),
        ("red", WRONG),
        ("red, green, blue", WRONG),
        ("red, green, not blue", WRONG),
        ("red, Red", BAD),
        ("red and green", WRONG),
        ("red, gr\u0435en", WRONG),
        ("red, green\u200d", BAD),
    ],
)
def test_set_of_texts(response: str, reason: Reason) -> None:
    assert judge(response, ["red", "green"], "set") is reason


def test_semicolons_let_an_element_contain_a_comma() -> None:
    accepted = ["Paris, France", "Rome"]
    assert judge("Rome; Paris, France", accepted, "set") is PASS
    assert judge("Rome, Paris, France", accepted, "set") is WRONG
