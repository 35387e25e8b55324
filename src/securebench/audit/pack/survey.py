"""The one pass over all rows: everything that can be said about a row by looking at it alone, and about all of them by
counting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from securebench import _json
from securebench.audit.pack.controls import ControlReport
from securebench.audit.pack.duplicates import Duplicates
from securebench.audit.pack.guesses import Guesses
from securebench.audit.pack.notes import Note
from securebench.audit.pack.reporting import Looked, over
from securebench.audit.pack.rules import EVERY, TEXT
from securebench.audit.pack.settings import Settings
from securebench.audit.pack.stated import Stated
from securebench.pack_schema import AnyRow


class Part(Protocol):
    """One kind of look at rows. `state` is plain JSON, and `add` takes in that of another one."""

    def see(self, row: AnyRow, line: int) -> None: ...

    def state(self) -> Any: ...

    def add(self, state: Any) -> None: ...

    def notes(self) -> Iterable[Note]: ...

    def looked(self) -> dict[str, str]:
        """The rules that were looked at, and what was looked at."""
        ...


_RULE_OF_CONTROL = {"dump_all": "J02", "echo": "P01"}


@dataclass(slots=True)
class Controls:
    """The negative controls that `securebench validate` gives to text rows too."""

    report: ControlReport = field(default_factory=ControlReport)

    def see(self, row: AnyRow, line: int) -> None:
        self.report.see(row, line)

    def state(self) -> Any:
        return self.report.to_bytes().decode()

    def add(self, state: Any) -> None:
        self.report.add_bytes(state.encode())

    def notes(self) -> Iterator[Note]:
        for violation in self.report.violations:
            rule = _RULE_OF_CONTROL.get(violation.control.partition(":")[0], "J01")
            yield Note(rule, f"passes without work: {violation.control}", violation.line, violation.task_id)

    def looked(self) -> dict[str, str]:
        controlled = self.report.controlled
        return dict.fromkeys(("J01", "J02", "P01"), f"{controlled} text rows") if controlled else {}


@dataclass(slots=True)
class Survey:
    """All parts over all rows."""

    parts: tuple[Part, ...] = field(default_factory=lambda: (Controls(), Guesses(), Stated(), Duplicates(), Settings()))

    def see(self, row: AnyRow, line: int) -> None:
        for part in self.parts:
            part.see(row, line)

    def to_bytes(self) -> bytes:
        return _json.dumps([part.state() for part in self.parts]).encode()

    def add_bytes(self, data: bytes) -> None:
        for part, state in zip(self.parts, json.loads(data), strict=True):
            part.add(state)

    def notes(self) -> list[Note]:
        return [note for part in self.parts for note in part.notes()]

    def looked(self) -> Looked:
        """What was looked at, in the families that each part is about."""
        found: Looked = {}
        for part in self.parts:
            found = over(EVERY if isinstance(part, Duplicates | Settings) else TEXT, part.looked(), found)
        return found
