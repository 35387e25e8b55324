"""What checking a run brought up: each with its place, what was seen and what was expected."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from securebench.errors import SecureBenchError

LISTED = 200  # of one file and severity; the rest is counted


class Severity(StrEnum):
    ERROR = "error"  # something is not as it was written
    NOTE = "note"  # worth knowing; nothing is wrong


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing. `line` is 0 where it is about the whole file."""

    severity: Severity
    file: str
    line: int
    message: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        return {"severity": str(self.severity), "file": self.file, "line": self.line or None, "message": self.message}


@dataclass(slots=True)
class Findings:
    """Collected in the order they were made; a file of a million bad lines lists only the first."""

    found: list[Finding] = field(default_factory=list)
    unlisted: Counter[tuple[str, Severity]] = field(default_factory=Counter)
    _listed: Counter[tuple[str, Severity]] = field(default_factory=Counter)

    def error(self, file: str, line: int, message: str) -> None:
        self._add(Finding(Severity.ERROR, file, line, message))

    def note(self, file: str, line: int, message: str) -> None:
        self._add(Finding(Severity.NOTE, file, line, message))

    def raised(self, file: str, line: int, error: SecureBenchError) -> None:
        """An error that was raised about a file, without the place it may begin with."""
        text, name = str(error), f"{file}:{line}" if line else file
        before, found, after = text.partition(f"{name}: ")
        self.error(file, line, after if found and ": " not in before else text)

    @property
    def ok(self) -> bool:
        return not any(severity is Severity.ERROR for _, severity in self._listed)

    def _add(self, finding: Finding) -> None:
        kind = (finding.file, finding.severity)
        self._listed[kind] += 1
        if self._listed[kind] > LISTED:
            self.unlisted[kind] += 1
        else:
            self.found.append(finding)
