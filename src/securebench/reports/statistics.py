"""The numbers reports say, in one place. Formulas, choices and what simulations showed: docs/statistics.md.

Everything is pure and of the standard library. `clustered_mean` is the interval of a run's summary too."""

from securebench._statistics.attempts import mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k
from securebench._statistics.bootstrap import bootstrap_ratio
from securebench._statistics.clusters import Estimate, clustered_mean, variance
from securebench._statistics.faults import score_bounds
from securebench._statistics.intervals import CONFIDENCE, Interval, clopper_pearson, wilson
from securebench._statistics.paired import POWER, Difference, holm, mcnemar, minimum_detectable, paired_difference
from securebench._statistics.permutation import PermutationTest, permutation_test

__all__ = [
    "CONFIDENCE",
    "POWER",
    "Difference",
    "Estimate",
    "Interval",
    "PermutationTest",
    "bootstrap_ratio",
    "clopper_pearson",
    "clustered_mean",
    "holm",
    "mcnemar",
    "mean_pass_at_k",
    "mean_pass_hat_k",
    "minimum_detectable",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "permutation_test",
    "score_bounds",
    "variance",
    "wilson",
]
