"""Option letters: `B`, `(B)`, `B)` or `B.`; several of them only where the task asks for several."""

from __future__ import annotations

import re
import string
from functools import lru_cache

from securebench.answers.verdict import TextVerdict, ambiguous, malformed

LETTERS = string.ascii_uppercase

_OPTION = re.compile(r"\(([A-Za-z])\)|([A-Za-z])[.)]?")
_LABELLED = re.compile(r"(?:\(([A-Za-z])\)|([A-Za-z])[.):]) (\S.*)")
_BETWEEN = re.compile(r"[^A-Za-z0-9]+")
_CONNECTIVES = frozenset({"and", "or"})


@lru_cache(maxsize=64)  # the same control responses meet every row of a pack
def read_option(text: str, count: int) -> int | TextVerdict:
    """The index of the one option that `text` names, out of `count`.

    1. The text is one ASCII letter of an option, upper or lower case, alone or as `(B)`, `B)` or `B.`.
    2. Several options, however joined, are ambiguous; everything else, also an option's text, is malformed.
    """
    index = _index(text, count)
    if index is not None:
        return index
    parts = [part for part in _BETWEEN.split(text) if part and part.lower() not in _CONNECTIVES]
    if len(parts) > 1 and all(_index(part, count) is not None for part in parts):
        return ambiguous("several_options")
    return malformed("not_an_option_letter")


def read_labelled_option(text: str, choices: tuple[str, ...]) -> int | TextVerdict:
    """As `read_option`, and also an option's letter followed by exactly its own text: `B) Canberra`, `B. Canberra`."""
    if (match := _LABELLED.fullmatch(text)) is not None:
        index = _index(match[1] or match[2], len(choices))
        if index is not None and len(match[3]) > 1 and match[3] == " ".join(choices[index].split()):
            return index
    return read_option(text, len(choices))


@lru_cache(maxsize=64)  # the same control responses meet every row of a pack
def read_options(text: str, count: int) -> frozenset[int] | TextVerdict:
    """The indices of the options in a comma-separated list, in any order.

    1. Every part is one option as in `read_option`; spaces around the commas do not count.
    2. An option named twice is malformed.
    """
    parts = text.split(",", len(LETTERS))
    indices = [_index(part.strip(" \t"), count) for part in parts]
    named = frozenset(index for index in indices if index is not None)
    if None in indices:
        return malformed("not_a_list_of_option_letters")
    return named if len(named) == len(indices) else malformed("option_named_twice")


def letters(options: frozenset[int]) -> str:
    return ", ".join(LETTERS[index] for index in sorted(options))


def _index(text: str, count: int) -> int | None:
    match = _OPTION.fullmatch(text)
    if match is None:
        return None
    index = LETTERS.index((match[1] or match[2]).upper())
    return index if index < count else None
