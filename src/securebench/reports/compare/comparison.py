"""Two runs or more, paired by task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from securebench.errors import ConfigError
from securebench.reports.compare.caveats import match_caveats, run_caveats
from securebench.reports.compare.pairing import Pair, Pairing, pair_up
from securebench.reports.runs import Run
from securebench.reports.scores import Score, estimate_json, score_of
from securebench.reports.statistics import (
    CONFIDENCE,
    POWER,
    Difference,
    PermutationTest,
    holm,
    mcnemar,
    minimum_detectable,
    paired_difference,
    permutation_test,
)

LEVEL = 1 - CONFIDENCE
_FAMILIES = 50  # that are looked at one by one; no pack of ours has as many


@dataclass(frozen=True, slots=True)
class Side:
    """One run, with its score over everything it was judged on and what is to be known of it."""

    run: Run
    score: Score
    caveats: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(sorted({row.model for row in self.run.rows if row.model is not None}))

    def as_json(self) -> dict[str, Any]:
        run, estimate = self.run, estimate_json(self.score.estimate)
        return {
            "label": run.label,
            "directory": str(run.directory),
            "run_id": run.plan.run_id,
            "benchmark": {"id": run.plan.benchmark.id, "version": run.plan.benchmark.version},
            "pack_digest": run.plan.pack_digest,
            "harness": run.plan.harness.get("type"),
            "models": list(self.models),
            "planned": run.plan.total,
            "tasks": len(run.plan.tasks),
            "attempts": run.summary.attempts,
            "score": estimate["score"],
            "interval": estimate["interval"],
            "judged": {"tasks": estimate["tasks"], "attempts": estimate["attempts"]},
            "counts": dict(self.score.counts),
            "cost_usd": run.summary.cost_usd,
            "seal": run.seal_status,
            "caveats": list(self.caveats),
        }


@dataclass(frozen=True, slots=True)
class Match:
    """The second run against the first, over the tasks that both were judged on.

    `adjusted` is the permutation test's p-value after Holm's correction for all matches of the comparison."""

    first: Run
    second: Run
    pairing: Pairing
    difference: Difference
    parts: tuple[tuple[str, Difference], ...]  # by family, where there are several
    wins: int  # tasks that the second passes more often
    losses: int
    mcnemar: float
    permutation: PermutationTest
    adjusted: float
    detectable: float | None  # the smallest true difference that would be seen; None where none can be
    caveats: tuple[str, ...]

    @property
    def significant(self) -> bool:
        return self.adjusted <= LEVEL

    @property
    def flips(self) -> tuple[Pair, ...]:
        """What was lost first, then what was gained; the largest differences of each first."""
        flipped = [pair for pair in self.pairing.pairs if pair.flipped]
        return tuple(sorted(flipped, key=lambda pair: (pair.gained, -abs(pair.difference), pair.task_id)))

    def as_json(self) -> dict[str, Any]:
        pairing, permutation = self.pairing, self.permutation
        return {
            "first": self.first.label,
            "second": self.second.label,
            "tasks": len(pairing.pairs),
            "left_out": {
                "only_first": pairing.only_first,
                "only_second": pairing.only_second,
                "changed": pairing.changed,
                "unjudged": pairing.unjudged,
            },
            **difference_json(self.difference),
            "mcnemar": {"wins": self.wins, "losses": self.losses, "p_value": self.mcnemar},
            "permutation": {"p_value": permutation.p_value, "exact": permutation.exact, "draws": permutation.draws},
            "adjusted_p_value": self.adjusted,
            "significant": self.significant,
            "minimum_detectable": {"difference": self.detectable, "power": POWER},
            "by_family": [{"family": name, **difference_json(part)} for name, part in self.parts],
            "flips": [_pair_json(pair) for pair in self.flips],
            "differing": [_pair_json(pair) for pair in pairing.pairs if pair.difference],
            "caveats": list(self.caveats),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several runs. Matches are against the first, or between all."""

    sides: tuple[Side, ...]
    matches: tuple[Match, ...]

    @property
    def comparable(self) -> bool:
        """Whether nothing stands between them and a fair comparison."""
        return not (any(side.caveats for side in self.sides) or any(match.caveats for match in self.matches))

    @property
    def corrected(self) -> bool:
        return len(self.matches) > 1

    def as_json(self) -> dict[str, Any]:
        return {
            "comparable": self.comparable,
            "confidence": CONFIDENCE,
            "correction": "holm" if self.corrected else None,
            "runs": [side.as_json() for side in self.sides],
            "matches": [match.as_json() for match in self.matches],
        }


def compare_runs(runs: Sequence[Run], *, by_id: bool = False, all_pairs: bool = False) -> Comparison:
    """Every run against the first; with `all_pairs`, every run against every other.

    Raises ConfigError for fewer than two, and where two have no task in common that both were judged on."""
    if len(runs) < 2:
        raise ConfigError("a comparison needs two runs or more; the first is the one the others are compared with")
    sides = tuple(Side(run, score_of(run.label, run.rows), run_caveats(run)) for run in runs)
    wanted = list(combinations(runs, 2)) if all_pairs else [(runs[0], run) for run in runs[1:]]
    matches = [match_runs(first, second, by_id=by_id, of=len(wanted)) for first, second in wanted]
    adjusted = holm([match.permutation.p_value for match in matches])
    return Comparison(
        sides, tuple(replace(match, adjusted=value) for match, value in zip(matches, adjusted, strict=True))
    )


def match_runs(first: Run, second: Run, *, by_id: bool = False, of: int = 1) -> Match:
    """One match `of` so many, for which its p-value is not corrected yet. Raises ConfigError where the two have nothing
    to compare."""
    pairing = pair_up(first, second, by_id=by_id)
    differences = [pair.difference for pair in pairing.pairs]
    difference = paired_difference(differences)
    if difference is None:
        raise ConfigError(_nothing_in_common(first, second, pairing))
    permutation = permutation_test(differences)
    wins = sum(pair.second.share > pair.first.share for pair in pairing.pairs)
    losses = sum(pair.second.share < pair.first.share for pair in pairing.pairs)
    return Match(
        first=first,
        second=second,
        pairing=pairing,
        difference=difference,
        parts=_parts(pairing.pairs),
        wins=wins,
        losses=losses,
        mcnemar=mcnemar(wins, losses),
        permutation=permutation,
        adjusted=permutation.p_value,
        detectable=minimum_detectable(differences, 1 - LEVEL / of),
        caveats=match_caveats(first, second, pairing),
    )


def _parts(pairs: Sequence[Pair]) -> tuple[tuple[str, Difference], ...]:
    families: dict[str, list[float]] = {}
    for pair in pairs:
        families.setdefault(pair.family, []).append(pair.difference)
    largest = sorted(families, key=lambda family: (-len(families[family]), family))[:_FAMILIES]
    found = [(family, paired_difference(families[family])) for family in sorted(largest)]
    return tuple((family, one) for family, one in found if one is not None) if len(found) > 1 else ()


def _nothing_in_common(first: Run, second: Run, pairing: Pairing) -> str:
    what = f"{first.label} and {second.label} have no task in common that both were judged on"
    if pairing.changed:
        return f"{what}: {_same_ids(pairing.changed)} of different packs; --by-id compares them all the same"
    return f"{what}: are they runs of the same pack, and is anything in them judged?"


def _same_ids(tasks: int) -> str:
    return "1 task has the same id, but is" if tasks == 1 else f"{tasks:,} tasks have the same ids, but are"


def difference_json(difference: Difference) -> dict[str, Any]:
    return {
        "difference": difference.mean,
        "standard_error": difference.error,
        "interval": {"low": difference.interval.low, "high": difference.interval.high, "confidence": CONFIDENCE},
        "wins": difference.wins,
        "ties": difference.ties,
        "losses": difference.losses,
    }


def _pair_json(pair: Pair) -> dict[str, Any]:
    return {
        "task_id": pair.task_id,
        "family": pair.family,
        "first": pair.first.mean,
        "second": pair.second.mean,
        "difference": pair.difference,
    }
