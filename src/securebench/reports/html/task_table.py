"""The table of all tasks, and what the page's script needs to sort and filter it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from securebench._text import one_line
from securebench.reports.content import TaskLine
from securebench.reports.words import GLYPHS, amount_text, money_text, seconds_text, share_text

MOST_TASKS = 20_000  # rows of one table
MOST_MARKS = 12  # attempts of one row that are shown one by one
FIRST = 100  # rows that are laid out at once; a page with a script turns to the others
_LONGEST = 80  # of a name that is chosen from a list
_LETTERS = {"passed": "p", "failed": "f", "pending": "w", "error": "e", "missing": "m"}


@dataclass(frozen=True, slots=True)
class Cells:
    """One row: marks as letters and glyphs, then texts; a column that says nothing in any row is left out."""

    id: str
    family: str
    marks: tuple[tuple[str, str], ...]
    words: str
    more: int
    score: str
    reasons: str
    used: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskTable:
    """`first` are laid out at once, `rest` behind them; `left_out` tasks are not in the table at all."""

    first: tuple[Cells, ...]
    rest: tuple[Cells, ...]
    left_out: int
    columns: tuple[tuple[str, str], ...]  # name for the script, title for people: those of `Cells.used`
    several: bool  # attempts a task

    @property
    def total(self) -> int:
        return len(self.first) + len(self.rest)


_USED = (
    ("seconds", "Time", seconds_text),
    ("tokens", "Tokens", amount_text),
    ("cost", "Cost", money_text),
)


def task_table(tasks: Sequence[TaskLine]) -> TaskTable:
    listed = tasks[:MOST_TASKS]
    used = [one for one in _USED if any(getattr(line, one[0]) is not None for line in listed)]
    rows = tuple(_cells(line, used) for line in listed)
    return TaskTable(
        rows[:FIRST],
        rows[FIRST:],
        len(tasks) - len(listed),
        tuple((name, title) for name, title, _ in used),
        any(len(line.attempts) > 1 for line in listed),
    )


def _cells(line: TaskLine, used: Iterable[tuple[str, str, Any]]) -> Cells:
    statuses = line.statuses
    values = [(getattr(line, name), write) for name, _, write in used]
    return Cells(
        line.task.id,
        line.task.task_type,
        tuple((_LETTERS[status], GLYPHS[status]) for status in statuses[:MOST_MARKS]),
        _words(statuses),
        max(0, len(statuses) - MOST_MARKS),
        "–" if line.score is None else share_text(line.score),
        ", ".join(line.reasons),
        tuple("–" if value is None else write(value) for value, write in values),
    )


def _words(statuses: Sequence[str]) -> str:
    """What a row's marks say, for who does not see them."""
    return statuses[0] if len(statuses) == 1 else f"{statuses.count('passed')} of {len(statuses)} passed"


def index(tasks: Sequence[TaskLine]) -> dict[str, Any]:
    """For the script: numbers to sort by, and numbers of names to filter by, one for each row of the table."""
    listed = tasks[:MOST_TASKS]
    families = _Names()
    tags, reasons = _Names(), _Names()
    rows = [
        (
            families.number(line.task.task_type),
            [tags.number(tag) for tag in line.task.tags],
            "".join(_LETTERS[status] for status in sorted(set(line.statuses))),
            [reasons.number(reason) for reason in line.reasons],
        )
        for line in listed
    ]
    return {
        "family": [row[0] for row in rows],
        "tags": [row[1] for row in rows],
        "status": [row[2] for row in rows],
        "reasons": [row[3] for row in rows],
        "names": {"family": families.names, "tags": tags.names, "reasons": reasons.names},
        "score": [line.score for line in listed],
        **{name: [_rounded(getattr(line, name)) for line in listed] for name, _, _ in _USED},
    }


class _Names:
    """Each name once, as it can be shown."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(one_line(name, _LONGEST))
        return self._numbers[name]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
