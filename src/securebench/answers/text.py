"""Text as words: spelling counts; composition, spacing and letter case (where it carries no meaning) do not.

Signs, points, commas, symbols and every word stay: 1.5 is not 15, -5 is not 5, C is not C++, `not x` is not `x`."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from securebench.answers.characters import MAX_ANSWER, is_readable

SENTENCE_MARKS = ".,;:?\u2026"
_LONGEST_UNIT = 4
_TYPOGRAPHIC_APOSTROPHE = "\u2019"


@lru_cache(maxsize=64)  # the same control responses meet every row of a pack
def read_text(text: str) -> str | None:
    """The text in the form in which two texts are compared, or None where it is no readable text.

    1. Longer than MAX_ANSWER, more than one line, or holding an invisible character: None.
    2. Composed and decomposed spellings are the same (NFC); `’` is `'`. Look-alike letters stay different.
    3. White space is one space, and none at the ends.
    4. Letter case is ignored, except in a word with a digit and, after a digit, in what could be a unit: a word
       of up to four letters or with a symbol (5 mW is not 5 MW, Apollo 11 is apollo 11).
    5. One period at the end is ignored.
    """
    if len(text) > MAX_ANSWER or not is_readable(text):
        return None
    return without_period(" ".join(words(text))) or None


def words(text: str) -> list[str]:
    """The words of readable text, by rules 2 to 4 of `read_text`."""
    text = unicodedata.normalize("NFC", text).replace(_TYPOGRAPHIC_APOSTROPHE, "'")
    result = _folded(text).split()
    digits = set(filter(str.isdigit, set(text)))
    if not digits:
        return result
    after_digit = False
    for index, word in enumerate(text.split()):
        if not digits.isdisjoint(word) or (after_digit and _could_be_unit(word)):
            result[index] = word
        after_digit = word[-1] in digits
    return result


def _could_be_unit(word: str) -> bool:
    bare = word.rstrip(SENTENCE_MARKS)
    return len(bare) <= _LONGEST_UNIT or not bare.isalpha()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def without_period(text: str) -> str:
    """`text` without the one period that ends it as a sentence; an ellipsis or a lone period stays."""
    return text[:-1] if text.endswith(".") and not text.endswith("..") and len(text) > 1 else text
