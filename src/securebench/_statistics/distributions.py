"""Quantiles and tails of the distributions that intervals and tests rest on."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist


def normal_quantile(confidence: float) -> float:
    """The two-sided quantile of the normal distribution: P(|Z| < z) = confidence."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


@lru_cache(maxsize=1024)
def student_quantile(confidence: float, freedom: int) -> float:
    """The two-sided quantile of Student's t: by bisection, or by its expansion around the normal one."""
    z = normal_quantile(confidence)
    if freedom > 200:
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / freedom + second / freedom**2 + third / freedom**3
    low, high = 0.0, math.pi / 2  # the angle whose tangent is t / √ν
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_within(middle, freedom) < confidence else (low, middle)
    return math.tan(low) * math.sqrt(freedom)


def student_within(angle: float, freedom: int) -> float:
    """P(|T| < t) with t = √ν tan(angle), the finite sum that holds for whole ν."""
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for step in range(2 + odd, freedom + 1, 2):
        total += term
        term *= square * (step - 1) / step
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def binomial_tail(trials: int, least: int, chance: float) -> float:
    """P(X ≥ least) for X ~ Binomial(trials, chance), summed from the largest term of the smaller tail outwards."""
    if least <= 0:
        return 1.0
    if least > trials:
        return 0.0
    if least <= trials * chance:
        return 1.0 - binomial_tail(trials, trials - least + 1, 1 - chance)
    choose = math.lgamma(trials + 1) - math.lgamma(least + 1) - math.lgamma(trials - least + 1)
    term = math.exp(choose + least * math.log(chance) + (trials - least) * math.log1p(-chance)) if chance > 0 else 0.0
    total, odds = 0.0, chance / (1 - chance)
    for k in range(least, trials + 1):
        total += term
        term *= (trials - k) / (k + 1) * odds
        if term < total * 1e-17:
            break
    return min(1.0, total)


def half_binomial_tail(trials: int, least: int) -> float:
    """P(X ≥ least) for X ~ Binomial(trials, ½), counted in whole numbers."""
    term = math.comb(trials, least)
    total = term
    for k in range(least, trials):
        term = term * (trials - k) // (k + 1)
        total += term
    return power_share(total, trials)


def power_share(number: int, power: int) -> float:
    """number / 2**power, however large both are."""
    shift = max(0, number.bit_length() - 64)
    return math.ldexp(number >> shift, shift - power)
