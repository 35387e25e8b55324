"""What a comparison came to, in the words that every output uses."""

from __future__ import annotations

from securebench.reports.compare.comparison import Match
from securebench.reports.compare.pairing import Pair
from securebench.reports.statistics import POWER, Difference
from securebench.reports.words import counted

FLIPS = 10  # of each kind that a table lists


def points(share: float) -> str:
    """`+2.6`, `−0.4`, `0.0`: a difference of scores in percentage points."""
    text = f"{share * 100:+.1f}".replace("-", "−")
    return "0.0" if text in {"+0.0", "−0.0"} else text


def difference_text(difference: Difference) -> str:
    """`+2.6 [−0.4, +5.5]`."""
    return f"{points(difference.mean)} [{points(difference.interval.low)}, {points(difference.interval.high)}]"


def p_text(p_value: float) -> str:
    """`0.12`, `0.0031`, `< 0.0001`."""
    if p_value < 0.0001:
        return "< 0.0001"
    return f"{p_value:.2f}" if p_value >= 0.0995 else f"{p_value:.2g}"


def p_equals(p_value: float) -> str:
    """`p = 0.12`, `p < 0.0001`."""
    text = p_text(p_value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def verdict(match: Match) -> str:
    """What the second run is to the first: `better`, `worse`, or what cannot be said."""
    if match.significant:
        return "better" if match.difference.mean > 0 else "worse"
    return "no difference shown"


def explained(match: Match, corrected: bool) -> str:
    """What is known, in one sentence without names."""
    difference = match.difference
    size, way = abs(difference.mean) * 100, "more" if difference.mean > 0 else "less"
    low, high = points(difference.interval.low), points(difference.interval.high)
    known = f"95 % interval {low} to {high}, {p_equals(match.adjusted)}"
    if corrected:
        known = f"95 % interval of this pair alone, not corrected: {low} to {high}; "
        known += f"{p_equals(match.adjusted)} after Holm's correction"
    if match.significant:
        return f"{size:.1f} points {way} ({known})"
    told = "The same score" if not difference.mean else f"{size:.1f} points {way}, which chance can explain"
    return f"{told} ({known})"


def seen(match: Match) -> str:
    """How small a difference could have been seen."""
    tasks = counted(len(match.pairing.pairs), "task")
    if match.detectable is None:
        return f"With {tasks} no difference can be shown, however large: all could go one way by chance."
    return (
        f"With these {tasks} a true difference of {match.detectable * 100:.1f} points would "
        f"be seen in {POWER * 100:.0f} % of such comparisons; smaller ones stay unseen more often."
    )


def tested(match: Match) -> str:
    """`Permutation test of scores: p = 0.10 (exact); McNemar: p = 0.49`."""
    way = "exact" if match.permutation.exact else f"{match.permutation.draws:,} draws"
    return (
        f"Permutation test of scores: {p_equals(match.permutation.p_value)} ({way}); McNemar: {p_equals(match.mcnemar)}"
    )


def share(value: float) -> str:
    """A task's score: `1`, `0`, `0.67`."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def listed_flips(match: Match, most: int = FLIPS) -> tuple[list[tuple[str, Pair]], int]:
    """The first lost and the first gained tasks, each with its kind, and how many more there are."""
    lost = [pair for pair in match.flips if not pair.gained]
    gained = [pair for pair in match.flips if pair.gained]
    shown = [*(("lost", pair) for pair in lost[:most]), *(("gained", pair) for pair in gained[:most])]
    return shown, len(lost) + len(gained) - len(shown)
