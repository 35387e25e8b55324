"""How much a text tells. Pure.

That a hidden text stands somewhere in public says nothing while the text is `5`, `yes` or `return result`: it may be
there by chance. So texts are weighed, roughly, in bits: what it would take to say which text it is to somebody who
knows the language it is written in."""

from __future__ import annotations

import keyword
import re

SURE = 40.0
"""A text of so many bits is nowhere by chance."""
TELLING = 24.0
"""A text of so many bits is seldom somewhere by chance."""

_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\s\w]|_")
_DIGIT, _LETTER, _WORD, _COMMON, _SIGN = 3.3, 1.5, 11.0, 2.0, 0.8
_ENGLISH_AND_CODE = """
a an and answer are args array as assert at be by bool candidate check class count data def dict else equal error
expected false file float for from function i if import in index int is it item items j k key len line lines list
map max min n name none not num number numbers object of on or path print range result results return s self set
should sorted start str string sum test tests text that the this to true tuple type unittest pytest value values
with word words x y
"""
_COMMON_WORDS = frozenset({*keyword.kwlist, *keyword.softkwlist, *_ENGLISH_AND_CODE.split()})


def bits(text: str) -> float:
    """The weight of a text. A token that comes again adds nothing."""
    return sum(map(_weight, set(_TOKEN.findall(text.lower()))))


def _weight(token: str) -> float:
    if token.isdigit():
        return _DIGIT * len(token)
    if not token.isalpha():
        return _SIGN
    return _COMMON if token in _COMMON_WORDS else min(_COMMON + _LETTER * len(token), _WORD)


def plain_lines(text: str) -> list[str]:
    """The lines of a text without what editors and formatters change: blanks around and between, empty lines."""
    return [line for line in (" ".join(raw.split()) for raw in text.splitlines()) if line]
