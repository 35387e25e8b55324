"""How often our intervals hold the truth, by simulation: the tables of docs/statistics.md.

    .venv/bin/python benchmarks/coverage.py [--rounds 2000]

Proportions are computed exactly, over all outcomes. Everything else is drawn with a fixed seed: tasks have chances
from a Beta distribution with mean p and a concentration c (the smaller, the more attempts at one task agree: their
correlation is 1 / (1 + c)), attempts are drawn from them. Shown are the mean coverage over the settings of a row, and
the lowest and highest; 95 % is what all of them promise. With 2000 rounds a setting is known to about one point.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product

import numpy as np
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from securebench._statistics.distributions import student_quantile
from securebench.reports.statistics import (
    Estimate,
    Interval,
    clopper_pearson,
    clustered_mean,
    mean_pass_at_k,
    mean_pass_hat_k,
    paired_difference,
    wilson,
)

MEANS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
AGREEMENT = (0.3, 0.6, 1.2, 2.5, 5.0)  # correlations from 0.77 to 0.17


def line(name: str, covered: Iterable[float], width: float | None = None) -> None:
    found = np.array(list(covered)) * 100
    inside = ((found >= 94) & (found <= 96.5)).mean() * 100
    wide = "" if width is None else f"{width:10.3f}"
    print(f"{name:40}{found.mean():8.1f}{found.min():8.1f}{found.max():8.1f}{inside:10.0f} %{wide}")


def head(title: str, *, width: bool = False) -> None:
    print(f"\n{title:40}{'mean':>8}{'lowest':>8}{'highest':>8}{'94-96.5 %':>12}{'width' if width else '':>10}")


def others(method: str) -> Callable[[int, int], Interval]:
    return lambda count, trials: Interval(*map(float, proportion_confint(count, trials, method=method)))


def proportions() -> None:
    """Averaged over 6 % around every chance: for one chance coverage swings with the steps of the count."""
    methods = {
        "Wilson": wilson,
        "Clopper-Pearson": clopper_pearson,
        "Jeffreys": others("jeffreys"),
        "Agresti-Coull": others("agresti_coull"),
        "Wald (textbook)": others("normal"),
    }
    chances = np.linspace(0.02, 0.98, 385)
    for trials in (20, 50, 164, 500):
        head(f"one attempt at each of {trials} tasks", width=True)
        pmf = stats.binom.pmf(np.arange(trials + 1)[:, None], trials, chances[None, :])
        for name, method in methods.items():
            ends = [method(count, trials) for count in range(trials + 1)]
            low, high = (np.array([getattr(end, side) for end in ends])[:, None] for side in ("low", "high"))
            covered = np.where((low <= chances) & (chances <= high), pmf, 0).sum(axis=0)
            line(name, np.convolve(covered, np.ones(25) / 25, "valid"), float((high - low).mean()))


def drawn(source: np.random.Generator, rounds: int, tasks: int, attempts: int, mean: float, agree: float) -> tuple:
    truth = np.clip(mean + source.uniform(-0.02, 0.02, rounds), 0.03, 0.97)
    chances = source.beta((truth * agree)[:, None], ((1 - truth) * agree)[:, None], (rounds, tasks))
    return truth, source.binomial(attempts, chances)


def held(found: Sequence[Estimate | None], truth: Sequence[float]) -> float:
    return sum(one is not None and true in one.interval for one, true in zip(found, truth, strict=True)) / len(found)


def clusters(rounds: int) -> None:
    for tasks in (10, 20, 30, 50, 100, 164, 500):
        ours, students, naive, widths = [], [], [], []
        for attempts, mean, agree in product((2, 3, 5, 10), MEANS, AGREEMENT):
            source = np.random.default_rng([tasks, attempts, int(mean * 100), int(agree * 10)])
            truth, passed = drawn(source, rounds, tasks, attempts, mean, agree)
            hits = np.zeros(3)
            for true, row in zip(truth, passed, strict=True):
                counts = np.bincount(row, minlength=attempts + 1)
                estimate = clustered_mean([(attempts, float(n), int(count)) for n, count in enumerate(counts)])
                assert estimate is not None
                half = student_quantile(0.95, tasks - 1) * (estimate.error or 0.0)
                one = wilson(int(row.sum()), tasks * attempts)
                hits += (true in estimate.interval, abs(estimate.mean - true) <= half, true in one)
                widths.append(estimate.interval.high - estimate.interval.low)
            for found, hit in zip((ours, students, naive), hits / rounds, strict=True):
                found.append(hit)
        head(f"2 to 10 attempts at each of {tasks} tasks", width=True)
        line("ours", ours, float(np.mean(widths)))
        line("Student's t on the clustered error", students)
        line("Wilson, attempts taken for independent", naive)


def parts(rounds: int) -> None:
    head("scores of 0/8 to 8/8, one attempt")
    for tasks in (20, 50, 164, 500):
        covered = []
        for mean in MEANS:
            source = np.random.default_rng([tasks, int(mean * 100)])
            truth, passed = drawn(source, rounds, tasks, 8, mean, 0.5)
            found = [clustered_mean((1, float(one) / 8, 1) for one in row) for row in passed]
            covered.append(
                np.mean([one is not None and true in one.interval for one, true in zip(found, truth, strict=True)])
            )
        line(f"{tasks} tasks", map(float, covered))


def passes(rounds: int) -> None:
    """A uniform chance p has E[1-(1-p)^3] = 3/4 and E[p^3] = 1/4."""
    head("pass@3 and pass^3 of 5 attempts")
    for tasks in (30, 100, 300):
        source = np.random.default_rng(tasks)
        passed = source.binomial(5, source.uniform(size=(rounds, tasks)))
        for name, mean, truth in (("pass@3", mean_pass_at_k, 0.75), ("pass^3", mean_pass_hat_k, 0.25)):
            found = [mean([(5, int(one), 1) for one in row], 3) for row in passed]
            line(
                f"{name}, {tasks} tasks", [float(np.mean([one is not None and truth in one.interval for one in found]))]
            )


def differences(rounds: int) -> None:
    for attempts in (1, 3, 10):
        head(f"difference of two runs, {attempts} attempts", width=True)
        for tasks in (20, 30, 50, 100, 164, 500):
            ours, students, widths = [], [], []
            for agree, mean, better in product((0.3, 1.2, 5.0), (0.15, 0.5, 0.8), (0.0, 0.03, 0.12)):
                source = np.random.default_rng([tasks, attempts, int(mean * 100), int(better * 100), int(agree * 10)])
                chances = source.beta(mean * agree, (1 - mean) * agree, (rounds, tasks)) * (1 - better)
                first, second = source.binomial(attempts, chances), source.binomial(attempts, chances + better)
                hits = np.zeros(2)
                for row in (second - first) / attempts:
                    found = paired_difference([float(one) for one in row])
                    assert found is not None
                    half = student_quantile(0.95, tasks - 1) * (found.error or 0.0)
                    hits += (better in found.interval, abs(found.mean - better) <= half)
                    widths.append(found.interval.high - found.interval.low)
                ours.append(hits[0] / rounds)
                students.append(hits[1] / rounds)
            line(f"ours, {tasks} tasks", ours, float(np.mean(widths)))
            line(f"Student's t, {tasks} tasks", students)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    rounds = parser.parse_args().rounds
    print(f"Coverage in percent; a setting is known to about ±{200 * math.sqrt(0.95 * 0.05 / rounds):.1f} points.")
    proportions()
    clusters(rounds)
    parts(rounds)
    passes(rounds)
    differences(rounds)


if __name__ == "__main__":
    main()
