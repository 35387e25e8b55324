"""Every attempt at a glance: a column for each task, a mark in it for each attempt, the most solved tasks first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from securebench.reports.content import TaskLine
from securebench.reports.html.svg import element

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_MARKS = 3000  # beyond it the marks are drawn as one picture
_COLUMNS, _UNIT, _GAP = 320, 4, 5


@dataclass(frozen=True, slots=True)
class Column:
    """A task among those of its family: its number in the table, and what its attempts came to."""

    number: int
    tip: str
    statuses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """The tasks of one family. `picture` stands for `columns` where there are too many of them."""

    name: str
    words: str
    columns: tuple[Column, ...]
    picture: Markup | None


def strips(tasks: Sequence[TaskLine]) -> tuple[Strip, ...]:
    """One for each family."""
    families: dict[str, list[tuple[int, TaskLine]]] = {}
    for number, line in enumerate(tasks):
        families.setdefault(line.task.task_type, []).append((number, line))
    marks = sum(len(line.attempts) for line in tasks)
    return tuple(_strip(name, mine, picture=marks > MOST_MARKS) for name, mine in sorted(families.items()))


def _strip(name: str, lines: list[tuple[int, TaskLine]], *, picture: bool) -> Strip:
    ordered = sorted(lines, key=lambda one: (_rank(one[1]), one[0]))
    words = _words([line for _, line in lines])
    if picture:
        return Strip(name, words, (), _picture([_in_order(line) for _, line in ordered]))
    columns = tuple(Column(number, _tip(line), _in_order(line)) for number, line in ordered)
    return Strip(name, words, columns, None)


def _rank(line: TaskLine) -> tuple[float, int]:
    """The most solved first; what has no score last."""
    return (2.0, 0) if line.score is None else (1 - line.score, -line.statuses.count("passed"))


_WEIGHT = {"passed": 0, "failed": 1, "pending": 2, "error": 3}


def _in_order(line: TaskLine) -> tuple[str, ...]:
    """Passed attempts at the top: how many of them there are is what one sees."""
    return tuple(sorted(line.statuses, key=lambda status: _WEIGHT.get(status, 4)))


def _words(lines: list[TaskLine]) -> str:
    """`200 tasks: 90 solved in every attempt, 40 in some, 70 in none`."""
    kinds = Counter(_kind(line) for line in lines)
    several = any(len(line.attempts) > 1 for line in lines)
    names = (
        ("every", "solved in every attempt" if several else "solved"),
        ("some", "in some"),
        ("none", "in none" if several else "not solved"),
        ("unjudged", "not judged"),
    )
    told = ", ".join(f"{kinds[kind]:,} {word}" for kind, word in names if kinds[kind])
    return f"{len(lines):,} task{'s' if len(lines) > 1 else ''}: {told}"


def _kind(line: TaskLine) -> str:
    judged = [row.passed for row in line.rows if row.judged]
    if not judged:
        return "unjudged"
    return "every" if all(judged) else "some" if any(judged) else "none"


def _tip(line: TaskLine) -> str:
    return f"{line.task.id}: {', '.join(line.statuses)}"


def _picture(columns: list[tuple[str, ...]]) -> Markup:
    """One path for each status: thousands of marks, a handful of elements."""
    tall = max(map(len, columns)) * _UNIT + _GAP
    paths: dict[str, list[str]] = {}
    for number, statuses in enumerate(columns):
        x, top = number % _COLUMNS * _UNIT, number // _COLUMNS * tall
        for place, status in enumerate(statuses):
            paths.setdefault(status, []).append(f"M{x} {top + place * _UNIT + 2}h3")
    height = ((len(columns) - 1) // _COLUMNS + 1) * tall
    return element(
        "svg",
        *(element("path", class_=f"s-{status}", d="".join(marks)) for status, marks in sorted(paths.items())),
        class_="picture",
        viewBox=f"0 0 {_COLUMNS * _UNIT} {height}",
        aria_hidden="true",
    )
