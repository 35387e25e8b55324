"""What every audit has to show, whatever it looked at: findings in groups (rows of the map) and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """In the order of their weight: the heaviest of a cell is the cell's."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    FAILED = "failed"


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
class Report:
    """`facts` are shown at the top; `groups` are the rows of the map with their titles, `columns` its columns."""

    title: str
    passed: bool
    time: float
    facts: Mapping[str, str]
    groups: Mapping[str, str]
    columns: tuple[str, ...]
    findings: tuple[Finding, ...]
