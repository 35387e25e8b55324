"""Scores against cost: every dot is where its value is, with its own interval; letters that have no room stand together."""

from __future__ import annotations

import re

from securebench.reports.html.scatter import Point, scatter


def marks(drawn: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Places of dots, and ends of whiskers."""
    return (
        re.findall(r'<circle[^>]* cx="([^"]+)" cy="([^"]+)"', drawn),
        re.findall(r'<line class="whisker[^>]* y1="([^"]+)" y2="([^"]+)"', drawn),
    )


def letters(drawn: str) -> list[str]:
    return re.findall(r'class="letter"[^>]*>([^<]+)<', drawn)


def test_dots_that_lie_on_each_other_keep_their_own_intervals() -> None:
    points = [Point(10, 0.5, 0.4, 0.6), Point(10.1, 0.51, 0.3, 0.55), Point(40, 0.9, 0.8, 1.0)]
    dots, whiskers = marks(scatter(points, "USD", ""))
    assert len(set(dots)) == 3
    assert len(set(whiskers)) == 3
    assert letters(scatter(points, "USD", "")) == []


def test_letters_without_room_stand_together_from_left_to_right() -> None:
    near = [Point(10.2, 0.5, 0.4, 0.6, "A"), Point(10, 0.51, 0.3, 0.55, "B"), Point(40, 0.9, 0.8, 1.0, "C")]
    drawn = scatter(near, "USD", "")
    assert sorted(letters(drawn)) == ["B A", "C"]
    assert len(marks(drawn)[0]) == 3


def test_what_costs_nothing_is_at_the_beginning() -> None:
    dots, _ = marks(scatter([Point(0, 0.5, 0.4, 0.6), Point(40, 0.9, 0.8, 1.0)], "USD", ""))
    assert dots[0][0] == "0%"
