"""Whether a program printed what it had to. Pure and total; runs on the host, over bytes."""

from __future__ import annotations

import math
import re

MAX_NUMBER = 400  # characters of one number
DEFAULT_TOLERANCE = 1e-6
_NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")


def same_output(found: bytes, expected: bytes, compare: str, tolerance: float | None) -> bool:
    """`exact`: the same bytes. `tokens`: the same words, however they are spaced. `float`: as tokens, but numbers may
    differ by `tolerance`, absolutely or as a share of the expected one; only finite numbers are numbers."""
    if compare == "exact":
        return found == expected
    ours, theirs = found.split(), expected.split()
    if len(ours) != len(theirs):
        return False
    if compare == "tokens":
        return ours == theirs
    allowed = DEFAULT_TOLERANCE if tolerance is None else tolerance
    return all(_close(word, other, allowed) for word, other in zip(ours, theirs, strict=True))


def _close(found: bytes, expected: bytes, tolerance: float) -> bool:
    wanted = _number(expected)
    if wanted is None:
        return found == expected
    given = _number(found)
    return given is not None and abs(given - wanted) <= tolerance * max(1.0, abs(wanted))


def _number(word: bytes) -> float | None:
    if len(word) > MAX_NUMBER or _NUMBER.fullmatch(word) is None:
        return None
    value = float(word)
    return value if math.isfinite(value) else None
