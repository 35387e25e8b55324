"""How sure a score is. Standard library only; every formula is written down where it is used.

Tasks are the sample: a benchmark's tasks stand for all the tasks there could have been. Attempts at one task are not
independent of each other (an easy task is easy every time), so they count as one cluster, and what they tell about
the score grows with the number of tasks, not of attempts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval for a mean of numbers between 0 and 1."""

    low: float
    high: float


def wilson(successes: float, trials: float, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval for a proportion; unlike the textbook one it is sound near 0 and 1 and for small samples.

    With p = successes / trials and z the normal quantile: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)."""
    return _wilson(successes, trials, _normal(confidence))


def _wilson(successes: float, trials: float, z: float) -> Interval:
    if trials <= 0:
        return Interval(0.0, 1.0)
    share, square = successes / trials, z * z / trials
    middle = (share + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(max(0.0, share * (1 - share)) / trials + square / (4 * trials))
    low = 0.0 if successes <= 0 else max(0.0, middle - half)
    high = 1.0 if successes >= trials else min(1.0, middle + half)
    return Interval(low, high)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error and interval. `error` is None where one task alone tells nothing of the spread."""

    mean: float
    error: float | None
    interval: Interval
    tasks: int
    attempts: int


def clustered_mean(clusters: Iterable[tuple[int, float, int]], confidence: float = CONFIDENCE) -> Estimate | None:
    """The mean over all attempts; None without any. Tasks come grouped: `(attempts, sum of their scores, how many
    such tasks)`.

    Standard error: cluster-robust with the small-sample factor. With tasks c = 1…m, n_c attempts summing to s_c,
    N = Σ n_c and mean μ = Σ s_c / N:  se² = m/(m-1) · Σ (s_c - n_c μ)² / N².  With one attempt per task this is the
    usual standard error of a mean.

    Interval: with one attempt per task and nothing but passes and failures, Wilson's. Else Wilson's with the
    effective sample size n* = N/(N-1) · μ(1-μ) / se², which is fewer than N where attempts at one task agree, and
    with the quantile of Student's t with m-1 degrees of freedom for the normal one. Where there is no spread at all
    (all the same, or one task), n* is the number of tasks and the quantile the normal one."""
    groups = [(count, score, weight) for count, score, weight in clusters if count > 0 and weight > 0]
    if not groups:
        return None
    tasks = sum(weight for _, _, weight in groups)
    size = sum(count * weight for count, _, weight in groups)
    total = math.fsum(score * weight for _, score, weight in groups)
    mean = min(1.0, max(0.0, total / size))
    error = None
    if tasks > 1:
        spread = math.fsum(weight * (score - count * mean) ** 2 for count, score, weight in groups)
        error = math.sqrt(spread * tasks / (tasks - 1)) / size
    effective, quantile = float(tasks), _normal(confidence)
    binomial = all(count == 1 and score in {0.0, 1.0} for count, score, _ in groups)
    if not binomial and error is not None and error > 1e-9 and 0 < mean < 1:
        effective = size / (size - 1) * mean * (1 - mean) / (error * error)
        quantile = _student(confidence, tasks - 1)
    return Estimate(mean, error, _wilson(mean * effective, effective, quantile), tasks, size)


def pass_at_k(attempts: int, passed: int, k: int) -> float:
    """The chance that of `k` attempts drawn from `attempts`, of which `passed` passed, at least one did.

    Unbiased for every task: 1 - C(n-c, k) / C(n, k). Raises ValueError unless 0 ≤ passed ≤ attempts and
    1 ≤ k ≤ attempts."""
    if not 0 <= passed <= attempts or not 1 <= k <= attempts:
        raise ValueError("expected 0 ≤ passed ≤ attempts and 1 ≤ k ≤ attempts")
    return 1.0 - math.comb(attempts - passed, k) / math.comb(attempts, k)


def mean_pass_at_k(tasks: Iterable[tuple[int, int, int]], k: int) -> float | None:
    """pass@k over tasks that have at least `k` attempts; None where none has.

    Tasks come grouped: `(attempts, passed, how many such tasks)`."""
    total, number = 0.0, 0
    for attempts, passed, count in tasks:
        if attempts >= k:
            total += count * pass_at_k(attempts, passed, k)
            number += count
    return total / number if number else None


def variance(count: int, total: float, squares: float) -> float | None:
    """The unbiased variance of `count` numbers from their sum and sum of squares; None of fewer than two."""
    if count < 2:
        return None
    return max(0.0, squares - total * total / count) / (count - 1)


def _normal(confidence: float) -> float:
    """The two-sided quantile of the normal distribution."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def _student(confidence: float, freedom: int) -> float:
    """The two-sided quantile of Student's t: by bisection, or by its expansion around the normal one."""
    z = _normal(confidence)
    if freedom > 200:
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / freedom + second / freedom**2 + third / freedom**3
    low, high = 0.0, math.pi / 2  # the angle whose tangent is t / √ν
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return math.tan(low) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """P(|T| < t) with t = √ν tan(angle), the finite sum that holds for whole ν."""
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for step in range(2 + odd, freedom + 1, 2):
        total += term
        term *= square * (step - 1) / step
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
