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
_SIGNS = "-+\u2212\u00b1\u221a\u00ac"  # before a word they change what it says
_SUFFIXES = "-+\u2212#%\u2030\u00b0"  # and these after one: C++, C#, 50%, OH-
_TRADE_MARKS = {0x2120: " ", 0x2122: " "}  # which a compatibility form would spell out
_JOINTS = re.compile(
    r"(?<![0-9])[,;|\u2013-\u2015\u2022]|[,;|\u2013-\u2015\u2022](?![0-9])|\.{2,}"
    r"|(?<=[^\W\d_]{3})/(?=[^\W\d_]{3})"  # not km/h
)
_PIECE = re.compile(r"[^\W_]+(?:'[^\W_]+|(?<=[0-9])[.,:/][0-9][^\W_]*)*")
_LONGEST_WORD = 24
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
        """Without letter case, compatibility forms (full-width, ligatures), overlaid marks, and symbols around words
        that are no sign or unit; words joined by commas, dashes, bars or slashes are words of their own.

        For finding what must not be said: a decoration does not make a rejected answer unsaid."""
        line = self.line.casefold()
        if not line.isascii():
            line = _without_overlays(unicodedata.normalize("NFKC", line.translate(_TRADE_MARKS)).casefold())
        return _tokens([_bare(word) for word in _JOINTS.sub(" ", line).split()])


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

    The response has a token at least. Words that are joined without a space are counted one by one, so that a
    sentence does not pass for one word."""
    found = _size(answer)
    return Fraction(2 * found, _size(response) + found)


def _size(tokens: Tokens) -> int:
    return sum(map(_words_in, tokens.line.split()))


def _words_in(token: str) -> int:
    """How many words a token is: one for each run of letters and digits, more where it is longer than words are, and
    one for each character of a script that writes no spaces."""
    wide = 0
    if not token.isascii():
        plain = unicodedata.normalize("NFKC", token)
        token = "".join(char for char in plain if not unicodedata.category(char).startswith("M"))
        wide = sum(1 for char in token if char.isalpha() and unicodedata.east_asian_width(char) in "WF")
    pieces = sum(1 + (len(piece) - 1) // _LONGEST_WORD for piece in _PIECE.findall(token))
    return max(1, wide, pieces, 1 + (len(token) - 1) // _LONGEST_WORD)


def _without_overlays(line: str) -> str:
    """Without marks that no letter was composed with, on letters of scripts that write none: underlined or struck out
    is not unsaid."""
    kept, base = [], " "
    for char in line:
        if unicodedata.category(char) not in ("Mn", "Me"):
            base = char
        elif base < "\u0530" or "\u1e00" <= base < "\u2000":
            continue
        kept.append(char)
    return "".join(kept)


def _bare(word: str) -> str:
    """A folded word without what stands around it, unless that changes what it says."""
    if not any(map(str.isalnum, word)):
        return word.strip(_DECORATION).rstrip(SENTENCE_MARKS)
    start, end = 0, len(word)
    while _is_mark(word[start]) and not _leads(word[start : start + 2]):
        start += 1
    while _is_mark(word[end - 1]) and word[end - 1] not in _SUFFIXES:
        end -= 1
    return word[start:end]


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def _leads(pair: str) -> bool:
    return pair[0] in _SIGNS or (pair[1].isdigit() and (pair[0] == "." or unicodedata.category(pair[0]) == "Sc"))


def _tokens(items: list[str]) -> Tokens:
    kept = [item for item in items if item]
    return Tokens(f" {' '.join(kept)} " if kept else " ", len(kept))
