"""Free text as tokens, and whether one answer stands in another text word for word."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from securebench.answers.characters import BLANK, MAX_RESPONSE, is_readable
from securebench.answers.text import SENTENCE_MARKS, words

_DECORATION = "()[]{}<>\"'`*_~!"
_TYPOGRAPHIC_QUOTES = re.compile("[\u201c\u201d\u201e\u00ab\u00bb]")
_PLAIN_QUOTE = re.compile(r'(?<![0-9])"(?![0-9])')
_BOLD = re.compile(r"(?<!\S)\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![*\w])")


@dataclass(frozen=True, slots=True)
class Tokens:
    """A sequence of words, kept as one line so that finding one sequence in another is a plain text search."""

    line: str  # each token between single spaces, with a space at both ends
    count: int

    def contain(self, other: Tokens) -> bool:
        """Whether all tokens of `other` stand here in a row. Takes linear time."""
        return other.count > 0 and other.line in self.line

    def folded(self) -> Tokens:
        """Without letter case, compatibility forms (full-width, ligatures) and brackets or emphasis around words.

        For finding what must not be said: a decoration does not make a rejected answer unsaid."""
        line = unicodedata.normalize("NFKC", self.line).casefold()
        return _tokens([word.strip(_DECORATION).rstrip(SENTENCE_MARKS) for word in line.split()])


@lru_cache(maxsize=64)  # the same control responses meet every row of a pack
def read_tokens(text: str) -> Tokens | None:
    """The tokens of `text`, or None where it is too long or holds an invisible character.

    1. Tokens are the words between white space, compared as in `text.read_text`: letter case counts only in
       words with digits and in units after a number.
    2. `. , ; : ? …` at the end of a word, double quotes (unless next to a digit, where they are inches) and
       `**bold**` marks do not count. Nothing else is removed: -5, 1.5, 5!, C++, f(x) and not stay what they are.
    """
    if len(text) > MAX_RESPONSE or not is_readable(text, also=BLANK):
        return None
    if "**" in text:
        text = _BOLD.sub(r"\1", text)
    if '"' in text or not text.isascii():
        text = _PLAIN_QUOTE.sub(" ", _TYPOGRAPHIC_QUOTES.sub(" ", text))
    return _tokens([word.rstrip(SENTENCE_MARKS) for word in words(text)])


def token_f1(response: Tokens, answer: Tokens) -> Fraction:
    """Token F1 of a response that contains the answer: all of the answer is found, so only excess counts.

    The response has a token at least."""
    return Fraction(2 * answer.count, response.count + answer.count)


def _tokens(items: list[str]) -> Tokens:
    kept = [item for item in items if item]
    return Tokens(f" {' '.join(kept)} " if kept else " ", len(kept))
