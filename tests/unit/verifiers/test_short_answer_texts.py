"""Texts as short answers: every response and what it gets."""

from __future__ import annotations

import pytest
from tests.unit.verifiers.short_rows import BAD, NO, PASS, TWO, WRONG, Reason, judge, shown

TEXTS = [
    ("C++ and Objective-C", PASS),
    ("c++ AND objective-c", PASS),
    ("  C++   and\tObjective-C ", PASS),
    ("C++ and\u00a0Objective-C", PASS),
    ("C++ and Objective-C.", PASS),
    ("**C++ and Objective-C**", PASS),
    ("The options are many.\nAnswer: C++ and Objective-C", PASS),
    ("Answer: c++ and objective-c.", PASS),
    ("", NO),
    ("\n\n", NO),
    ("Answer:", NO),
    ("C", WRONG),
    ("C and Objective-C", WRONG),
    ("C+ and Objective-C", WRONG),
    ("C++ and Objective C", WRONG),
    ("C++and Objective-C", WRONG),
    ("Objective-C and C++", WRONG),
    ("not C++ and Objective-C", WRONG),
    ("C++ and Objective-C, or Rust", WRONG),
    ("C++ and Objective-C Rust Go Java", WRONG),
    ("It is C++ and Objective-C", WRONG),
    ("C++ and Objective-C!", WRONG),
    ("C++ and Objective-C..", WRONG),
    ("C++ and Objective-C?", WRONG),
    ('"C++ and Objective-C"', WRONG),
    ("'C++ and Objective-C'", WRONG),
    ("`C++ and Objective-C`", WRONG),
    ("C++ and Objective-C\nor Rust", NO),
    ("Rust\nC++ and Objective-C", NO),
    ("Answer: Rust\nAnswer: C++ and Objective-C", TWO),
    ("Answer: C++ and Objective-C\nAnswer: C++ and Objective-C", TWO),
    ("Answer: C++ and Objective-C\nDone.", BAD),
    ("\u0421++ and Objective-C", WRONG),
    ("\uff23++ and Objective-C", WRONG),
    ("C\uff0b\uff0b and Objective-C", WRONG),
    ("C++ and Objective\u2010C", WRONG),
    ("C++ and Objective\u2212C", WRONG),
    ("C++\u200b and Objective-C", BAD),
    ("C++ and Ob\u00adjective-C", BAD),
    ("\u202eC++ and Objective-C", BAD),
    ("C++ and Objective-C\ufe0f", BAD),
    ("C++ and Objective-C\u3164", BAD),
    ("C++ and Objective-C\u2800", BAD),
    ("C++ and Objective-C\ue000", BAD),
    ("C++ and Objective-C\x00", BAD),
    ("C++ and Objective-C\x1b[0m", BAD),
    ("C++\x0band Objective-C", BAD),
    ("C++ and Objective-C\ud83d", BAD),
    ("{}", WRONG),
    (".*", WRONG),
    ("%", WRONG),
    ("C++ and Objective-C" + " x" * 4_000, WRONG),
    ("C++ and Objective-C " * 10_000, BAD),
    ("a" + "\u0300\u0316" * 4_000, BAD),
    ("x" * 1_000_000, BAD),
]


@pytest.mark.parametrize("response, reason", TEXTS, ids=shown)
def test_text(response: str, reason: Reason) -> None:
    assert judge(response, ["C++ and Objective-C"], "text") is reason
    assert judge(response, ["Perl", "C++ and Objective-C"]) is reason, "the same where the format is derived"


@pytest.mark.parametrize(
    "accepted, response, reason",
    [
        ("caf\u00e9", "cafe\u0301", PASS),
        ("caf\u00e9", "cafe", WRONG),
        ("STRASSE", "stra\u00dfe", PASS),
        ("Hawai'i", "Hawai\u2019i", PASS),
        ("U.S.", "u.s.", PASS),
        ("1.5", "15", WRONG),
        ("1.5", "1,5", WRONG),
        ("-5", "5", WRONG),
        ("+5", "5", WRONG),
        ("5!", "5", WRONG),
        ("50%", "50", WRONG),
        ("3.10", "3.1", WRONG),
        ("007", "7", WRONG),
        ("5 mW", "5 MW", WRONG),
        ("5mW", "5MW", WRONG),
        ("5 mW", "5 mW", PASS),
        ("5 Mbit/s", "5 mbit/s", WRONG),
        ("~5 mW", "~5 MW", WRONG),
        ("3 Apples", "3 apples.", PASS),
        ("1984 Summer Olympics", "1984 summer olympics", PASS),
        ("Apollo 11", "apollo 11", PASS),
        ("1 5", "15", WRONG),
        ("x", "not x", WRONG),
        ("true", "TRUE", PASS),
        ("x\u00b2", "x2", WRONG),
        ("\u6771\u4eac", "\u6771\u4eac", PASS),
        ("\u6771\u4eac", "\u4eac\u6771", WRONG),
    ],
)
def test_normalising_text_keeps_what_carries_meaning(accepted: str, response: str, reason: Reason) -> None:
    assert judge(response, [accepted], "text") is reason
