"""What a check has to say, before it becomes a finding: small, plain, and able to travel between processes of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from securebench.audit.report.model import Mark


@dataclass(frozen=True, slots=True)
class Note:
    """Something a rule found. Without a line it is about the whole pack, or, with a column only, about a family.

    `mark` where the check knows better than the rule. `word` is what to look for in the manifest, where a setting that
    rows share may have been made."""

    rule: str
    detail: str
    line: int = 0
    task: str = ""
    column: str = ""
    mark: Mark | None = None
    word: str = ""

    def as_json(self) -> list[Any]:
        return [self.rule, self.detail, self.line, self.task, self.column, self.mark, self.word]

    @classmethod
    def from_json(cls, value: list[Any]) -> Note:
        rule, detail, line, task, column, mark, word = value
        return cls(rule, detail, line, task, column, None if mark is None else Mark(mark), word)
