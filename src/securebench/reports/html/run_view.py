"""One run as its part of a page shows it: everything drawn, worded and packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from securebench.reports.content import Content, TaskLine
from securebench.reports.facts import facts, notices
from securebench.reports.html.axis import SHARES, Axis, linear
from securebench.reports.html.blocks import Blocks
from securebench.reports.html.histogram import histogram
from securebench.reports.html.nodes import Node
from securebench.reports.html.scatter import Point, scatter
from securebench.reports.html.strip import Strip, strips
from securebench.reports.html.task_table import TaskTable, task_table
from securebench.reports.html.whiskers import bar, scale, whisker
from securebench.reports.integrity import Integrity, integrity_of
from securebench.reports.scores import Grouping, Score, score_of
from securebench.reports.spreads import Spread
from securebench.reports.words import ASSURANCES, UNITS, interval_text, share_text

if TYPE_CHECKING:
    from markupsafe import Markup

_MOST_PARTS = 40
_MOST_REASONS = 30
_FIFTHS = 5
_SAME = 1e-9  # of a value: what adding up loses
_TITLES = {"family": "Family", "difficulty": "Difficulty", "tag": "Tag", "assurance": "Assurance"}


@dataclass(frozen=True, slots=True)
class Line:
    """A row with a drawing: a part of the score, or a reason for failures."""

    name: str
    note: str
    figure: str
    interval: str
    drawn: Markup | None


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of such rows. `more` are not shown."""

    title: str
    scale: Markup
    lines: tuple[Line, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Distribution:
    title: str
    drawn: Markup
    numbers: tuple[tuple[str, str], ...]
    unknown: int


@dataclass(frozen=True, slots=True)
class Passes:
    """pass@k and pass^k for one k, each with its interval, and over how many tasks."""

    k: int
    chances: tuple[tuple[str, str], ...]
    tasks: str


@dataclass(frozen=True, slots=True)
class RunView:
    """`key` makes ids unique on a page of several runs; `failures` are told in full by task, for paper and
    where no script runs."""

    key: str
    content: Content
    score: str
    interval: str
    headline: Markup | None
    scale: Markup
    assurance: tuple[tuple[str, int, str], ...]
    passes: tuple[Passes, ...]
    notices: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    parts: tuple[Rows, ...]
    strips: tuple[Strip, ...]
    reasons: Rows | None
    distributions: tuple[Distribution, ...]
    against: Against | None
    integrity: Integrity
    table: TaskTable
    index: str
    blocks: Blocks
    failures: tuple[tuple[str, tuple[Node, ...]], ...]
    more_failures: int


@dataclass(frozen=True, slots=True)
class Against:
    """Scores against what attempts used. Of `left_out` tasks it is not known, or they have no verdict."""

    what: str
    left_out: int
    words: str
    drawn: Markup


@dataclass(frozen=True, slots=True)
class Told:
    """What was read from the records themselves."""

    index: str
    blocks: Blocks
    failures: tuple[tuple[str, tuple[Node, ...]], ...]
    more_failures: int


def run_view(key: str, content: Content, told: Told) -> RunView:
    estimate = content.whole.estimate
    levels = content.run.summary.assurance
    return RunView(
        key,
        content,
        "–" if estimate is None else share_text(estimate.mean),
        "nothing was judged" if estimate is None else interval_text(estimate),
        None if estimate is None else _whisker(content.whole, None),
        percent_scale(SHARES),
        tuple((name, levels[name], ASSURANCES.get(name, "")) for name in sorted(levels, key=_strength)),
        _passes(content),
        tuple(notices(content)),
        tuple(facts(content)),
        tuple(_part_rows(grouping, content.whole) for grouping in content.groupings),
        strips(content.tasks),
        _reason_rows(content),
        tuple(_distribution(spread) for spread in content.spreads),
        _against(content),
        integrity_of(content.run),
        task_table(content.tasks),
        told.index,
        told.blocks,
        told.failures,
        told.more_failures,
    )


def _strength(assurance: str) -> int:
    """The most believable first."""
    return list(ASSURANCES).index(assurance) if assurance in ASSURANCES else len(ASSURANCES)


def _passes(content: Content) -> tuple[Passes, ...]:
    """For the first, the last and the usual k."""
    shown = [k for k in content.passes if k in {1, 2, 3, 5, 10, 100, max(content.passes)}]
    return tuple(
        Passes(
            k,
            tuple(
                (f"{one.mean * 100:.1f}", f"{one.interval.low * 100:.1f} to {one.interval.high * 100:.1f}")
                for one in content.passes[k]
            ),
            f"{content.passes[k][0].tasks:,}",
        )
        for k in shown
    )


def _whisker(score: Score, reference: float | None) -> Markup | None:
    estimate = score.estimate
    if estimate is None:
        return None
    return whisker(SHARES, estimate.mean, estimate.interval.low, estimate.interval.high, reference=reference)


def _part_rows(grouping: Grouping, whole: Score) -> Rows:
    parts = (
        sorted(grouping.parts, key=lambda part: -part.judged)[:_MOST_PARTS] if grouping.by == "tag" else grouping.parts
    )
    reference = None if whole.estimate is None else whole.estimate.mean
    lines = tuple(
        Line(
            part.name,
            f"{part.estimate.tasks:,}" if part.estimate else "0",
            "–" if part.estimate is None else share_text(part.estimate.mean),
            "" if part.estimate is None else interval_text(part.estimate),
            _whisker(part, reference),
        )
        for part in parts[:_MOST_PARTS]
    )
    return Rows(_TITLES[grouping.by], percent_scale(SHARES), lines, len(grouping.parts) - len(lines))


def percent_scale(axis: Axis) -> Markup:
    return scale(axis, lambda share: f"{share:.0%}")


def _reason_rows(content: Content) -> Rows | None:
    if not content.reasons:
        return None
    total = len(content.run.rows)
    axis = linear([0, *(count for _, count in content.reasons)])
    lines = tuple(
        Line(reason, share_text(count / total), f"{count:,}", "", bar(axis, count))
        for reason, count in content.reasons[:_MOST_REASONS]
    )
    return Rows("Reason", scale(axis, lambda count: f"{count:,.0f}"), lines, len(content.reasons) - len(lines))


def _distribution(spread: Spread) -> Distribution:
    write = UNITS[spread.unit]
    numbers = (
        ("median", write(spread.quantile(0.5))),
        ("middle 80 %", f"{write(spread.quantile(0.1))} to {write(spread.quantile(0.9))}"),
        ("most", write(spread.quantile(1.0))),
        ("in all", write(spread.total)),
    )
    title = {"time": "Time per attempt", "tokens": "Tokens per attempt", "cost": "Cost per attempt"}[spread.name]
    words = f"{title}: " + ", ".join(f"{name} {value}" for name, value in numbers)
    return Distribution(title, histogram(spread, write, words), numbers, spread.unknown)


def _against(content: Content) -> Against | None:
    """Tasks in fifths from the cheapest to the dearest: does what costs more come out better, or is it just harder?"""
    for what, name, unit in (("cost", "cost", "USD"), ("tokens", "tokens", "tokens"), ("seconds", "time", "s")):
        judged = [(getattr(line, what), line) for line in content.tasks if line.score is not None]
        known = sorted((one for one in judged if one[0] is not None), key=lambda one: one[0])
        cuts = _cuts([value for value, _ in known])
        if cuts:
            fifths = [known[start:end] for start, end in pairwise(cuts)]
            return _drawn_against(name, unit, fifths, len(content.tasks) - len(known))
    return None


def _cuts(values: Sequence[float]) -> list[int]:
    """Where values in order are cut into fifths, ends included: between different ones alone, as near to equal parts
    as these allow. Empty where a part would be smaller than half a fifth."""
    count = len(values)
    between = [place for place in range(1, count) if values[place] - values[place - 1] > _SAME * values[place]]
    if count < 2 * _FIFTHS or len(between) < _FIFTHS - 1:
        return []
    wanted = [number * count / _FIFTHS for number in range(1, _FIFTHS)]
    cuts = [0, *(min(between, key=lambda place: abs(place - near)) for near in wanted), count]
    smallest = min(end - start for start, end in pairwise(cuts))
    return cuts if smallest * 2 * _FIFTHS >= count else []


def _drawn_against(
    what: str, unit: str, fifths: Sequence[Sequence[tuple[float, TaskLine]]], left_out: int
) -> Against | None:
    points, told = [], []
    for fifth in fifths:
        estimate = score_of("", (row for _, line in fifth for row in line.rows)).estimate
        if estimate is None:
            return None
        middle = fifth[len(fifth) // 2][0]
        points.append(Point(middle, estimate.mean, estimate.interval.low, estimate.interval.high))
        told.append(f"{UNITS[unit](middle)}: {share_text(estimate.mean)} ({interval_text(estimate)})")
    words = f"Score of the tasks in fifths by {what}, the cheapest first. " + "; ".join(told)
    return Against(what, left_out, words, scatter(points, unit, words))
