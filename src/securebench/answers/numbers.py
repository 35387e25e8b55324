"""Numbers as exact rationals. Finite by construction: the grammar has no spelling for anything else."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from securebench.answers.characters import is_readable
from securebench.answers.text import without_period

MAX_DIGITS = 400
"""Digits of one numeral, and the largest power of ten; both beyond every float."""

_MAX_LENGTH = 2 * MAX_DIGITS
_DECIMAL = re.compile(
    r"(?P<whole>[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)?(?:\.(?P<part>[0-9]+))?(?:[eE](?P<power>[+-]?[0-9]{1,6}))?"
)
_FRACTION = re.compile(r"(?:(?P<whole>[0-9]+) )?(?P<top>[0-9]+)/(?P<bottom>[0-9]+)")
_NUMERAL_START = frozenset("0123456789+-.,/ ")


@lru_cache(maxsize=64)  # the same control responses meet every row of a pack
def read_number(text: str, unit: str | None = None) -> Fraction | None:
    """The number that `text` spells, or None.

    1. ASCII only: an optional sign, then a decimal (`1234.5`, `.5`, `1,234.5`, `1.2e-3`), a percentage (`50%` is
       0.5), a fraction (`3/4`) or a mixed number (`1 3/4`). Nothing before, nothing after.
    2. Commas group thousands, all of them or none; a comma is never a decimal point.
    3. A declared unit may follow, exactly as declared (a currency sign may also stand before the digits); where
       the unit is `%`, it is that unit and `50%` is 50. Every other unit is None.
    4. At most MAX_DIGITS digits and powers of ten up to MAX_DIGITS; `nan` and `inf` are not numbers; -0 is 0.
    5. One period at the end is ignored.
    """
    if len(text) > _MAX_LENGTH:
        return None
    value = _signed(text, unit)
    return value if value is not None else _signed(without_period(text), unit)


def _signed(text: str, unit: str | None) -> Fraction | None:
    sign = -1 if text.startswith("-") else 1
    if text.startswith(("+", "-")):
        text = text[1:]
    bare = None if unit is None else _without_unit(_comparable(text), _comparable(unit))
    value = _magnitude(text) if bare is None else _unscaled(bare)
    return None if value is None else sign * value


def _without_unit(text: str, unit: str) -> str | None:
    if text.endswith(unit):
        return text[: -len(unit)].rstrip(" ")
    if text.startswith(unit) and unicodedata.category(unit[-1]) == "Sc":
        return text[len(unit) :].lstrip(" ")
    return None


def _comparable(unit: str) -> str:
    """Composed; and the micro sign, which keyboards write, is the letter mu, which models write."""
    return unicodedata.normalize("NFC", unit).replace("\u00b5", "\u03bc")


def _magnitude(text: str) -> Fraction | None:
    if text.endswith("%"):
        value = _decimal(text[:-1].rstrip(" "))
        return None if value is None else value / 100
    return _unscaled(text)


def _unscaled(text: str) -> Fraction | None:
    return _fraction(text) if "/" in text else _decimal(text)


def _decimal(text: str) -> Fraction | None:
    match = _DECIMAL.fullmatch(text)
    if match is None or (match["whole"] is None and match["part"] is None):
        return None
    part = match["part"] or ""
    digits = (match["whole"] or "").replace(",", "") + part
    power = int(match["power"] or 0)
    if len(digits) > MAX_DIGITS or abs(power) > MAX_DIGITS:
        return None
    scale = power - len(part)
    return Fraction(int(digits) * 10**scale) if scale >= 0 else Fraction(int(digits), 10**-scale)


def _fraction(text: str) -> Fraction | None:
    match = _FRACTION.fullmatch(text)
    if match is None or max(map(len, match.groups(""))) > MAX_DIGITS:
        return None
    top, bottom = int(match["top"]), int(match["bottom"])
    if bottom < 2 or math.gcd(top, bottom) != 1:
        return None  # an exercise copied from the question (144/12) is not its result
    if match["whole"] is None:
        return Fraction(top, bottom)
    return int(match["whole"]) + Fraction(top, bottom) if top < bottom else None


def unit_problem(unit: str) -> str | None:
    """What is wrong with a declared unit: it must not be mistaken for a part of the number before it."""
    if not is_readable(unit, also="") or unit != unit.strip():
        return "a unit must be one line without invisible characters or spaces at its ends"
    if unit[0] in _NUMERAL_START or (unit != "%" and read_number("1" + unit) is not None):
        return "a unit must not start like a number, or it could not be told from the digits before it"
    return None


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a number may lie from an accepted one: `absolute`, or `relative` times the accepted one's size."""

    absolute: Fraction = Fraction(0)
    relative: Fraction = Fraction(0)

    def covers(self, value: Fraction, accepted: Fraction) -> bool:
        """Exact arithmetic; without a margin only the same rational number passes."""
        if value == accepted or not (self.absolute or self.relative):
            return value == accepted
        return abs(value - accepted) <= max(self.absolute, self.relative * abs(accepted))


@lru_cache(maxsize=64)
def exact(value: int | float) -> Fraction:
    """A finite number of the pack as its author wrote it: 0.1 is one tenth, not the nearest binary fraction."""
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))
