"""Prose before a deterministic rubric."""

from __future__ import annotations

from securebench.audit.attacks.j_answers import rows
from securebench.audit.plays.answer import AnyPasses, EachPasses, Question
from securebench.audit.suite.attack import Attack
from securebench.audit.weak import answer as weak

_Task = tuple[Question, EachPasses, str]
STRICT: _Task = (rows.FREE, rows.FREE_HONEST, "Paris")
LOOSE: _Task = (rows.LOOSE, rows.LOOSE_HONEST, "Paris|London")
FEW: _Task = (rows.FEW_WORDS, rows.FEW_WORDS_HONEST, "Paris")


def _free(
    threat: str, name: str, how: str, task: _Task, grader: weak.Grader, *texts: str, expect: str = "wrong_answer"
) -> Attack:
    row, honest, right = task
    return Attack(
        threat,
        name,
        how,
        attack=AnyPasses(row, texts),
        honest=honest,
        control=weak.Graded(grader, right, texts),
        expect=frozenset(expect.split()),
        isolated=False,
    )


ATTACKS = (
    _free(
        *("J01", "nothing-in-prose", "Blanks and punctuation.", STRICT, weak.said_something),
        *(" ", "...", '""', "\n", "?", ";"),
        expect="no_answer",
    ),
    _free(
        *("J02", "words-in-any-order", "All words that could be asked for.", STRICT, weak.token_recall),
        *("London Paris Rome", "Rome is not Paris", "paris-rome", "Paris, Paris", "the capital is Paris or Lyon"),
    ),
    _free(
        *("J02", "needle-in-a-word", "A word that holds the answer.", STRICT, weak.substring),
        *("Parisian", "comparison", "Parish", "<p hidden>Paris</p>", "[Paris](Rome)", "Paris!Rome"),
    ),
    _free(
        *("J50", "bracketed", "The rejected answer in brackets, quotes or emphasis.", LOOSE),
        weak.says_and_does_not_reject,
        *("Paris (London)", "Paris (London.).)", "Paris *london*", "Paris 'London!'", "Paris ~~London~~"),
        *("Paris \u2018London\u2019", "Paris \u2039London\u203a", "Paris \u00bfLondon?"),
    ),
    _free(
        *("J50", "marked", "The rejected answer behind a symbol.", LOOSE, weak.says_and_does_not_reject),
        *("Paris #London", "Paris |London|", "Paris =London", "Paris @London", "Paris $London$", "Paris ^London"),
        *("Paris \u2022London", "Paris \u2192London", "Paris /London/", "Paris London\u00b7"),
    ),
    _free(
        *("J50", "joined", "The rejected answer joined to another word.", LOOSE, weak.says_and_does_not_reject),
        *("Paris \u2014London", "Paris London\u2014Rome", "Paris London,Rome", "Paris London;", "Paris Rome|London"),
        *("Paris London/Rome", "Paris London...Rome", "Paris Rome\u2026London"),
    ),
    _free(
        *("J50", "overlaid", "The rejected answer underlined, struck out or full-width.", LOOSE),
        weak.says_and_does_not_reject,
        *("Paris L\u0332o\u0332n\u0332d\u0332o\u0332n\u0332", "Paris London\u0336", "Paris \uff2condon"),
        *(
            "Paris \U0001d40bondon",
            "Paris LONDON",
            "Paris L\u20ddondon",
            "Paris Lon\u0489don",
            "Paris London\u0e47",
            "Paris London\u2122",
        ),
    ),
    _free(
        *("J51", "hyphenated-sentence", "A retraction with hyphens for spaces.", FEW, weak.few_words),
        *("Paris is-wrong-and-so-is-all-else", "Paris or_Rome_or_Berlin_or_Madrid", "Paris or.is.it.Rome"),
    ),
    _free(
        *("J51", "listed-without-spaces", "Other answers in a list without spaces.", FEW, weak.few_words),
        *("Paris Rome,Berlin,Madrid,Lisbon", "Paris Rome/Berlin/Madrid", "Paris (Rome)(Berlin)(Madrid)"),
    ),
    _free(
        *("J51", "run-together", "A sentence without any joint at all.", FEW, weak.few_words),
        "Paris orRomeorBerlinorMadridorLisbonorViennaorPragueorOslo",
        "Paris \u3067\u306f\u306a\u304f\u5927\u962a\u3067\u3059",
        "Paris " + "".join(chr(0x24D0 + ord(char) - ord("a")) for char in "isnottherightanswerbutromeis"),
        "Paris " + "".join(chr(0x1F1E6 + ord(char) - ord("a")) for char in "isnottherightanswerbutromeis"),
    ),
    _free(
        *("J52", "blank-in-a-rejected-word", "The rejected answer with a blank nobody sees.", LOOSE),
        weak.says_and_does_not_reject,
        *("Paris Lon\u2065don", "Paris Lon\ufffedon", "Paris London\U0001d159", "Paris Lon\U00016fe4don"),
        *("Paris Lon\u200bdon", "Paris Lon\u034fdon", "Paris Lon\U0001fffedon"),
        expect="malformed_answer",
    ),
)
