"""Two runs on the same tasks: how far apart, how sure, and what could have been seen at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from securebench._statistics.clusters import ADDED
from securebench._statistics.distributions import binomial_tail, half_binomial_tail, student_quantile
from securebench._statistics.intervals import CONFIDENCE, Interval

POWER = 0.8
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean over tasks of how much the second run scored more than the first."""

    mean: float
    error: float | None
    interval: Interval
    tasks: int
    wins: int  # tasks on which the second scored more
    ties: int
    losses: int


def paired_difference(differences: Sequence[float], confidence: float = CONFIDENCE) -> Difference | None:
    """One difference for each task, between -1 and 1; None without any.

    The mean d̄ of the n differences, its standard error √(Σ (d - d̄)² / (n-1) / n), and the interval d̄ ± t · se', with
    Student's t of n-1 degrees of freedom (at least 1) and the standard error se' of `_cautious_error`."""
    count = len(differences)
    if not count:
        return None
    mean, wins = math.fsum(differences) / count, sum(one > 0 for one in differences)
    losses = sum(one < 0 for one in differences)
    error = None
    if count > 1:
        error = math.sqrt(math.fsum((one - mean) ** 2 for one in differences) / (count - 1) / count)
    half = student_quantile(confidence, max(1, count - 1)) * _cautious_error(differences)
    interval = Interval(max(-1.0, mean - half), min(1.0, mean + half))
    return Difference(mean, error, interval, count, wins, count - wins - losses, losses)


def _cautious_error(differences: Sequence[float]) -> float:
    """The standard error with a quarter of a task more that is won and a quarter of one that is lost, so that two runs
    which seldom differed are not taken for the same. Both by as much as tasks are won and lost: with q the mean of d²
    over tasks that differ (1 where none does) and n' = n + ½, se'² = (Σ d² + q/2 - (Σ d)²/n') / (n'-1) / n'."""
    count, total = len(differences) + 2 * ADDED, math.fsum(differences)
    squares, differing = math.fsum(one * one for one in differences), sum(one != 0 for one in differences)
    squares += 2 * ADDED * (squares / differing if differing else 1.0)
    return math.sqrt(max(0.0, squares - total * total / count) / (count - 1) / count)


def mcnemar(wins: int, losses: int) -> float:
    """The exact two-sided p-value that as many tasks are won as lost: twice the smaller tail of Binomial(wins + losses,
    ½), at most 1. With several attempts or parts of a score it is the sign test."""
    return min(1.0, 2 * half_binomial_tail(wins + losses, max(wins, losses)))


def minimum_detectable(
    differences: Sequence[float], confidence: float = CONFIDENCE, power: float = POWER
) -> float | None:
    """The smallest true difference δ that a comparison of this size and spread would call significant with chance
    `power`; None where no result of so many tasks can be significant.

    Tasks differ by s = Σ d² / Σ |d| where they do (1 where none does), so that a difference of δ needs a mean square of
    at least sδ, however seldom the runs differed this time: ψ = max(mean d², sδ). δ is the larger of two: the one with
    δ √n = z_confidence √ψ + z_power √(ψ - δ²), and sπ with the share π of tasks that has to differ, all one way, for as
    many of them as the exact test needs to come with chance `power`."""
    count, needed = len(differences), math.ceil(1 - math.log2(1 - confidence))
    if count < needed:
        return None
    squares, sizes = math.fsum(one * one for one in differences), math.fsum(map(abs, differences))
    size, spread = squares / sizes if sizes else 1.0, squares / count
    normal = NormalDist()
    sure, likely = normal.inv_cdf(0.5 + confidence / 2), normal.inv_cdf(power)

    def is_seen(true: float) -> bool:
        square = max(spread, true * size)
        noise = sure * math.sqrt(square) + likely * math.sqrt(max(0.0, square - true * true))
        return true * math.sqrt(count) >= noise and binomial_tail(count, needed, min(1.0, true / size)) >= power

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_seen(middle) else (middle, high)
    return high


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given: the i-th smallest of m times m-i+1, none below the one before."""
    count, adjusted, largest = len(p_values), [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda one: p_values[one])):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
