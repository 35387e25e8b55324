"""What became of the rows of a pack in another format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from securebench._text import one_line


@dataclass(frozen=True, slots=True)
class Told:
    """About one row: why it is not there, or what is not as in the pack."""

    task_id: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"task {self.task_id} (line {self.line}): {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"task_id": self.task_id, "line": self.line, "reason": self.reason}


@dataclass(slots=True)
class ConversionReport:
    """Rows written, rows left out, and notes about those that were written."""

    rows: int = 0
    written: int = 0
    left_out: list[Told] = field(default_factory=list)
    notes: list[Told] = field(default_factory=list)

    def leave_out(self, task_id: str, line: int, reason: str) -> None:
        self.left_out.append(Told(task_id, line, one_line(reason, 500)))

    def note(self, task_id: str, line: int, reason: str) -> None:
        self.notes.append(Told(task_id, line, one_line(reason, 500)))

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "written": self.written,
            "left_out": [one.as_json() for one in self.left_out],
            "notes": [one.as_json() for one in self.notes],
        }
