"""Where two sequences of lines differ: Myers' shortest edit script, with a bound on the work.

Beyond the bound what lies between the common beginning and end counts as replaced as a whole; the answer is then
longer than it had to be, never wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_MAX_EDITS = 1000
_MAX_WORK = 20_000_000


@dataclass(slots=True)
class Effort:
    """Steps of comparison that are left, for several pairs of texts together."""

    left: int


class Range(NamedTuple):
    """Lines `old_start:old_end` became lines `new_start:new_end`; one of the two may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changed_ranges(old: Sequence[str], new: Sequence[str], effort: Effort | None = None) -> list[Range]:
    """The ranges that differ, in order, none touching the next. With `effort`, takes what it needs from it."""
    start = 0
    shorter = min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[len(old) - 1 - end] == new[len(new) - 1 - end]:
        end += 1
    middle = Range(start, len(old) - end, start, len(new) - end)
    if middle.old_start == middle.old_end or middle.new_start == middle.new_end:
        return [middle] if (middle.old_end, middle.new_end) != (start, start) else []
    numbers: dict[str, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old[start : middle.old_end]]
    b = [numbers.setdefault(line, len(numbers)) for line in new[start : middle.new_end]]
    matches = _matches(a, b, effort or Effort(_MAX_WORK))
    if matches is None:
        return [middle]
    return _between(matches, start, middle)


def _between(matches: list[tuple[int, int]], start: int, middle: Range) -> list[Range]:
    ranges = []
    old, new = middle.old_start, middle.new_start
    for x, y in [*((x + start, y + start) for x, y in matches), (middle.old_end, middle.new_end)]:
        if (x, y) != (old, new):
            ranges.append(Range(old, x, new, y))
        old, new = x + 1, y + 1
    return ranges


def _matches(a: list[int], b: list[int], effort: Effort) -> list[tuple[int, int]] | None:
    """Pairs of equal lines of a shortest edit script, in order; None when that would be too much work."""
    n, m = len(a), len(b)
    limit = min(_MAX_EDITS, min(_MAX_WORK, effort.left) // (n + m), n + m)
    reach = [0] * (2 * limit + 3)  # reach[k + limit + 1]: how far into `a` the diagonal k gets
    middle = limit + 1
    trace: list[list[int]] = []
    for d in range(limit + 1):
        effort.left -= 2 * d + 1
        trace.append(reach[middle - d - 1 : middle + d + 2])
        for k in range(-d, d + 1, 2):
            down = k == -d or (k != d and reach[middle + k - 1] < reach[middle + k + 1])
            x = reach[middle + k + 1] if down else reach[middle + k - 1] + 1
            y = x - k
            start = x
            while x < n and y < m and a[x] == b[y]:
                x += 1
                y += 1
            effort.left -= x - start
            reach[middle + k] = x
            if x >= n and y >= m:
                return _walk_back(trace, n, m)
    return None


def _walk_back(trace: list[list[int]], x: int, y: int) -> list[tuple[int, int]]:
    matches = []
    for d in range(len(trace) - 1, -1, -1):
        reach, k = trace[d], x - y
        middle = d + 1
        if k == -d or (k != d and reach[middle + k - 1] < reach[middle + k + 1]):
            before_k, before_x = k + 1, reach[middle + k + 1]
        else:
            before_k, before_x = k - 1, reach[middle + k - 1]
        before_y = before_x - before_k
        stop_x = max(before_x, 0) if d else 0
        stop_y = before_y if d else 0
        while x > stop_x and y > stop_y:
            x, y = x - 1, y - 1
            matches.append((x, y))
        x, y = before_x, before_y
    matches.reverse()
    return matches
