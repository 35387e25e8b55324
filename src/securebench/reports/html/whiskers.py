"""Dots with whiskers: an estimate and its interval on one line. Many of them stand in the rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from securebench.reports.html.axis import Axis, labels
from securebench.reports.html.svg import element, figure, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from markupsafe import Markup

_HEIGHT, _MIDDLE = 22, 11


def whisker(
    axis: Axis, value: float, low: float | None, high: float | None, *, reference: float | None = None, tone: str = "ok"
) -> Markup:
    """One row. `reference` is a dashed line through all rows: the whole, or no difference. The numbers belong beside
    it in words; the drawing itself is not read aloud."""
    drawn = [_upright(axis.at(tick), "grid") for tick in axis.ticks]
    if reference is not None:
        drawn.append(_upright(axis.at(reference), "reference"))
    if low is not None and high is not None:
        left, right = percent(axis.at(low)), percent(axis.at(high))
        drawn.append(element("line", class_=f"whisker {tone}", x1=left, x2=right, y1=_MIDDLE, y2=_MIDDLE))
        drawn += [
            element("line", class_=f"whisker {tone}", x1=end, x2=end, y1=_MIDDLE - 4, y2=_MIDDLE + 4)
            for end in (left, right)
        ]
    drawn.append(element("circle", class_=f"dot {tone}", cx=percent(axis.at(value)), cy=_MIDDLE, r=4.5))
    return figure(_HEIGHT, *drawn)


def scale(axis: Axis, write: Callable[[float], str]) -> Markup:
    """The axis above or below such rows."""
    return figure(16, *ticks(axis, write, 12))


def ticks(axis: Axis, write: Callable[[float], str], y: float) -> list[Markup]:
    """The texts of an axis; every second one, but never zero, is marked, for the style to leave out where it is
    narrow."""
    zero = axis.ticks.index(0) if 0 in axis.ticks else 0
    return [
        element("text", text, class_=f"tick{' odd' * ((n - zero) % 2)}", x=percent(at), y=y, text_anchor=_anchor(at))
        for n, (at, text) in enumerate(labels(axis, write))
    ]


def bar(axis: Axis, value: float, tone: str = "failed") -> Markup:
    """A bar from the axis' beginning, for counts in the rows of a table."""
    return figure(
        14,
        element("rect", class_=f"bar {tone}", x=0, y=2, width=percent(axis.at(value)), height=10, rx=2),
        class_="plot",
    )


def _upright(place: float, kind: str) -> Markup:
    return element("line", class_=kind, x1=percent(place), x2=percent(place), y1=0, y2=_HEIGHT)


def _anchor(place: float) -> str:
    """How a text at that place is aligned, so that it stays within the drawing."""
    return "start" if place < 0.04 else "end" if place > 0.96 else "middle"
