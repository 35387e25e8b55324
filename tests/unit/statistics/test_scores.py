"""Statistics against what they mean: enumeration, textbook values, and simulation."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import NormalDist, fmean, stdev
from statistics import variance as reference_variance

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securebench._statistics.attempts import mean_pass_at, mean_pass_at_k, pass_at_k
from securebench._statistics.clusters import clustered_mean, variance
from securebench._statistics.distributions import student_quantile, student_within
from securebench._statistics.intervals import wilson


@pytest.mark.parametrize(
    "successes, trials, low, high",  # from the tables of R's binom package
    [
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilson_has_the_values_of_the_tables(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson(successes, trials)
    assert (interval.low, interval.high) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_ends_where_the_share_is_just_z_errors_away(sample: tuple[int, int]) -> None:
    """Its definition: the shares p for which |p̂ - p| = z √(p(1-p)/n)."""
    successes, trials = sample
    z, interval = NormalDist().inv_cdf(0.975), wilson(successes, trials)
    assert 0 <= interval.low <= successes / trials <= interval.high <= 1
    for end in (interval.low, interval.high):
        if 0 < end < 1:
            assert abs(successes / trials - end) == pytest.approx(z * math.sqrt(end * (1 - end) / trials))


def test_nothing_tried_tells_nothing() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0, 1)
    assert clustered_mean([]) is None
    assert clustered_mean([(0, 0.0, 5)]) is None
    assert 2 not in mean_pass_at([(1, 1, 3)], 2)


@pytest.mark.parametrize(
    "freedom, quantile",
    [
        (1, 12.706205),
        (2, 4.302653),
        (3, 3.182446),
        (9, 2.262157),
        (30, 2.042272),
        (200, 1.971896),
        (201, 1.971837),
        (1000, 1.962339),
    ],
)
def test_students_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_quantile(0.95, freedom) == pytest.approx(quantile, abs=2e-6)


@pytest.mark.parametrize("freedom", [1, 2, 7, 200, 201, 250, 1001])
def test_students_quantile_holds_what_it_says(freedom: int) -> None:
    """Also where it comes from the expansion, of which every term counts."""
    angle = math.atan(student_quantile(0.95, freedom) / math.sqrt(freedom))
    assert student_within(angle, freedom) == pytest.approx(0.95, abs=4e-10)


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_one_attempt_per_task_is_the_binomial_case(passed: list[bool]) -> None:
    estimate = clustered_mean([(1, 1.0, sum(passed)), (1, 0.0, len(passed) - sum(passed))])
    assert estimate is not None
    expected = wilson(sum(passed), len(passed))
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    if len(passed) > 1:
        assert estimate.error == pytest.approx(stdev(map(float, passed)) / math.sqrt(len(passed)))
    else:
        assert estimate.error is None


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=1, max_size=30))
def test_grouped_tasks_give_what_single_ones_give(tasks: list[list[float]]) -> None:
    singly = clustered_mean([(len(task), math.fsum(task), 1) for task in tasks])
    doubled = clustered_mean([(len(task), math.fsum(task), 2) for task in tasks])
    listed = clustered_mean([(len(task), math.fsum(task), 1) for task in tasks + tasks])
    assert singly is not None
    assert doubled is not None
    assert listed is not None
    assert singly.mean == pytest.approx(fmean(score for task in tasks for score in task))
    assert doubled.mean == pytest.approx(listed.mean)
    assert doubled.error == pytest.approx(listed.error)
    assert 0 <= singly.interval.low <= singly.mean + 1e-12
    assert singly.mean - 1e-12 <= singly.interval.high <= 1


def test_attempts_that_agree_tell_no_more_than_one_of_them() -> None:
    once = clustered_mean([(1, 1.0, 50), (1, 0.0, 50)])
    often = clustered_mean([(8, 8.0, 50), (8, 0.0, 50)])
    independent = clustered_mean([(8, 4.0, 50), (8, 5.0, 25), (8, 3.0, 25)])
    assert once is not None
    assert often is not None
    assert independent is not None
    assert often.error == pytest.approx(once.error)
    assert often.interval.low == pytest.approx(once.interval.low, abs=0.003)
    assert independent.interval.high - independent.interval.low < (once.interval.high - once.interval.low) / 2


def test_interval_has_the_sample_size_that_its_attempts_are_worth() -> None:
    """Four tasks of two attempts, two passed once, one twice, one never; half a task more makes μ' = ½, N' = 9,
    D = 8/¼ · (4.5/3.5) · (0 + 0 + 1 + 1 + ½) / 81."""
    estimate = clustered_mean([(2, 1.0, 2), (2, 2.0, 1), (2, 0.0, 1)])
    assert estimate is not None
    assert estimate.error == pytest.approx(math.sqrt(1 / 24))
    effective = 8 / (32 * 4.5 / 3.5 * 2.5 / 81)
    assert estimate.interval == wilson(effective / 2, effective)


def test_attempts_that_all_agree_are_worth_about_their_tasks() -> None:
    estimate = clustered_mean([(10, 10.0, 40)])
    assert estimate is not None
    assert estimate.interval.low == pytest.approx(wilson(40, 40).low, abs=0.005)


def test_one_task_tells_little() -> None:
    estimate = clustered_mean([(50, 50.0, 1)])
    assert estimate is not None
    assert estimate.interval.low < 0.25
    assert estimate.interval.high == 1


def test_parts_of_a_score_are_no_passes_and_failures() -> None:
    parts = clustered_mean([(1, 0.4, 10), (1, 0.6, 10)])
    halves = clustered_mean([(1, 0.0, 10), (1, 1.0, 10)])
    assert parts is not None
    assert halves is not None
    assert parts.interval.high - parts.interval.low < (halves.interval.high - halves.interval.low) / 2


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_draws_that_hold_a_pass(case: tuple[int, int, int]) -> None:
    attempts, passed, k = case
    outcomes = [True] * passed + [False] * (attempts - passed)
    draws = [any(draw) for draw in combinations(outcomes, k)]
    assert pass_at_k(attempts, passed, k) == pytest.approx(fmean(draws))
    assert mean_pass_at([(attempts, passed, 3)], k)[k] == pytest.approx(fmean(draws))


@pytest.mark.parametrize("attempts, passed, k", [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_pass_at_k_of_nonsense_is_refused(attempts: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        pass_at_k(attempts, passed, k)


def test_mean_pass_at_k_leaves_out_tasks_with_too_few_attempts() -> None:
    both, first = (mean_pass_at_k([(2, 1, 3), (2, 0, 1), (1, 0, 4)], k) for k in (2, 1))
    assert both is not None
    assert first is not None
    assert (both.mean, both.tasks) == (pytest.approx(0.75), 4)
    assert (first.mean, first.tasks) == (pytest.approx(1.5 / 8), 8)
    assert mean_pass_at([(2, 1, 3), (2, 0, 1), (1, 0, 4)], 3) == pytest.approx({1: 1.5 / 8, 2: 0.75})


@settings(max_examples=200)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_variance_is_that_of_the_standard_library(values: list[float]) -> None:
    found = variance(len(values), math.fsum(values), math.fsum(value * value for value in values))
    assert found == pytest.approx(reference_variance(values), abs=1e-9)
    assert variance(1, 1.0, 1.0) is None
