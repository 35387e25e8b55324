"""A comparison as one page: scores, differences, families and the tasks that flipped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from securebench.reports.compare.comparison import Comparison, Match, Side
from securebench.reports.compare.pairing import Pair
from securebench.reports.compare.words import (
    explained,
    listed_flips,
    points,
    seen,
    share,
    tested,
    verdict,
)
from securebench.reports.html.axis import SHARES, Axis, linear
from securebench.reports.html.document import Design, render
from securebench.reports.html.svg import element, figure, percent
from securebench.reports.html.whiskers import scale, whisker
from securebench.reports.statistics import Difference
from securebench.reports.words import counted, interval_text, money_text, share_text

if TYPE_CHECKING:
    from markupsafe import Markup

_HERE = Path(__file__).parent
_DESIGN = Design(_HERE / "page.html.j2", (_HERE / "page.css",))
_MOST_FLIPS = 500
_MARKS = {"better": "passed", "worse": "failed", "no difference shown": "pending"}
_TONES = {"better": "ok", "worse": "failed", "no difference shown": "quiet"}


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the first table."""

    side: Side
    drawn: Markup | None
    score: str
    interval: str
    cost: str


@dataclass(frozen=True, slots=True)
class PartLine:
    """A difference in a table: of the whole, or of a family."""

    name: str
    tasks: int
    drawn: Markup
    difference: str
    interval: str


@dataclass(frozen=True, slots=True)
class MatchView:
    """One match, ready to be written."""

    key: str
    match: Match
    verdict: str
    mark: str
    explained: str
    tested: str
    seen: str
    counts: Markup
    scale: Markup
    parts: tuple[PartLine, ...]
    flips: tuple[tuple[str, Pair], ...]
    more_flips: int


def comparison_page(comparison: Comparison) -> str:
    """The whole page; nothing in it is loaded, and no script runs."""
    axis = _axis(comparison.matches)
    return render(
        _DESIGN,
        comparison=comparison,
        runs=[_run(side) for side in comparison.sides],
        shares=scale(SHARES, lambda value: f"{value:.0%}"),
        matches=[_match(f"m{n}", match, comparison.corrected, axis) for n, match in enumerate(comparison.matches, 1)],
        share=share,
        counted=counted,
    )


def _run(side: Side) -> RunLine:
    estimate, cost = side.score.estimate, side.run.summary.cost_usd
    if estimate is None:
        return RunLine(side, None, "–", "nothing was judged", "–" if cost is None else money_text(cost))
    drawn = whisker(SHARES, estimate.mean, estimate.interval.low, estimate.interval.high)
    money = "–" if cost is None else money_text(cost)
    return RunLine(side, drawn, share_text(estimate.mean), interval_text(estimate), money)


def _axis(matches: Iterable[Match]) -> Axis:
    """One for all, around no difference, so that lengths can be compared from match to match."""
    ends = [0.0]
    for match in matches:
        for one in (match.difference, *(part for _, part in match.parts)):
            ends += [one.interval.low, one.interval.high]
    reach = max(0.01, *map(abs, ends))
    return linear([-reach, reach])


def _match(key: str, match: Match, corrected: bool, axis: Axis) -> MatchView:
    told = verdict(match)
    flips, more = listed_flips(match, _MOST_FLIPS)
    whole = _part("all tasks", match.difference, axis, _TONES[told])
    return MatchView(
        key=key,
        match=match,
        verdict=told,
        mark=_MARKS[told],
        explained=explained(match, corrected),
        tested=tested(match),
        seen=seen(match),
        counts=_counts(match.difference),
        scale=scale(axis, lambda share: points(share).removesuffix(".0")),
        parts=(whole, *(_part(name, one, axis, "quiet") for name, one in match.parts)),
        flips=tuple(flips),
        more_flips=more,
    )


def _part(name: str, one: Difference, axis: Axis, tone: str) -> PartLine:
    low, high = one.interval.low, one.interval.high
    drawn = whisker(axis, one.mean, low, high, reference=0.0, tone=tone)
    return PartLine(name, one.tasks, drawn, points(one.mean), f"{points(low)} to {points(high)}")


def _counts(one: Difference) -> Markup:
    """A bar of the tasks that were won, tied and lost."""
    drawn, at = [], 0.0
    for tone, number in (("ok", one.wins), ("tied", one.ties), ("failed", one.losses)):
        width = number / one.tasks
        if number:
            drawn.append(element("rect", class_=f"bar {tone}", x=percent(at), y=0, width=percent(width), height=18))
        at += width
    return figure(18, *drawn, label=f"{one.wins:,} won, {one.ties:,} tied, {one.losses:,} lost")
