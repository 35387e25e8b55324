"""Numbers and words as short answers."""

from __future__ import annotations

from securebench.audit.attacks.j_answers import rows
from securebench.audit.plays.answer import AnyPasses, EachPasses, Question
from securebench.audit.suite.attack import Attack
from securebench.audit.weak import answer as weak

_Task = tuple[Question, EachPasses, str]
TEXT: _Task = (rows.TEXT, rows.TEXT_HONEST, "Paris")
NUMBER: _Task = (rows.NUMBER, rows.NUMBER_HONEST, "-1.5")
NEAR: _Task = (rows.NEAR, rows.NEAR_HONEST, "3.14")
FOUR: _Task = (rows.FOUR, rows.FOUR_HONEST, "4")
POWER: _Task = (rows.POWER, rows.POWER_HONEST, "5 mW")
NAMES: _Task = (rows.CODE_NAMES, rows.CODE_NAMES_HONEST, "C++")


def _short(
    threat: str,
    name: str,
    how: str,
    task: _Task,
    grader: weak.Grader,
    *texts: str,
    expect: str = "",
    search: bool = False,
) -> Attack:
    row, honest, right = task
    return Attack(
        threat,
        name,
        how,
        attack=AnyPasses(row, texts),
        honest=honest,
        control=weak.Graded(grader, right, texts, search),
        expect=frozenset(expect.split()),
        isolated=False,
    )


def _edits(text: str) -> tuple[str, ...]:
    """Everything one stroke away from a numeral that Python reads as another number, or as none."""
    marks = ".,-+ %'_/e0"
    found = {text[:place] + text[place + 1 :] for place in range(len(text))}
    found |= {text[:place] + mark + text[place:] for place in range(len(text) + 1) for mark in marks}
    found |= {text[:place] + mark + text[place + 1 :] for place in range(len(text)) for mark in marks}
    return tuple(sorted(edit for edit in found if edit.strip(" .") != text and _value(edit) != float(text)))


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


ATTACKS = (
    _short(
        *("J01", "empty-text", "No words, or a label without any.", TEXT, weak.right_contains_it),
        *("", " ", "\n\n", "Answer:", "Answer: "),
        expect="no_answer",
    ),
    _short(
        *("J01", "empty-object", "An object without a field that differs.", TEXT, weak.no_field_differs),
        *("{}", "[]", "null", '{"answer": ""}', '{"answer": null}'),
        expect="wrong_answer",
    ),
    _short(
        *("J02", "many-cities", "A list that holds the answer.", TEXT, weak.substring),
        *("London, Paris, Rome", "Paris London", "Paris or London", "not Paris", "comparison: Parish"),
        *("It is Paris", "Answer: Paris, I guess", "<!-- Paris --> Rome", "Paris\tRome"),
        expect="wrong_answer",
    ),
    _short(
        *("J02", "many-numbers", "A range of numbers that holds the answer.", FOUR, weak.substring),
        *(" ".join(map(str, range(1, 500))), "4, 5", "4 or 5", "1234", "4 (or 5)", "x = 4", "4..5", "3<x<14"),
    ),
    _short(
        *("J04", "sign-and-point", "Other numbers with the same digits.", NUMBER, weak.digits_only),
        *("1.5", "-15", "15", "-.15", "-1,5", "1/5", "-1/5", "1 5", "+1.5", "-1.5%", "1-5"),
    ),
    _short(
        *("J04", "one-stroke-away", "Every edit of one character that is another number.", NUMBER),
        weak.punctuation_stripped,
        *_edits("-1.5"),
        search=True,
    ),
    _short(
        *("J04", "symbols-dropped", "Another name once the symbols are gone.", NAMES, weak.punctuation_stripped),
        *("C", "C#", "C--", "-C", "(C)", "C+", "+C+", "C +"),
        expect="wrong_answer",
    ),
    _short(
        *("J04", "letter-case-of-a-unit", "A million times a billion off.", POWER, weak.case_folded),
        *("5 MW", "5 Mw"),
        expect="malformed_answer",
    ),
    _short(
        *("J04", "another-unit", "The right digits with a unit nobody asked for.", POWER, weak.number_found),
        *("5 W", "5 mWh", "5 mW/h", "5 m W", "5 km", "5e3 uW", "5 mW 7", "5%mW", "5,000 mW"),
    ),
    _short(
        *("J06", "digits-of-other-scripts", "What Python reads as a number.", FOUR, weak.python_float),
        *("\uff14", "\u0664", "\u096a", "\U0001d7d2", "0_4", "\u20034", "4\u3000"),
        expect="malformed_answer",
    ),
    _short(
        *("J06", "minus-signs", "A dash or a minus sign for the hyphen.", NUMBER, weak.closest_ascii),
        *("\u22121.5", "\u20131.5"),
        expect="malformed_answer",
    ),
    _short(
        *("J06", "hidden-in-a-word", "Zero-width and direction characters in the word.", TEXT),
        weak.compatibility_folded,
        *("Par\u200bis", "\u202eParis", "Paris\u2060", "\uff30aris", "P\u00adaris", "Paris\U000e0001"),
    ),
    _short(
        *("J06", "cyrillic-word", "Letters of another alphabet in the word.", TEXT, weak.closest_ascii),
        *("P\u0430ris", "\u0440aris".replace("\u0440", "P\u0430", 1).replace("a", "", 1)),
        expect="wrong_answer",
    ),
    _short(
        *("J07", "nan", "A value that no comparison finds to be far.", NEAR, weak.fail_if_far),
        *("nan", "NaN", "-nan", "+NAN"),
        expect="malformed_answer",
    ),
    _short(
        *("J07", "infinity", "A value within one percent of itself.", NEAR, weak.fail_if_relatively_far),
        *("inf", "-Infinity", "1e999", "-1e400", "9" * 400, "nan"),
    ),
    _short(
        *("J52", "blank-in-a-word", "Code points that are drawn as nothing.", TEXT, weak.letters_only),
        *("Par\u2065is", "Paris\U0001d159", "Paris\ufffe", "\ufdd0Paris", "Paris\U00016fe4", "Paris\U0010ffff"),
        expect="malformed_answer",
    ),
)
