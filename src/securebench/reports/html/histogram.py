"""A histogram of what attempts used, with its median marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from securebench.reports.html.axis import SECONDS, Axis, fitting, tick_text
from securebench.reports.html.svg import element, figure, percent
from securebench.reports.html.whiskers import ticks
from securebench.reports.spreads import Spread

if TYPE_CHECKING:
    from markupsafe import Markup

BINS = 30
_TOP, _HEIGHT, _BELOW = 18, 96, 20


def histogram(spread: Spread, write: Callable[[float], str], label: str) -> Markup:
    """Of a spread that has values; `write` says one of them in words, `label` all of them."""
    axis = fitting(spread.values, SECONDS if spread.unit == "s" else ())
    counts = binned(spread.values, axis)
    most = max(counts)
    floor = _TOP + _HEIGHT
    drawn = []
    for number, count in enumerate(counts):
        if count:
            height = max(1.5, _HEIGHT * count / most)
            place, width = percent(number / BINS), percent(1 / BINS)
            drawn.append(element("rect", class_="bar part ok", x=place, y=floor - height, width=width, height=height))
    drawn.append(element("line", class_="axis", x1=0, x2="100%", y1=floor, y2=floor))
    drawn += ticks(axis, tick_text(axis, spread.unit), floor + 15)
    middle = axis.at(median := spread.quantile(0.5))
    drawn.append(element("line", class_="mark", x1=percent(middle), x2=percent(middle), y1=_TOP - 4, y2=floor))
    side = "start" if middle < 0.3 else "end" if middle > 0.7 else "middle"
    drawn.append(
        element("text", f"median {write(median)}", class_="said", x=percent(middle), y=_TOP - 7, text_anchor=side)
    )
    return figure(floor + _BELOW, *drawn, label=label)


def binned(values: tuple[float, ...], axis: Axis) -> list[int]:
    """How many values lie in each of the equal parts of the axis."""
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(axis.at(value) * BINS))] += 1
    return counts
