"""Dates as short answers: every response and what it gets."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.verifiers.short_rows import BAD, NO, PASS, TWO, WRONG, Reason, judge, shown

DATES = [
    ("2024-03-05", PASS),
    ("5 March 2024", PASS),
    ("05 March 2024", PASS),
    ("5 mar 2024", PASS),
    ("March 5, 2024", PASS),
    ("MARCH 5 2024", PASS),
    ("Mar 5, 2024", PASS),
    ("March 5, 2024.", PASS),
    ("It was a Tuesday.\nAnswer: 5 March 2024", PASS),
    ("2024-05-03", WRONG),
    ("2024-03-06", WRONG),
    ("2023-03-05", WRONG),
    ("2024-03", WRONG),
    ("March 2024", WRONG),
    ("2024", WRONG),
    ("3/5/2024", BAD),
    ("03/05/2024", BAD),
    ("05.03.2024", BAD),
    ("2024/03/05", BAD),
    ("2024-3-5", BAD),
    ("20240305", BAD),
    ("24-03-05", BAD),
    ("5 March 24", BAD),
    ("5th March 2024", BAD),
    ("the 5 March 2024", BAD),
    ("Tuesday, 5 March 2024", BAD),
    ("2024-03-05T00:00:00Z", BAD),
    ("2024-03-05 00:00", BAD),
    ("5  March  2024", BAD),
    ("5 M\u00e4rz 2024", BAD),
    ("5 Marchember 2024", BAD),
    ("2024-02-30", BAD),
    ("2024-13-05", BAD),
    ("2024-00-05", BAD),
    ("0000-03-05", BAD),
    ("31 April 2024", BAD),
    ("-2024-03-05", BAD),
    ("2024-03-05 or 2024-03-06", BAD),
    ("2024-03-05, 2024-03-06", BAD),
    ("2024\u201303\u201305", BAD),
    ("\uff12\uff10\uff12\uff14-03-05", BAD),
    ("\u0662\u0660\u0662\u0664-03-05", BAD),
    ("2024-03-05\u200b", BAD),
    ("5 M\u0430rch 2024", BAD),
    ("today", BAD),
    ("", NO),
    ("2024-03-05\n2024-03-06", NO),
    ("Answer: 2024-03-05\nAnswer: 2024-03-06", TWO),
    ("2024-03-05" * 700, BAD),
]


@pytest.mark.parametrize("response, reason", DATES, ids=shown)
def test_date(response: str, reason: Reason) -> None:
    assert judge(response, ["2024-03-05"], "date") is reason
    assert judge(response, ["2024-03-05"]) is reason, "the same where the format is derived"


@pytest.mark.parametrize(
    "accepted, response, reason",
    [
        ("2024-03", "2024-03", PASS),
        ("2024-03", "March 2024", PASS),
        ("2024-03", "2024-03-01", WRONG),
        ("2024-03", "2024", WRONG),
        ("2024", "2024", PASS),
        (2024, "2024", PASS),
        ("2024", "2024-01", WRONG),
        ("2024", "2024-01-01", WRONG),
        ("29 February 2024", "2024-02-29", PASS),
    ],
)
def test_date_is_compared_at_the_accepted_precision(accepted: Any, response: str, reason: Reason) -> None:
    assert judge(response, [accepted], "date") is reason
