"""Plausible wrong values: of the same type and shape as the right one, and never equal to it."""

from __future__ import annotations

from random import Random
from typing import Any

MAX_TRIES = 20
LARGEST = 1e300


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
            return value + random.choice((-3, -2, -1, 1, 2, 3))
        case float():
            # Far beyond any default tolerance of a comparison, and of the same kind as the value.
            if abs(value) > LARGEST:
                raise ValueError("nothing larger can be written")
            return round(value + random.choice((-1, 1)) * (abs(value) / 2 + random.choice((0.25, 0.5, 1.0))), 6)
        case str():
            return _alter_text(value, random)
        case bytes():
            return _alter_text(value.decode("latin-1"), random).encode("latin-1")
        case list():
            return _alter_items(value, random)
        case tuple():
            return tuple(_alter_items(list(value), random))
        case set():
            return set(_alter_items(sorted(value, key=repr), random))
        case dict():
            return _alter_dict(value, random)
    raise ValueError(f"no plausible wrong value for {type(value).__name__}")


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _alter_text(text: str, random: Random) -> str:
    """Other letters for one letter, another digit for one digit, so that it looks like what it was.

    Letter case and white space stay: many comparisons do not count them."""
    places = [index for index, char in enumerate(text) if char.isascii() and char.isalnum()]
    if not places:
        return text + random.choice(_LETTERS)
    place = random.choice(places)
    char = text[place]
    if char.isdigit():
        other = random.choice([digit for digit in "123456789" if digit != char])
    else:
        other = random.choice([letter for letter in _LETTERS if letter != char.lower()])
        other = other.upper() if char.isupper() else other
    return text[:place] + other + text[place + 1 :]


def _alter_items(items: list[Any], random: Random) -> list[Any]:
    if not items:
        return [random.choice((0, 1, 2))]
    altered = list(items)
    place = random.randrange(len(items))
    if len(items) > 1 and random.random() < 0.2:
        del altered[place]
        return altered
    altered[place] = _alter(items[place], random)
    return altered


def _alter_dict(items: dict[Any, Any], random: Random) -> dict[Any, Any]:
    if not items:
        return {random.choice(_LETTERS): random.choice((0, 1, 2))}
    altered = dict(items)
    key = random.choice(list(items))
    altered[key] = _alter(items[key], random)
    return altered
