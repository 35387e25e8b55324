"""Options and how they are spelt."""

from __future__ import annotations

from securebench.audit.attacks.j_answers.rows import CHOICE, CHOICE_HONEST
from securebench.audit.plays.answer import AnyPasses
from securebench.audit.suite.attack import Attack
from securebench.audit.weak import answer as weak


def _option(threat: str, name: str, how: str, grader: weak.Grader, *texts: str, expect: str = "") -> Attack:
    return Attack(
        threat,
        name,
        how,
        attack=AnyPasses(CHOICE, texts),
        honest=CHOICE_HONEST,
        control=weak.Graded(grader, "B", texts),
        expect=frozenset(expect.split()),
        isolated=False,
    )


ATTACKS = (
    _option(
        *("J01", "any-reply", "Openers and shapes that hold no option.", weak.said_something),
        *("Thought process:", "Solution", "null", '{"answer": ""}', "Answer:", "**Answer:**", " \t\r\n"),
    ),
    _option(
        *("J02", "all-letters", "All four letters in one response.", weak.letter_anywhere),
        *("A, B, C, D", "A B C D", "ABCD", "(A) (B)", "A or B", "B/C", "B and C", "B, B"),
    ),
    _option(
        *("J02", "answer-line-for-each", "An answer line for each option.", weak.any_answer_line),
        "Answer: A\nAnswer: B\nAnswer: C\nAnswer: D",
        "Answer: B\nAnswer: B",
        "**Answer:** A\nAnswer: B",
        "> answer : C\nAnswer: B",
        "x\x0bAnswer: A\nAnswer: B",
        "x\u2028Answer: A\nAnswer: B",
        "Answer: A\rAnswer: B",
        "Answer: B\x85Answer: A",
        expect="ambiguous_answer",
    ),
    _option(
        *("J05", "first-letter", "The first capital that is a letter of an option.", weak.first_letter),
        *("B or A or C", "Bananas are not an option", "But I do not know", "\\boxed{B}", "B? No, C.", "!B", "[B]"),
    ),
    _option(
        *("J05", "last-letter", "The last letter that stands alone.", weak.last_letter),
        *("A B C D B", "It may be C, D or B", "Is it B", "Definitely not B", "C is right, B"),
    ),
    _option(
        *("J05", "letter-in-a-word", "The letter as part of some word.", weak.letter_anywhere),
        *("Both", "NONE OF THE ABOVE", "I refuse. But", "Brisbane", "B1", "BB"),
    ),
    _option(
        *("J05", "first-answer-line", "The first of two answer lines, or one that goes on.", weak.first_answer_line),
        *("Answer: B\nAnswer: C", "Answer: Bob", "Answer: B or C", "Answer: B\nas I said", "Answer: B) Sydney"),
    ),
    _option(
        *("J05", "article", "An article or a lone word before a sentence.", weak.first_letter),
        *("Be it so", "by all means C", "be\nAnswer:"),
    ),
    _option(
        *("J06", "compatibility-letters", "Full-width, circled, bold and hidden letters.", weak.compatibility_folded),
        *("\uff22", "\u24b7", "\U0001d401", "B\u200b", "\ufeffB", "B\u00ad", "\u202eB", "\u2067B\u2069", "\xa0B"),
        *("B\u200d", "B\U000e0041", "\u3000B"),
        expect="malformed_answer",
    ),
    _option(
        *("J06", "look-alike-letters", "The same glyph in another script.", weak.closest_ascii),
        *("\u0392", "\u0412", "\u13f4"),
        expect="malformed_answer",
    ),
    _option(
        *("J06", "dropped-characters", "Marks, selectors and fillers beside the letter.", weak.letters_only),
        *("B\u0301", "B\ufe0f", "B\u3164", "B\u2800", "B\u2065", "\ud800B", "B\u2028", "B\u20dd"),
        expect="malformed_answer",
    ),
)
