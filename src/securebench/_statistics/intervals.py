"""Confidence intervals of a proportion."""

from __future__ import annotations

import math
from dataclasses import dataclass

from securebench._statistics.distributions import binomial_tail, normal_quantile

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval: of a mean of numbers between 0 and 1, or of a difference of two such means."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def wilson(successes: float, trials: float, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval for a proportion; unlike the textbook one it is sound near 0 and 1 and for small samples.

    With p = successes / trials and z the normal quantile: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)."""
    return score_interval(successes, trials, normal_quantile(confidence))


def score_interval(successes: float, trials: float, z: float) -> Interval:
    """Wilson's with any quantile, of samples that need not be whole."""
    if trials <= 0:
        return Interval(0.0, 1.0)
    share, square = successes / trials, z * z / trials
    middle = (share + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(max(0.0, share * (1 - share)) / trials + square / (4 * trials))
    low = 0.0 if successes <= 0 else max(0.0, middle - half)
    high = 1.0 if successes >= trials else min(1.0, middle + half)
    return Interval(low, high)


def clopper_pearson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """The exact interval: never covers less often than it says, and mostly more often. With α = 1 - confidence its
    ends are the p for which P(X ≥ x | p) = α/2 and P(X ≤ x | p) = α/2, X ~ Binomial(n, p)."""
    if trials <= 0:
        return Interval(0.0, 1.0)
    tail = (1 - confidence) / 2
    return Interval(_lower(successes, trials, tail), 1.0 - _lower(trials - successes, trials, tail))


def _lower(successes: int, trials: int, tail: float) -> float:
    """The p with P(X ≥ successes | p) = tail, by bisection."""
    if successes <= 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_tail(trials, successes, middle) < tail else (low, middle)
    return low
