"""The mean over attempts that come in tasks, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from securebench._statistics.distributions import normal_quantile
from securebench._statistics.intervals import CONFIDENCE, Interval, score_interval

_Groups = Sequence[tuple[int, float, int]]
ADDED = 0.25
"""How much of a task is added to each side; docs/statistics.md shows what it does."""
METHOD = "wilson, design effect with quarters of a task"
"""Stands in every summary beside its interval. Another formula gets another name, so that summaries which were sealed
with this one are not taken for wrong."""


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

    Interval: Wilson's with the effective sample size N / D, where the design effect D says how many attempts tell as
    much as one that is independent of all others. With one attempt per task and nothing but passes and failures D is
    1, and the interval is Wilson's own."""
    groups = [(count, score, weight) for count, score, weight in clusters if count > 0 and weight > 0]
    if not groups:
        return None
    tasks = sum(weight for _, _, weight in groups)
    size = sum(count * weight for count, _, weight in groups)
    total = math.fsum(score * weight for _, score, weight in groups)
    mean = min(1.0, max(0.0, total / size))
    error = None
    if tasks > 1:
        error = math.sqrt(_spread(groups, mean) * tasks / (tasks - 1)) / size
    effective = size / _design_effect(groups, tasks, size, total)
    interval = score_interval(mean * effective, effective, normal_quantile(confidence))
    return Estimate(mean, error, interval, tasks, size)


def _spread(groups: _Groups, mean: float) -> float:
    return math.fsum(weight * (score - count * mean) ** 2 for count, score, weight in groups)


def _design_effect(groups: _Groups, tasks: int, size: int, total: float) -> float:
    """The variance of the mean over what it were if all attempts were independent passes and failures.

    The few tasks that pass now and then say little of how much attempts at one task agree, and often too little. So
    it is taken with a quarter of a task more that always passes and a quarter of one that never does, each with the
    mean number of attempts n = N/m. With M = m + ½ tasks, N' = n M attempts and the mean μ' over them:
    D = (N'-1) / (μ'(1-μ')) · M/(M-1) · (Σ (s_c - n_c μ')² + ¼ n² (μ'² + (1-μ')²)) / N'²."""
    each, more = size / tasks, tasks + 2 * ADDED
    attempts = each * more
    mean = (total + ADDED * each) / attempts
    spread = _spread(groups, mean) + ADDED * each * each * (mean * mean + (1 - mean) ** 2)
    return (attempts - 1) / (mean * (1 - mean)) * more / (more - 1) * spread / (attempts * attempts)


def variance(count: int, total: float, squares: float) -> float | None:
    """The unbiased variance of `count` numbers from their sum and sum of squares; None of fewer than two."""
    if count < 2:
        return None
    return max(0.0, squares - total * total / count) / (count - 1)
