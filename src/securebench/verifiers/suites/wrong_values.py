"""Plausible wrong values: of the same type and shape as the right one, and never equal to it.

Who knows how they are made must not be able to tell from two values which one was made of the other. So every step is
as likely as its way back: an integer stays among its four neighbours, a digit or letter becomes another of its kind,
nothing is only ever added or taken away."""

from __future__ import annotations

import re
from random import Random
from typing import Any

MAX_TRIES = 20


def wrong_value(value: Any, random: Random) -> Any:
    """A value that differs from `value` and could as well have been the right one. Raises ValueError where there is
    none that a test would tell apart for sure."""
    for _ in range(MAX_TRIES):
        other = _alter(value, random)
        if other != value:
            return other
    raise ValueError("no plausible wrong value")


def _alter(value: Any, random: Random) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value ^ random.choice((1, 2, 3))
        case float():
            return _alter_float(value, random)
        case str():
            return _alter_text(value, random)
        case bytes():
            return _alter_text(value.decode("latin-1"), random).encode("latin-1")
        case list():
            return _alter_items(value, random)
        case tuple():
            return tuple(_alter_items(list(value), random))
        case set():
            other = set(_alter_items(sorted(value, key=repr), random))
            return other if len(other) == len(value) or len(value) < 2 else value
        case dict():
            return _alter_dict(value, random)
    raise ValueError(f"no plausible wrong value for {type(value).__name__}")


def _alter_float(value: float, random: Random) -> float:
    """Another first digit, which is far beyond any default tolerance of a comparison. Zero is only met by 1.0 to 9.0,
    and they by zero."""
    text = repr(value)
    digits = "0123456789" if re.fullmatch(r"-?\d\.0", text) else "123456789"
    place = next((index for index, char in enumerate(text) if char in digits), None)
    if place is None:
        raise ValueError("no number that has digits")
    other = text[:place] + random.choice(digits) + text[place + 1 :]
    return float(other) if repr(float(other)) == other else value


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "123456789"


def _alter_text(text: str, random: Random) -> str:
    """Another letter for one letter, another digit for one digit, so that it looks like what it was. Where there is
    none, or only a small letter at the end, that letter comes, changes or goes.

    Letter case and white space stay: many comparisons do not count them."""
    places = [index for index, char in enumerate(text) if char.isascii() and char.isalnum() and char != "0"]
    if not places or (places == [len(text) - 1] and text[-1] in _LETTERS):
        end: str = random.choice(("", *_LETTERS))
        return text[: len(text) - len(places)] + end
    place: int = random.choice(places)
    char = text[place]
    kind = next(kind for kind in (_DIGITS, _LETTERS, _LETTERS.upper()) if char in kind)
    return text[:place] + random.choice(kind) + text[place + 1 :]


_SMALL = (0, 1, 2, 3)


def _alter_items(items: list[Any], random: Random) -> list[Any]:
    if not items or (len(items) == 1 and type(items[0]) is int and items[0] in _SMALL):
        return random.choice([[], *([small] for small in _SMALL)])
    altered = list(items)
    place = random.randrange(len(items))
    altered[place] = _alter(items[place], random)
    return altered


def _alter_dict(items: dict[Any, Any], random: Random) -> dict[Any, Any]:
    small = [{letter: number} for letter in _LETTERS for number in _SMALL]
    if not items or (items in small and not any(isinstance(value, bool) for value in items.values())):
        return random.choice([{}, *small])
    altered = dict(items)
    key = random.choice(list(items))
    altered[key] = _alter(items[key], random)
    return altered
