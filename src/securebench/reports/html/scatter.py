"""Scores against what they cost: dots with upright whiskers, with letters beside them where they have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from securebench.reports.html.axis import SECONDS, SHARES, Axis, fitting, linear, tick_text
from securebench.reports.html.svg import element, figure, percent
from securebench.reports.html.whiskers import ticks

if TYPE_CHECKING:
    from markupsafe import Markup

_TOP, _HEIGHT, _BELOW, _LEFT = 10, 200, 24, 44
_NEAR = (0.06, 0.08)  # shares of the width and of the height in which two letters have no room


@dataclass(frozen=True, slots=True)
class Point:
    """A score with its interval at a cost. `letter` stands beside the dot, and names it in words beside the plot."""

    cost: float
    score: float
    low: float
    high: float
    letter: str = ""


def scatter(points: Sequence[Point], unit: str, label: str) -> Markup:
    """Cost from left to right, score upwards; the inner drawing leaves room for the scores written at its left."""
    costs, round_ones = [point.cost for point in points], SECONDS if unit == "s" else ()
    axis = fitting(costs, round_ones)
    if not axis.log:
        axis = linear([0.0, *costs], round_ones=round_ones)  # what costs twice as much is twice as far
    inner = [*_grid(), *(part for point in points for part in _dot(point, axis))]
    inner += [_letters(point, letters, axis) for point, letters in _named(points, axis)]
    inner += ticks(axis, tick_text(axis, unit), _TOP + _HEIGHT + 18)
    names = [
        element("text", f"{tick:.0%}", class_="tick", x=_LEFT - 10, y=_height(tick) + 4, text_anchor="end")
        for tick in SHARES.ticks
    ]
    # The inner drawing is as wide as its place less the room at its sides, which percentages cannot say.
    plot = element("svg", *inner, class_="plot", x=_LEFT, width="86%", height=_TOP + _HEIGHT + _BELOW)
    return figure(_TOP + _HEIGHT + _BELOW, *names, plot, label=label)


def _named(points: Sequence[Point], axis: Axis) -> list[tuple[Point, str]]:
    """Where letters are written: those of dots that lie on each other together, beside the rightmost."""
    places: list[tuple[Point, str]] = []
    for point in sorted((one for one in points if one.letter), key=lambda one: -one.cost):
        for number, (other, letters) in enumerate(places):
            apart = axis.at(other.cost) - axis.at(point.cost), abs(other.score - point.score)
            if apart[0] < _NEAR[0] and apart[1] < _NEAR[1]:
                places[number] = other, f"{point.letter} {letters}"
                break
        else:
            places.append((point, point.letter))
    return places


def _grid() -> list[Markup]:
    return [
        element("line", class_="grid" if tick else "axis", x1=0, x2="100%", y1=_height(tick), y2=_height(tick))
        for tick in SHARES.ticks
    ]


def _dot(point: Point, axis: Axis) -> list[Markup]:
    x = percent(axis.at(point.cost))
    return [
        element("line", class_="whisker ok", x1=x, x2=x, y1=_height(point.low), y2=_height(point.high)),
        element("circle", class_="dot ok", cx=x, cy=_height(point.score), r=5),
    ]


def _letters(point: Point, letters: str, axis: Axis) -> Markup:
    return element("text", letters, class_="letter", x=percent(axis.at(point.cost)), dx=9, y=_height(point.score) + 4)


def _height(share: float) -> float:
    return _TOP + _HEIGHT * (1 - share)
