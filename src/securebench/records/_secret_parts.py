"""Which texts of a private value are secret: the whole of a small one, and every part of a large one.

A value of at least `MIN_LENGTH` characters is a secret. A longer one is also one in parts, because a test file leaks
by a line in a traceback far more often than as a whole: every line of at least `PART_LENGTH` characters, longer lines
cut into such parts, and short lines together with their neighbours. A part that the public lane holds as well is no
secret. A whole value stays one although the public lane holds it: the right choice stands among the public choices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from securebench._json import Json
from securebench.records._matching import Needles, fold

MIN_LENGTH = 5
PART_LENGTH = 24
WHOLE_LENGTH = 256  # longer values are secret by their parts only
_FEW = 64


@dataclass(frozen=True, slots=True)
class SecretParts:
    """`texts` are scrubbed wherever they stand; `short` ones only where they are all there is."""

    texts: frozenset[str]
    short: frozenset[str]
    numbers: frozenset[float]


def secret_parts(secrets: Iterable[Json], public: Iterable[Json]) -> SecretParts:
    leaves: set[str] = set()
    numbers: set[float] = set()
    for secret in secrets:
        for leaf in _leaves(secret):
            if isinstance(leaf, str):
                leaves.add(leaf)
            else:
                leaves.update(_digits(leaf))
                if len(str(leaf)) >= MIN_LENGTH:
                    numbers.add(leaf)
    short = frozenset(leaf for leaf in leaves if len(leaf) < MIN_LENGTH)
    texts = {leaf for leaf in leaves if MIN_LENGTH <= len(leaf) < PART_LENGTH}
    long = {leaf: set(_parts(leaf)) for leaf in leaves if len(leaf) >= PART_LENGTH}
    known = _public_ones({part for parts in long.values() for part in parts}, public) if long else frozenset()
    for leaf, parts in long.items():
        texts |= parts - known
        if len(leaf) <= WHOLE_LENGTH and not parts.isdisjoint(known):
            texts.add(leaf)
    return SecretParts(frozenset(texts), short, frozenset(numbers))


def _leaves(value: Json) -> Iterator[str | float]:
    if isinstance(value, dict):
        for key, item in value.items():
            if len(key) >= PART_LENGTH:  # not a word of a schema
                yield key.strip()
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        if text := value.strip():
            yield text
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _digits(number: float) -> Iterator[str]:
    """The ways a number is printed."""
    yield str(number)
    if not math.isfinite(number):
        return
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
        number = int(number)
        yield str(number)
    if isinstance(number, int):
        yield f"{number:,}"
        yield f"{number:_}"


def _parts(text: str) -> Iterator[str]:
    """Texts of at least `PART_LENGTH` characters that together cover every line of `text`."""
    waiting = -1  # where the short lines began that no part covers yet
    position = 0
    for line in text.splitlines(keepends=True):
        start = position + len(line) - len(line.lstrip())
        end = position + len(line.rstrip())
        position += len(line)
        if start >= end:
            continue
        if end - start >= PART_LENGTH:
            if waiting >= 0:
                yield text[waiting : _next_mark(text, waiting + PART_LENGTH)]
                waiting = -1
            yield from _cut(text[start:end])
            continue
        waiting = start if waiting < 0 else waiting
        if end - waiting >= PART_LENGTH:
            yield text[waiting:end]
            waiting = -1
    if waiting >= 0:
        yield text[_last_mark(text, min(waiting, len(text) - PART_LENGTH)) :]


def _next_mark(text: str, end: int) -> int:
    """The first end from there on with something to see before it."""
    while text[end - 1].isspace():
        end += 1
    return end


def _last_mark(text: str, start: int) -> int:
    while text[start].isspace():
        start -= 1
    return start


def _cut(line: str) -> Iterator[str]:
    last = len(line) // PART_LENGTH - 1
    for number in range(last):
        yield line[number * PART_LENGTH : (number + 1) * PART_LENGTH]
    yield line[last * PART_LENGTH :]


def _public_ones(parts: set[str], public: Iterable[Json]) -> frozenset[str]:
    shown = "\n".join(leaf for value in public for leaf in _leaves(value) if isinstance(leaf, str))
    if len(shown) < PART_LENGTH:
        return frozenset()
    folded = fold(shown)
    spelled = {fold(part): part for part in parts}
    if len(spelled) <= _FEW:
        return frozenset(part for text, part in spelled.items() if text in folded)
    found = Needles(spelled).occurring(folded)
    return frozenset(part for text, part in spelled.items() if text in found)
