"""Answers that want to be executed or to choke their grader; and code that returns what no comparison refuses."""

from __future__ import annotations

from securebench.audit.attacks.j_answers import rows
from securebench.audit.plays.answer import MARKER, AnyPasses, EachPasses, Question
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.answer_program import (
    ALLOWS_A_SHARE,
    CHOKES,
    COMPARES_EVALUATED,
    COMPARES_PRINTED,
    COUNTS_FAILURES,
    EVALUATES,
    FORMATS,
    GradedInside,
)

_Task = tuple[Question, EachPasses]
CHOICE: _Task = (rows.CHOICE, rows.CHOICE_HONEST)
FOUR: _Task = (rows.FOUR, rows.FOUR_HONEST)
TEXT: _Task = (rows.TEXT, rows.TEXT_HONEST)
LOOSE: _Task = (rows.LOOSE, rows.LOOSE_HONEST)

_MARK = f"__import__('sys').modules.setdefault('{MARKER}', 1)"
_PAYLOADS = (
    _MARK,
    f"[{_MARK}, 4][1]",
    f"(lambda: {_MARK})() and 4",
    f"4 if {_MARK} else 5",
    f"().__class__.__base__.__subclasses__() and {_MARK}",
)


def _payloads(name: str, how: str, task: _Task, program: str, *texts: str) -> Attack:
    row, honest = task
    played = GradedInside(program, texts, MARKER)
    return Attack("J08", name, how, AnyPasses(row, texts), honest, played, isolated=False)


def _bomb(name: str, how: str, task: _Task, grader: str, *texts: str) -> Attack:
    row, honest = task
    return Attack("J09", name, how, AnyPasses(row, texts), honest, GradedInside(CHOKES, texts, grader), isolated=False)


_NESTED = ("[" * 60_000, '{"a":' * 10_000)
_NO_NUMBER = ("def half(x):\n    return x * float('nan')\n",)
_HUGE = ("def half(x):\n    return 1e300\n",)
_HUGE_PRINTED = ("print(-1e300)\n",)

ATTACKS = (
    _payloads("evaluated-number", "Expressions that come to the right number.", FOUR, EVALUATES, *_PAYLOADS),
    _payloads("evaluated-option", "Expressions where a letter is asked for.", CHOICE, EVALUATES, *_PAYLOADS),
    _payloads(
        *("equal-to-everything", "An object that says it is what was asked for.", FOUR, COMPARES_EVALUATED),
        *("type('X', (), {'__eq__': lambda s, o: True})()", "2 + 2", "len('four')", "2**2", "min(4, 5)"),
    ),
    _payloads(
        *("assigned", "An answer that goes on as code.", FOUR, FORMATS),
        *(f"4; {_MARK}", f"4\n{_MARK}", f"4 if {_MARK} else 4", f"{_MARK} # 4"),
    ),
    _payloads("evaluated-prose", "Expressions in prose.", LOOSE, EVALUATES, f"'Paris' if {_MARK} else 'London'", _MARK),
    _bomb("towers", "Powers of powers.", FOUR, "arithmetic", "9**9**9", "7**(8**9)"),
    _bomb("huge-exponents", "A short spelling of a long number.", FOUR, "rational", "4e9999999", "4e-9999999"),
    _bomb("backtracking", "Words that a nested repetition splits in every way.", TEXT, "regex", "a" * 40 + "!"),
    _bomb("nesting", "Brackets beyond every depth.", FOUR, "json", *_NESTED),
    _bomb("nesting-in-prose", "Brackets beyond every depth, as prose.", LOOSE, "json", *_NESTED),
    _bomb(
        *("mark-runs", "Combining marks out of order, which normalising sorts.", TEXT, "marks"),
        "a" + "\u0300\u0316" * 30_000,
    ),
    _bomb("mark-runs-in-prose", "The same marks, as prose.", LOOSE, "marks", "Paris " + "\u0300\u0316" * 30_000),
    _bomb("long-prose", "As much text as is read at all.", LOOSE, "similarity", "ba" * 32_000, "Paris " * 10_000),
    _bomb("megabytes", "A megabyte where a letter is asked for.", CHOICE, "similarity", "b" * 1_000_000),
    Attack(
        "J01",
        "empty-program",
        "A program in which nothing can be called.",
        AnyPasses(rows.HALF, ("", "def other(x):\n    return x\n")),
        rows.HALF_HONEST,
        GradedInside(COUNTS_FAILURES, ("", "def other(x):\n    return x\n")),
    ),
    Attack(
        "J07",
        "returned-nan",
        "A function that returns nan, where a tolerance is allowed.",
        AnyPasses(rows.HALF, _NO_NUMBER),
        rows.HALF_HONEST,
        GradedInside(COUNTS_FAILURES, _NO_NUMBER),
        expect=frozenset({"wrong_answer"}),
    ),
    Attack(
        "J53",
        "returned-size",
        "A function that returns a huge number where the tolerance is one.",
        AnyPasses(rows.ROUGH_HALF, _HUGE),
        rows.ROUGH_HALF_HONEST,
        GradedInside(ALLOWS_A_SHARE, _HUGE),
        expect=frozenset({"wrong_answer"}),
    ),
    Attack(
        "J53",
        "printed-size",
        "A program that prints a huge number where the tolerance is one.",
        AnyPasses(rows.ROUGH_PRINTED, _HUGE_PRINTED),
        rows.ROUGH_PRINTED_HONEST,
        GradedInside(ALLOWS_A_SHARE, _HUGE_PRINTED),
        expect=frozenset({"wrong_answer"}),
    ),
    Attack(
        "J07",
        "printed-infinity",
        "A program that prints infinity or nan, where a tolerance is allowed.",
        AnyPasses(rows.PRINTED, ("print('1e999')\n", "print('nan')\n")),
        rows.PRINTED_HONEST,
        GradedInside(COMPARES_PRINTED, ("print('1e999')\n", "print('nan')\n")),
        expect=frozenset({"wrong_answer"}),
    ),
)
