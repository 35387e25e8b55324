"""Statistics against what they promise: intervals cover the truth as often as they say, p-values are no smaller than
chance makes them. docs/statistics.md has the tables that these are the short form of."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from scipy import stats

from securebench.reports.statistics import (
    bootstrap_ratio,
    clopper_pearson,
    clustered_mean,
    mcnemar,
    mean_pass_hat_k,
    paired_difference,
    permutation_test,
    score_bounds,
    wilson,
)

ROUNDS = 1500
SLACK = 0.017  # three standard errors of a share of 0.95 in that many rounds


def exact_coverage(method: object, trials: int, chances: np.ndarray) -> np.ndarray:
    """Summed over all outcomes, nothing drawn."""
    ends = [method(count, trials) for count in range(trials + 1)]  # type: ignore[operator]
    low, high = np.array([end.low for end in ends]), np.array([end.high for end in ends])
    pmf = stats.binom.pmf(np.arange(trials + 1)[:, None], trials, chances[None, :])
    return np.where((low[:, None] <= chances) & (chances <= high[:, None]), pmf, 0).sum(axis=0)


@pytest.mark.parametrize("trials", [20, 50, 164, 500])
def test_wilson_covers_what_it_says_around_every_chance(trials: int) -> None:
    """For a single chance it swings with the steps of the count; nobody's chance is one point, so 6 % around it."""
    chances = np.linspace(0.02, 0.98, 385)
    covered = exact_coverage(wilson, trials, chances)
    around = np.convolve(covered, np.ones(25) / 25, "valid")
    assert around.min() > 0.94
    assert around.max() < 0.965


@pytest.mark.parametrize("trials", [10, 50, 164])
def test_clopper_pearson_never_covers_less_than_it_says(trials: int) -> None:
    covered = exact_coverage(clopper_pearson, trials, np.linspace(0.01, 0.99, 200))
    assert covered.min() >= 0.95
    assert covered.mean() > exact_coverage(wilson, trials, np.linspace(0.01, 0.99, 200)).mean() + 0.005


@pytest.mark.parametrize("agree", [0.4, 2.0])
@pytest.mark.parametrize("mean", [0.06, 0.3, 0.9])
@pytest.mark.parametrize(("tasks", "attempts"), [(20, 3), (30, 10), (100, 3), (300, 5)])
def test_clustered_interval_covers_what_it_says(tasks: int, attempts: int, mean: float, agree: float) -> None:
    """The chance of tasks is Beta-distributed; the smaller `agree`, the more attempts at one task come out alike."""
    source = np.random.default_rng([tasks, attempts, int(mean * 100), int(agree * 10)])
    truth = np.clip(mean + source.uniform(-0.02, 0.02, ROUNDS), 0.03, 0.97)
    chances = source.beta((truth * agree)[:, None], ((1 - truth) * agree)[:, None], (ROUNDS, tasks))
    covered = naive = 0
    for passed, true in zip(source.binomial(attempts, chances), truth, strict=True):
        counts = np.bincount(passed, minlength=attempts + 1)
        estimate = clustered_mean([(attempts, float(n), int(count)) for n, count in enumerate(counts)])
        assert estimate is not None
        covered += true in estimate.interval
        naive += true in wilson(int(passed.sum()), tasks * attempts)
    assert 0.94 - SLACK <= covered / ROUNDS <= 0.965 + SLACK + 0.1 / tasks**0.5
    assert naive / ROUNDS < 0.9  # the control: attempts are not independent


@pytest.mark.parametrize("tasks", [30, 100, 300])
def test_interval_of_parts_of_a_score_covers_what_it_says(tasks: int) -> None:
    source = np.random.default_rng(tasks)
    scores = source.binomial(8, source.beta(0.25, 0.25, (ROUNDS, tasks))) / 8
    covered = 0
    for row in scores:
        estimate = clustered_mean((1, float(score), 1) for score in row)
        assert estimate is not None
        covered += 0.5 in estimate.interval
    assert 0.94 - SLACK <= covered / ROUNDS <= 0.965 + SLACK


def test_interval_of_all_passing_covers_what_it_says() -> None:
    source = np.random.default_rng(4)
    chances = source.beta(1, 1, (ROUNDS, 60))
    truth, covered = 1 / 4, 0  # E p³ of a uniform chance
    for passed in source.binomial(5, chances):
        estimate = mean_pass_hat_k([(5, int(one), 1) for one in passed], 3)
        assert estimate is not None
        covered += truth in estimate.interval
    assert 0.94 - SLACK <= covered / ROUNDS <= 0.965 + SLACK


@pytest.mark.parametrize("better", [0.0, 0.12])
@pytest.mark.parametrize(("tasks", "attempts"), [(20, 1), (50, 1), (164, 1), (50, 3), (164, 3)])
def test_interval_of_a_difference_covers_what_it_says(tasks: int, attempts: int, better: float) -> None:
    source = np.random.default_rng([tasks, attempts, int(better * 100)])
    ease = source.beta(0.5, 0.5, (ROUNDS, tasks)) * (1 - better)
    first, second = source.binomial(attempts, ease), source.binomial(attempts, ease + better)
    covered = 0
    for differences in (second - first) / attempts:
        found = paired_difference([float(one) for one in differences])
        assert found is not None
        covered += better in found.interval
    assert 0.94 - SLACK <= covered / ROUNDS <= (0.965 + SLACK if tasks >= 50 else 0.99)


def shares_below(p_values: list[float], levels: tuple[float, ...] = (0.01, 0.05, 0.1, 0.25, 0.5)) -> list[float]:
    return [sum(one <= level for one in p_values) / len(p_values) - level for level in levels]


def test_p_values_of_scores_are_uniform_where_nothing_differs() -> None:
    source = random.Random(11)
    p_values = []
    for _ in range(500):
        pairs = [(source.random() ** 2, source.random() ** 2) for _ in range(40)]
        p_values.append(permutation_test([one - other for one, other in pairs], draws=999, seed=len(p_values)).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert all(abs(excess) < 0.07 for excess in shares_below(p_values))


def test_p_values_of_passes_are_never_smaller_than_chance_makes_them() -> None:
    source = random.Random(12)
    for tasks, attempts, test in ((60, 1, "mcnemar"), (60, 3, "mcnemar"), (60, 3, "permutation")):
        p_values = []
        for _ in range(1500):
            ease = [source.random() for _ in range(tasks)]
            differences = [
                (sum(source.random() < one for _ in range(attempts)) - sum(source.random() < one for _ in range(attempts)))
                / attempts
                for one in ease
            ]  # fmt: skip
            wins, losses = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
            p_values.append(mcnemar(wins, losses) if test == "mcnemar" else permutation_test(differences).p_value)
        assert all(excess < 0.02 for excess in shares_below(p_values))
        if test == "permutation":  # steps of two passes in about eight
            assert all(excess > -0.12 for excess in shares_below(p_values))


def test_tests_find_what_is_there() -> None:
    """The control of the two above: where one is better, p-values are small."""
    source = random.Random(13)
    found = 0
    for _ in range(100):
        ease = [source.random() * 0.8 for _ in range(100)]
        differences = [float((source.random() < one + 0.2) - (source.random() < one)) for one in ease]
        found += permutation_test(differences).p_value <= 0.05
    assert found > 70


def test_holm_keeps_false_alarms_rare_among_many_comparisons() -> None:
    from securebench.reports.statistics import holm

    source = random.Random(14)
    alarms = naive = 0
    for _ in range(1000):
        p_values = [source.random() for _ in range(10)]
        alarms += min(holm(p_values)) <= 0.05
        naive += min(p_values) <= 0.05
    assert alarms / 1000 < 0.07
    assert naive / 1000 > 0.3


def test_bounds_hold_whatever_the_missing_verdicts_were() -> None:
    bounds = score_bounds(60.0, 90, 10)
    assert bounds is not None
    assert (bounds.low, bounds.high) == (0.6, 0.7)
    assert score_bounds(0.0, 0, 0) is None
    whole = score_bounds(45.0, 90, 0)
    assert whole is not None
    assert whole.low == whole.high == 0.5


@pytest.mark.parametrize("kind", ["attempts", "scores"])
def test_ten_thousand_tasks_take_a_second_or_two(kind: str) -> None:
    source = random.Random(15)
    differences = [
        (source.randrange(4) - source.randrange(4)) / 3 if kind == "attempts" else source.random() - source.random()
        for _ in range(10_000)
    ]
    began = time.process_time()
    permutation_test(differences)
    paired_difference(differences)
    bootstrap_ratio([(one, 1.0) for one in differences], resamples=1000)
    assert time.process_time() - began < 15  # about 1.5 on a quiet machine
