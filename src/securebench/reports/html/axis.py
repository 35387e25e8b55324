"""An axis: where a value lies on it, and which values are written beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from securebench.reports.words import UNITS

_STEPS = (1, 2, 2.5, 5, 10)
_DECADE = (1, 2, 5)
_MOST_TICKS = 6
SECONDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 20, 30)),
    *(3600 * hours for hours in (1, 2, 5, 10, 24, 48, 120)),
)
"""What is round on a clock."""
_CLOCK = ((3600, 3600, "h"), (60, 60, "min"), (0.1, 1, "s"), (0, 0.001, "ms"))  # from where, size and name of a unit


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`; `ticks` are the values that are written, `log` makes equal ratios equal distances."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value, from 0 to 1; what lies beyond an end is put there."""
        low, high, value = (
            (map(math.log, (self.low, self.high, max(value, self.low))))
            if self.log
            else (
                self.low,
                self.high,
                value,
            )
        )
        return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


SHARES = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))


def linear(values: Iterable[float], most: int = 5, round_ones: Sequence[float] = ()) -> Axis:
    """Round ends around the values, and around zero where all are positive and near it; ticks are as far apart as one
    of the `round_ones`, where these reach so far."""
    known = list(values)
    low, high = min(known, default=0.0), max(known, default=1.0)
    if 0 < low < high / 2:
        low = 0.0
    if low == high:
        low, high = (min(0.0, low), max(0.0, high)) if low else (0.0, 1.0)
    rough = (high - low) / most
    step = next((one for one in round_ones if one >= rough * 0.999), None) or _step(rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(number * step, 12) for number in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def logarithmic(values: Iterable[float], round_ones: Sequence[float] = ()) -> Axis:
    """For positive values over several orders of magnitude: ends and ticks at 1, 2 or 5 times a power of ten, or at
    the `round_ones` where these reach around the values."""
    known = [value for value in values if value > 0]
    if not known:
        return linear(())
    marks = list(round_ones)
    if not marks or marks[0] > min(known) or marks[-1] < max(known):
        powers = range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)
        marks = [10.0**power * digit for power in powers for digit in _DECADE]
        marks.append(10.0 ** (powers[-1] + 1))
    first = max(place for place, mark in enumerate(marks) if mark <= min(known) * 1.0001)
    last = min(place for place, mark in enumerate(marks) if mark >= max(known) * 0.9999)
    inside = marks[first : max(last, first + 1) + 1]
    shown = inside
    while len(shown) > _MOST_TICKS:
        shown = _thinned(shown)
    return Axis(inside[0], inside[-1], tuple(shown), log=True)


def fitting(values: Sequence[float], round_ones: Sequence[float] = ()) -> Axis:
    """Logarithmic where the values are positive and the largest is thirty times the smallest or more."""
    known = [value for value in values if value > 0]
    spread = bool(known) and len(known) == len(values) and max(known) >= 30 * min(known)
    return logarithmic(known, round_ones) if spread else linear(values, round_ones=round_ones)


def labels(axis: Axis, write: Callable[[float], str]) -> list[tuple[float, str]]:
    """Place and text of every tick."""
    return [(axis.at(tick), write(tick)) for tick in axis.ticks]


def tick_text(axis: Axis, unit: str) -> Callable[[float], str]:
    """How ticks are written: those of a linear axis all alike, in the unit and with the digits of their distance."""
    if unit == "s":
        return lambda tick: _clock_text(tick, tick if axis.log else _distance(axis))
    if unit == "USD" and not axis.log:
        digits = max(2, -math.floor(math.log10(_distance(axis) * 1.001)))
        return lambda tick: f"$ {tick:,.{digits}f}"
    return UNITS[unit]


def _distance(axis: Axis) -> float:
    return axis.ticks[1] - axis.ticks[0]


def _clock_text(seconds: float, like: float) -> str:
    """In the unit of `like`."""
    size, name = next((size, name) for least, size, name in _CLOCK if like >= least * 0.999)
    return f"{seconds / size:.6g} {name}"


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)


def _thinned(marks: list[float]) -> list[float]:
    """Powers of ten alone, where there are some; then every second of them."""
    powers = [mark for mark in marks if math.isclose(math.log10(mark) % 1.0, 0.0, abs_tol=1e-9)]
    return powers if 2 < len(powers) < len(marks) else marks[::2]
