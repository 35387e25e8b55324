"""The one pass over all rows: everything that can be said about a row by looking at it alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from securebench import _json
from securebench.audit.pack.controls import ControlReport
from securebench.audit.pack.notes import Note
from securebench.pack_schema import AnyRow


@dataclass(slots=True)
class Survey:
    """What the pass came to."""

    controls: ControlReport = field(default_factory=ControlReport)
    notes: list[Note] = field(default_factory=list)

    def see(self, row: AnyRow, line: int) -> None:
        self.controls.see(row, line)

    def to_bytes(self) -> bytes:
        notes = [note.as_json() for note in self.notes]
        return _json.dumps([self.controls.to_bytes().decode(), notes]).encode()

    def add_bytes(self, data: bytes) -> None:
        controls, notes = json.loads(data)
        self.controls.add_bytes(controls.encode())
        self.notes += map(Note.from_json, notes)
