"""Which characters an answer may hold. What one layer shows and another ignores has no place in an answer."""

from __future__ import annotations

import re
import unicodedata

MAX_RESPONSE = 64 * 1024
"""Characters in a response; a longer one is not read at all."""

MAX_ANSWER = 8 * 1024
"""Characters in the answer that stands in a response's final slot."""

MAX_COMBINING = 30
"""Combining marks in a row (Unicode's stream-safe limit). Normalising longer runs takes quadratic time."""

BLANK = " \t\r\n"
"""The white space that is trimmed around a response; no other character is."""

# Control, format (zero-width, bidi), surrogate, private use, line and paragraph separator.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})

# Drawn as nothing although their category is a letter, a mark, a symbol or none: Unicode's default-ignorable code
# points that the categories above miss, code points that are no characters, and blanks of Braille, music and Khitan.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufdd0-\ufdef\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U00016fe4\U0001d159\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "]"
)


def is_readable(text: str, also: str = "\t") -> bool:
    """Whether every character of `text` is visible or plain space. `also` lists control characters to allow."""
    if text.isascii() and text.isprintable():
        return True
    if any(unicodedata.category(char) in _REFUSED_CATEGORIES and char not in also for char in set(text)):
        return False
    return text.isascii() or (_INVISIBLE.search(text) is None and not _has_long_mark_run(text))


def without_invisible(text: str) -> str:
    """`text` as a person sees it: without what `is_readable` refuses, but for white space."""
    kept = "".join(c for c in text if c in BLANK or unicodedata.category(c) not in _REFUSED_CATEGORIES)
    return _INVISIBLE.sub("", kept)


def _has_long_mark_run(text: str) -> bool:
    run = 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        if run > MAX_COMBINING:
            return True
    return False
