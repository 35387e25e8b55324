"""What every audit has to show, whatever it looked at: findings in groups (rows of the map) and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Mark(StrEnum):
    """In the order of their weight: the heaviest of a cell is the cell's."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    FAILED = "failed"


GLYPHS: Mapping[Mark, str] = {Mark.OK: "✓", Mark.SKIPPED: "–", Mark.WARNING: "!", Mark.FAILED: "✗"}


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, relative to what was audited."""

    path: str
    line: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `rule` names the check and `title` says it in words; `fix` says what to do."""

    rule: str
    title: str
    group: str
    column: str
    mark: Mark
    detail: str = ""
    fix: str = ""
    place: Place | None = None
    subject: str = ""  # what it is about, where one rule looks at many: an attack, a task


@dataclass(frozen=True, slots=True)
class Section:
    """Something a reader must know besides the findings: a heading, a sentence, and pairs of a name and a text."""

    title: str
    text: str = ""
    rows: tuple[tuple[str, str], ...] = ()


_WORDS: Mapping[Mark, str] = {
    Mark.OK: "passed",
    Mark.SKIPPED: "not looked at",
    Mark.WARNING: "warnings",
    Mark.FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class Report:
    """`facts` are shown at the top; `groups` are the rows of the map with their titles, `columns` its columns.

    `lead` says in a sentence or two what was done. `rules` say more of a rule than the title of its findings. `words`
    are what the marks are called here. `sections` follow the findings."""

    title: str
    passed: bool
    time: float
    facts: Mapping[str, str]
    groups: Mapping[str, str]
    columns: tuple[str, ...]
    findings: tuple[Finding, ...]
    lead: str = ""
    rules: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[Mark, str] = field(default_factory=lambda: _WORDS)
    sections: tuple[Section, ...] = ()

    def cell(self, group: str, column: str) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if (one.group, one.column) == (group, column))

    def unsound(self) -> tuple[Finding, ...]:
        """What somebody has to act on, the heaviest first."""
        order = {Mark.FAILED: 0, Mark.WARNING: 1}
        return tuple(sorted((one for one in self.findings if one.mark in order), key=lambda one: order[one.mark]))


def heaviest(findings: Iterable[Finding]) -> Mark | None:
    """The mark of a cell; None for an empty one."""
    weights = list(Mark)
    return max((one.mark for one in findings), key=weights.index, default=None)


def counted(findings: Iterable[Finding], words: Mapping[Mark, str]) -> str:
    """`34 held, 2 not played`."""
    found = Counter(one.mark for one in findings)
    return ", ".join(f"{found[mark]} {words[mark]}" for mark in Mark if found[mark]) or "nothing"
