"""What several attempts at each task come to: pass@k (one of k passes) and pass^k (all of k pass)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from securebench._statistics.clusters import Estimate, clustered_mean
from securebench._statistics.intervals import CONFIDENCE

Groups = Iterable[tuple[int, int, int]]
"""Tasks, grouped: `(judged attempts, passed ones, how many such tasks)`."""


def pass_at_k(attempts: int, passed: int, k: int) -> float:
    """The chance that of `k` attempts drawn from `attempts`, of which `passed` passed, at least one did.

    Unbiased for every task: 1 - C(n-c, k) / C(n, k). Raises ValueError unless 0 ≤ passed ≤ attempts and
    1 ≤ k ≤ attempts."""
    _check(attempts, passed, k)
    return 1.0 - math.comb(attempts - passed, k) / math.comb(attempts, k)


def pass_hat_k(attempts: int, passed: int, k: int) -> float:
    """The chance that all of `k` attempts drawn from `attempts`, of which `passed` passed, did (written pass^k).

    Unbiased for every task: C(c, k) / C(n, k). Raises ValueError as `pass_at_k` does."""
    _check(attempts, passed, k)
    return math.comb(passed, k) / math.comb(attempts, k)


def mean_pass_at(tasks: Groups, most: int) -> dict[int, float]:
    """The means of `mean_pass_at_k` alone, for every k up to `most` at once: what a summary needs of thousands of
    attempts. Not for k that no task has."""
    totals: dict[int, tuple[float, int]] = {}
    for attempts, passed, count in tasks:
        none = 1.0  # the chance that none of the k drawn passed, which follows from that of k - 1
        for k in range(1, min(most, attempts) + 1):
            none *= max(0, attempts - passed - k + 1) / (attempts - k + 1)
            total, number = totals.get(k, (0.0, 0))
            totals[k] = total + count * (1.0 - none), number + count
    return {k: total / number for k, (total, number) in totals.items()}


def mean_pass_at_k(tasks: Groups, k: int, confidence: float = CONFIDENCE) -> Estimate | None:
    """pass@k over tasks that have at least `k` judged attempts; None where none has. Each task counts once, with the
    interval of `clustered_mean`: how often tasks pass, and not only these attempts, is what is estimated."""
    return _over_tasks(tasks, k, pass_at_k, confidence)


def mean_pass_hat_k(tasks: Groups, k: int, confidence: float = CONFIDENCE) -> Estimate | None:
    """pass^k, as `mean_pass_at_k`."""
    return _over_tasks(tasks, k, pass_hat_k, confidence)


def _over_tasks(tasks: Groups, k: int, chance: Callable[[int, int, int], float], confidence: float) -> Estimate | None:
    return clustered_mean(((1, chance(n, c, k), count) for n, c, count in tasks if n >= k), confidence)


def _check(attempts: int, passed: int, k: int) -> None:
    if not 0 <= passed <= attempts or not 1 <= k <= attempts:
        raise ValueError("expected 0 ≤ passed ≤ attempts and 1 ≤ k ≤ attempts")
