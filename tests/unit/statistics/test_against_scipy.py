"""Our formulas against the libraries of those who do nothing else, on random inputs."""

from __future__ import annotations

import math
import random
import tracemalloc
import warnings
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from scipy.stats import permutation_test as scipys_permutation_test

from securebench._statistics import permutation
from securebench._statistics.distributions import binomial_tail, half_binomial_tail, normal_quantile, student_quantile
from securebench.reports.statistics import (
    bootstrap_ratio,
    clopper_pearson,
    clustered_mean,
    holm,
    mcnemar,
    mean_pass_at_k,
    mean_pass_hat_k,
    minimum_detectable,
    paired_difference,
    pass_at_k,
    pass_hat_k,
    permutation_test,
    wilson,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of libraries about each other
    from statsmodels.regression.linear_model import OLS
    from statsmodels.stats.contingency_tables import mcnemar as theirs
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.power import TTestPower
    from statsmodels.stats.proportion import proportion_confint

COUNTS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99, 0.999])


@given(COUNTS, LEVELS)
def test_wilson(counts: tuple[int, int], confidence: float) -> None:
    ours = wilson(*counts, confidence)
    low, high = proportion_confint(*counts, alpha=1 - confidence, method="wilson")
    assert (ours.low, ours.high) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))


@given(COUNTS, LEVELS)
def test_clopper_pearson(counts: tuple[int, int], confidence: float) -> None:
    ours = clopper_pearson(*counts, confidence)
    low, high = proportion_confint(*counts, alpha=1 - confidence, method="beta")
    assert (ours.low, ours.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


@given(st.integers(1, 2000), st.data(), st.floats(0, 1))
def test_binomial_tail(trials: int, data: st.DataObject, chance: float) -> None:
    least = data.draw(st.integers(-1, trials + 1))
    expected = stats.binom.sf(least - 1, trials, chance)
    assert binomial_tail(trials, least, chance) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@given(LEVELS, st.integers(1, 5000))
def test_quantiles(confidence: float, freedom: int) -> None:
    assert normal_quantile(confidence) == pytest.approx(stats.norm.ppf(0.5 + confidence / 2), rel=1e-9)
    expected = stats.t.ppf(0.5 + confidence / 2, freedom)
    assert student_quantile(confidence, freedom) == pytest.approx(expected, rel=1e-6)


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=2, max_size=40))
def test_clustered_standard_error_is_that_of_a_regression_on_a_constant(tasks: list[list[float]]) -> None:
    scores = np.array([score for task in tasks for score in task])
    groups = np.repeat(np.arange(len(tasks)), [len(task) for task in tasks])
    if len(scores) < 2:
        return
    # Their factor is m/(m-1) · (N-1)/(N-k), which is m/(m-1) with the one constant.
    fitted = OLS(scores, np.ones(len(scores))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    ours = clustered_mean([(len(task), math.fsum(task), 1) for task in tasks])
    assert ours is not None
    assert ours.mean == pytest.approx(fitted.params[0], abs=1e-9)
    assert ours.error == pytest.approx(fitted.bse[0], abs=1e-7)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar(wins: int, losses: int) -> None:
    ours = mcnemar(wins, losses)
    assert ours == pytest.approx(theirs([[5, wins], [losses, 7]], exact=True).pvalue, rel=1e-9)
    if wins + losses:
        assert ours == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-9)


def test_mcnemar_of_thousands_of_tasks() -> None:
    assert mcnemar(3050, 2950) == pytest.approx(stats.binomtest(3050, 6000).pvalue, rel=1e-9)
    assert mcnemar(9000, 1000) == pytest.approx(0.0, abs=1e-300)
    assert half_binomial_tail(5000, 0) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm(p_values: list[float]) -> None:
    with mock.patch("gc.collect"):  # theirs cleans up each time, which takes a second where many tests are loaded
        wanted = list(multipletests(p_values, method="holm")[1])
    assert holm(p_values) == pytest.approx(wanted, abs=1e-12)


def scipys(differences: list[float]) -> float:
    zeros = np.zeros(len(differences))

    def statistic(one: Any, other: Any, axis: int) -> Any:
        return np.mean(one - other, axis=axis)

    found = scipys_permutation_test(
        (np.array(differences), zeros), statistic, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    return float(found.pvalue)


@settings(max_examples=60)
@given(st.lists(st.integers(-4, 4).map(lambda n: n / 4), min_size=2, max_size=11))
def test_permutation_test_of_attempts(differences: list[float]) -> None:
    ours = permutation_test(differences)
    assert ours.exact
    assert ours.p_value == pytest.approx(scipys(differences))


@settings(max_examples=40)
@given(st.lists(st.fractions(-1, 1, max_denominator=30).map(float), min_size=1, max_size=9))
def test_permutation_test_is_the_share_of_all_sign_patterns(differences: list[float]) -> None:
    observed = abs(math.fsum(differences))
    sums = [abs(math.fsum(map(math.prod, zip(signs, differences, strict=True)))) for signs in _signs(len(differences))]
    share = sum(one >= observed - 1e-9 for one in sums) / len(sums)
    assert permutation_test(differences).p_value == pytest.approx(share)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(0, 81))
def test_patterns_that_are_gone_through_and_those_that_are_counted_agree(sizes: list[int], observed: int) -> None:
    observed = min(observed, sum(sizes))
    assert permutation._counted(sizes, observed) == permutation._gone_through(sizes, observed)


def test_odd_shares_of_attempts_take_no_more_than_others() -> None:
    """As one number, the patterns of these would have hundreds of millions of digits."""
    odd = [sign * (n % 7 + 1) / prime for n, (sign, prime) in enumerate(product((1, -1), (89, 97, 101, 103, 107, 109)))]
    tracemalloc.start()
    try:
        assert permutation_test(odd[:5]).exact
        assert permutation_test([0.5, -0.25 / 3]).p_value == 1
        assert not permutation_test(odd * 2).exact
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def _signs(count: int) -> product[tuple[int, ...]]:
    return product((-1, 1), repeat=count)


def test_drawn_patterns_tell_what_counted_ones_do() -> None:
    source = random.Random(3)
    for _ in range(8):
        whole = [source.choice([-2, -1, 0, 0, 1, 2, 3]) / 3 for _ in range(120)]
        counted = permutation_test(whole)
        drawn = permutation_test([one * math.pi / 4 for one in whole])  # of no small denominator
        assert counted.exact
        assert not drawn.exact or counted.p_value == 1
        assert drawn.p_value == pytest.approx(counted.p_value, abs=0.008)


def test_large_exact_test_meets_its_normal_limit() -> None:
    source = random.Random(5)
    differences = [source.choice([-3, -2, -1, 0, 1, 2, 3]) / 3 for _ in range(1500)]
    z = abs(sum(differences)) / math.sqrt(sum(one * one for one in differences))
    ours = permutation_test(differences)
    assert ours.exact
    assert ours.p_value == pytest.approx(2 * stats.norm.sf(z), abs=0.003)


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_and_hat_k_are_hypergeometric(case: tuple[int, int, int]) -> None:
    attempts, passed, k = case
    drawn = stats.hypergeom(attempts, passed, k)
    assert pass_at_k(attempts, passed, k) == pytest.approx(drawn.sf(0), abs=1e-12)
    assert pass_hat_k(attempts, passed, k) == pytest.approx(drawn.pmf(k), abs=1e-12)


def test_pass_at_and_hat_k_are_unbiased() -> None:
    """Over all ways n attempts with chance p can come out."""
    for n, p, k in ((5, 0.3, 2), (10, 0.71, 4), (3, 0.5, 3)):
        chances = stats.binom.pmf(np.arange(n + 1), n, p)
        at = sum(chance * pass_at_k(n, c, k) for c, chance in enumerate(chances))
        hat = sum(chance * pass_hat_k(n, c, k) for c, chance in enumerate(chances))
        assert at == pytest.approx(1 - (1 - p) ** k)
        assert hat == pytest.approx(p**k)


def test_pass_at_k_of_single_attempts_has_the_interval_of_the_score() -> None:
    for mean in (mean_pass_at_k, mean_pass_hat_k):
        estimate = mean([(1, 1, 30), (1, 0, 12)], 1)
        assert estimate is not None
        interval = wilson(30, 42)
        assert (estimate.interval.low, estimate.interval.high) == pytest.approx((interval.low, interval.high))


@given(st.lists(st.floats(-1, 1), min_size=30, max_size=200))
def test_paired_interval_is_near_students_and_never_inside_it(differences: list[float]) -> None:
    ours = paired_difference(differences)
    assert ours is not None
    count = len(differences)
    error = float(np.std(differences, ddof=1)) / math.sqrt(count)
    half = stats.t.ppf(0.975, count - 1) * error
    assert ours.mean == pytest.approx(np.mean(differences), abs=1e-9)
    assert ours.error == pytest.approx(error, abs=1e-9)
    assert ours.interval.high - ours.mean >= min(half, 1 - ours.mean) - half / count - 1e-9
    assert ours.interval.high - ours.mean <= half + 1.6 / count


def test_detectable_difference_has_the_power_it_says() -> None:
    source = random.Random(7)
    differences = [source.choice([-1, 0, 0, 0, 1]) / 1 for _ in range(400)]
    spread = float(np.std(differences, ddof=1))
    detectable = minimum_detectable(differences)
    power = TTestPower().power(effect_size=detectable / spread, nobs=400, alpha=0.05)
    assert power == pytest.approx(0.8, abs=0.01)
    assert minimum_detectable(differences, power=0.9) > detectable
    assert minimum_detectable(differences, confidence=0.99) > detectable
    assert minimum_detectable(differences[:40]) > 2.5 * detectable


@pytest.mark.parametrize("tasks, discordant", [(20, 0), (20, 8), (100, 0), (100, 30), (164, 2), (500, 3), (500, 100)])
def test_detectable_difference_is_seen_as_often_as_it_says_also_where_runs_seldom_differed(
    tasks: int, discordant: int
) -> None:
    seen = [1.0, -1.0] * (discordant // 2) + [1.0] * (discordant % 2)
    true = minimum_detectable(seen + [0.0] * (tasks - discordant))
    assert true is not None
    differing = max(discordant / tasks, true)
    draws = np.random.default_rng(11).multinomial(
        tasks, [(differing + true) / 2, (differing - true) / 2, 1 - differing], size=4000
    )
    power = sum(mcnemar(int(wins), int(losses)) <= 0.05 for wins, losses, _ in draws) / len(draws)
    assert 0.74 <= power <= 0.9


def test_so_few_tasks_can_show_nothing() -> None:
    assert minimum_detectable([]) is None
    assert minimum_detectable([1.0] * 5) is None
    assert mcnemar(5, 0) > 0.05
    assert (minimum_detectable([1.0] * 6) or 0) > 0.9
    assert minimum_detectable([0.0] * 6, confidence=0.99) is None


def test_bootstrap_is_that_of_scipy() -> None:
    generator = np.random.default_rng(2)
    above, below = generator.integers(0, 4, 80).astype(float), np.full(80, 3.0)
    ours = bootstrap_ratio(list(zip(above.tolist(), below.tolist(), strict=True)), resamples=4000)
    reference = stats.bootstrap(
        (above, below),
        lambda one, other, axis: np.sum(one, axis=axis) / np.sum(other, axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=4000,
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert ours is not None
    assert (ours.low, ours.high) == (pytest.approx(reference.low, abs=0.01), pytest.approx(reference.high, abs=0.01))
    assert bootstrap_ratio([(1.0, 1.0)]) is None
    assert bootstrap_ratio([(1.0, 0.0), (2.0, 0.0)]) is None


def test_bootstrap_and_permutation_are_the_same_every_time() -> None:
    tasks = [(n % 3 * 0.17, 1.0) for n in range(50)]
    assert bootstrap_ratio(tasks) == bootstrap_ratio(tasks)
    assert bootstrap_ratio(tasks, seed=1) != bootstrap_ratio(tasks, seed=2)
    differences = [math.sin(n) for n in range(300)]
    assert permutation_test(differences) == permutation_test(differences)


def test_reference_of_the_incomplete_beta_function_is_the_binomial_tail() -> None:
    """What ties our exact interval to the textbook's quantiles of Beta."""
    assert binomial_tail(50, 20, 0.3) == pytest.approx(special.betainc(20, 31, 0.3))
