"""The bootstrap over tasks: for ratios that no formula fits, such as the cost of a passed attempt."""

from __future__ import annotations

import random
from collections.abc import Sequence

from securebench._statistics.intervals import CONFIDENCE, Interval

RESAMPLES = 2000
SEED = 20_260_101


def bootstrap_ratio(
    tasks: Sequence[tuple[float, float]],
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """The percentile interval of Σ above / Σ below over tasks drawn with replacement; None of fewer than two tasks, or
    where nothing is below. Each task is `(above, below)`: the sum and number of its scores, or its cost and its passes.

    The seed is fixed, so that the same run always has the same interval."""
    if len(tasks) < 2 or not any(below for _, below in tasks):
        return None
    source = random.Random(seed)  # noqa: S311 - reproducible, not secret
    pairs = [complex(above, below) for above, below in tasks]  # both sums in one
    found = []
    for _ in range(resamples):
        drawn = sum(source.choices(pairs, k=len(pairs)))
        if drawn.imag > 0:
            found.append(drawn.real / drawn.imag)
    found.sort()
    tail = (1 - confidence) / 2
    return Interval(_at(found, tail), _at(found, 1 - tail))


def _at(ordered: list[float], share: float) -> float:
    """The quantile between the two nearest of them."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
