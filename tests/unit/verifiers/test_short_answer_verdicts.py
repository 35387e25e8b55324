"""The answer grammar of short_answer as tables: every response and what it gets, one table per format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_graders as naive
import pytest

from securebench import _json
from securebench.errors import FailureReason
from securebench.families.short_answer import ShortAnswerEval, ShortAnswerInput
from securebench.verifiers.short_answer import judge_short_answer

PASS = None
NO = FailureReason.NO_ANSWER
BAD = FailureReason.MALFORMED_ANSWER
TWO = FailureReason.AMBIGUOUS_ANSWER
WRONG = FailureReason.WRONG_ANSWER

Reason = FailureReason | None


def judge(response: str, accepted: Any, answer_format: Any = None, tolerance: Any = None) -> Reason:
    public = ShortAnswerInput.model_validate_json(_json.dumps({"question": "?", "answer_format": answer_format}))
    private = ShortAnswerEval.model_validate_json(_json.dumps({"accepted_answers": accepted, "tolerance": tolerance}))
    verdict = judge_short_answer(public, private, response)
    assert verdict.passed == (verdict.reason is None)
    return verdict.reason


def shown(value: object) -> str:
    return str(value)[:40].encode("unicode_escape").decode()


NUMBERS = [
    # spellings of -1234.5
    ("-1234.5", PASS),
    ("-1,234.5", PASS),
    ("-1234.50", PASS),
    ("-01234.5", PASS),
    ("-1.2345e3", PASS),
    ("-1.2345E+3", PASS),
    ("-12345e-1", PASS),
    ("-2469/2", PASS),
    ("-1234 1/2", PASS),
    ("-123450%", PASS),
    ("-123450 %", PASS),
    ("-1234.5.", PASS),
    ("**-1234.5**", PASS),
    ("Some text with 7 and 8.\nAnswer: -1234.5", PASS),
    ("**Answer:** -1,234.5", PASS),
    # the sign, the point and the size count
    ("1234.5", WRONG),
    ("-12345", WRONG),
    ("-123.45", WRONG),
    ("-1234.5%", WRONG),
    ("-1234", WRONG),
    ("-1234.4999999999999999999999", WRONG),
    ("-1234.50000000000000000000001", WRONG),
    ("0", WRONG),
    ("-0", WRONG),
    # not one number
    ("", NO),
    ("Answer:", NO),
    ("about -1234.5", BAD),
    ("-1234.5 or so", BAD),
    ("-1234.5, 7", BAD),
    ("-1234.5 -1234.5", BAD),
    ("x = -1234.5", BAD),
    ("=-1234.5", BAD),
    ("The answer is -1234.5", BAD),
    ("I say\n-1234.5", NO),
    ("Answer: -1234.5\nAnswer: 7", TWO),
    ("Answer: 7\n-1234.5", BAD),
    ("-1234.5..", BAD),
    ("- 1234.5", BAD),
    ("--1234.5", BAD),
    ("+-1234.5", BAD),
    ("(1234.5)", BAD),
    ("-1234,5", BAD),
    ("-1.234,5", BAD),
    ("-1 234.5", BAD),
    ("-1'234.5", BAD),
    ("-1_234.5", BAD),
    ("-12,34.5", BAD),
    ("-1,2345", BAD),
    ("-,123", BAD),
    ("-1234.5 km", BAD),
    ("-$1234.5", BAD),
    ("-1234.5e", BAD),
    ("-1234.5e1.0", BAD),
    ("-1.2345x10^3", BAD),
    ("-0x4D2", BAD),
    ("-0b1", BAD),
    ("-1234.5f", BAD),
    ("-1234.5j", BAD),
    ("true", BAD),
    ("True", BAD),
    ("null", BAD),
    ("-", BAD),
    (".", BAD),
    ("e5", BAD),
    ("%", BAD),
    ("/", BAD),
    ("1/0", BAD),
    ("0/0", BAD),
    ("1//2", BAD),
    ("1/2/3", BAD),
    ("1/-2", BAD),
    ("1 3/2", BAD),
    # J07: nothing that is not finite
    ("nan", BAD),
    ("NaN", BAD),
    ("-nan", BAD),
    ("inf", BAD),
    ("-Infinity", BAD),
    ("\u221e", BAD),
    ("1e999", BAD),
    ("-1e401", BAD),
    # J06: look-alikes and invisible characters
    ("\u22121234.5", BAD),
    ("\u20131234.5", BAD),
    ("-\uff11\uff12\uff13\uff14.5", BAD),
    ("-\u0661\u0662\u0663\u0664.5", BAD),
    ("-1234\u00b75", BAD),
    ("-1234\u066b5", BAD),
    ("-1234.5\u200b", BAD),
    ("\u202e5.4321-", BAD),
    ("-1\u00a0234.5", BAD),
    ("-1234\u00bd", BAD),
    ("-1234.5\x00", BAD),
    # J08: nothing is evaluated
    ("-1000-234.5", BAD),
    ("-(1234.5)", BAD),
    ("-1234.5*1", BAD),
    ("float('-1234.5')", BAD),
    ("__import__('os').getpid()", BAD),
    ("\\frac{-2469}{2}", BAD),
    ("sqrt(4)", BAD),
    # J09: bombs
    ("1e999999999", BAD),
    ("1e" + "9" * 50_000, BAD),
    ("9**9**9**9", BAD),
    ("9" * 5_000, BAD),
    ("1/" + "3" * 5_000, BAD),
    ("9" * 1_000_000, BAD),
    ("1" + ",000" * 10_000, BAD),
    ("[" * 60_000, BAD),
]


@pytest.mark.parametrize("response, reason", NUMBERS, ids=shown)
def test_number(response: str, reason: Reason) -> None:
    assert judge(response, [-1234.5], "number") is reason
    assert judge(response, [-1234.5]) is reason, "the same where the format is derived"


@pytest.mark.parametrize(
    "response, accepted, tolerance, reason",
    [
        ("0.1", [0.1], None, PASS),
        ("1/10", [0.1], None, PASS),
        ("10%", [0.1], None, PASS),
        ("0.3", [0.1, 0.2], None, WRONG),
        ("0.2", [0.1, 0.2], None, PASS),
        ("50%", [50], None, WRONG),
        ("0", [-0.0], None, PASS),
        ("-0", [0], None, PASS),
        ("1e400", ["1e400"], None, PASS),
        ("0.33", ["1/3"], None, WRONG),
        ("2/6", ["1/3"], None, PASS),
        ("9007199254740993", [9007199254740993], None, PASS),
        ("9007199254740992", [9007199254740993], None, WRONG),
        ("3.15", [3.14], 0.01, PASS),
        ("3.13", [3.14], 0.01, PASS),
        ("3.1500000000000000001", [3.14], 0.01, WRONG),
        ("3.14", [3.14], 0, PASS),
        ("3.1400001", [3.14], 0, WRONG),
        ("101", [100], {"relative": 0.01}, PASS),
        ("101.01", [100], {"relative": 0.01}, WRONG),
        ("-99", [-100], {"relative": 0.01}, PASS),
        ("100", [-100], {"relative": 0.9}, WRONG),
        ("0.001", [0], {"relative": 0.9}, WRONG),
        ("0.001", [0], {"relative": 0.9, "absolute": 0.001}, PASS),
        ("nan", [3.14], 1e308, BAD),
        ("inf", [3.14], 1e308, BAD),
        ("1e309", [3.14], 1e308, WRONG),
    ],
)
def test_number_is_exact_or_within_the_tolerance(response: str, accepted: Any, tolerance: Any, reason: Reason) -> None:
    assert judge(response, accepted, "number", tolerance) is reason


@pytest.mark.parametrize(
    "unit, response, reason",
    [
        ("km", "5", PASS),
        ("km", "5 km", PASS),
        ("km", "5km", PASS),
        ("km", "5 km.", PASS),
        ("km", "5e0 km", PASS),
        ("km", "5 m", BAD),
        ("km", "5 KM", BAD),
        ("km", "5 km km", BAD),
        ("km", "5 km/h", BAD),
        ("km", "km 5", BAD),
        ("km", "km", BAD),
        ("km", "500% km", BAD),
        ("km", "500%", PASS),
        ("km", "-5 km", WRONG),
        ("km", "5\u200b km", BAD),
        ("km", "5 \u043am", BAD),
        ("mW", "5 mW", PASS),
        ("mW", "5 MW", BAD),
        ("in.", "5 in.", PASS),
        ("$", "$5", PASS),
        ("$", "$ 5", PASS),
        ("$", "5 $", PASS),
        ("$", "$5$", BAD),
        ("$", "-$5", WRONG),
        ("$", "\u20ac5", BAD),
        ("%", "5%", PASS),
        ("%", "5 %", PASS),
        ("%", "5", PASS),
        ("%", "5%%", BAD),
        ("%", "0.05", WRONG),
        ("\u00b5m", "5 \u03bcm", PASS),
        ("\u00c5", "5 A\u030a", PASS),
        ("m/s", "10/2 m/s", PASS),
        ("eV", "5eV", PASS),
        ("eV", "0.5e1eV", PASS),
    ],
)
def test_unit_is_optional_where_declared_and_never_another(unit: str, response: str, reason: Reason) -> None:
    assert judge(response, [5], {"type": "number", "unit": unit}) is reason


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


SETS = [
    ("2, 3, 5", PASS),
    ("5,3,2", PASS),
    ("5; 2; 3", PASS),
    ("2, 3, 10/2", PASS),
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


@pytest.mark.parametrize(
    "grader, response, right, answer_format",
    [
        (naive.substring, "red green blue", "green", "text"),
        (naive.substring, "not green", "green", "text"),
        (naive.punctuation_stripped, "15", "1.5", "number"),
        (naive.punctuation_stripped, "5", "-5", "number"),
        (naive.punctuation_stripped, "15", "1.5", "text"),
        (naive.punctuation_stripped, "5", "-5", "text"),
        (naive.punctuation_stripped, "C", "C++", "text"),
        (naive.punctuation_stripped, "1 5", "15", "text"),
        (naive.case_folded, "5 MW", "5 mW", "text"),
        (naive.fail_if_far, "nan", "3.14", "number"),
        (naive.evaluated, "__import__('os').getpid() and 5", "5", "number"),
        (naive.evaluated, "type('X', (), {'__eq__': lambda s, o: True})()", "5", "number"),
        (naive.first_number, "5 or 6 or 7", "5", "number"),
        (naive.compatibility_folded, "\uff15", "5", "number"),
        (naive.compatibility_folded, "gre\u200ben", "green", "text"),
    ],
)
def test_attack_fools_a_naive_grader_and_not_this_one(
    grader: naive.Grader, response: str, right: str, answer_format: str
) -> None:
    assert grader(response, right)
    assert judge(response, [right], answer_format) is not PASS


def test_payload_that_a_naive_grader_executes_stays_text(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    payload = f"open({str(marker)!r}, 'w').close() or 5"
    for answer_format in ("number", "text", "set", "date"):
        judge(payload, ["2024"], answer_format)
    assert not marker.exists()
    assert naive.evaluated(payload, "5")
    assert marker.exists()


def test_metadata_shows_the_candidates_answer_and_nothing_of_the_key() -> None:
    public = ShortAnswerInput(question="?", answer_format="text")
    private = ShortAnswerEval(accepted_answers=("the-hidden-key",))
    assert judge_short_answer(public, private, "Answer: mine").metadata == {"answer": "mine", "rule": "final_line"}
    long = judge_short_answer(public, private, "y" * 8_000).metadata["answer"]
    assert len(long) == 200
