"""A run directory that is only read: its plan, its seed, and the last record of every attempt.

Nothing is written there, not even a lock: what is written goes behind what was read, and no line is ever changed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from securebench import _json
from securebench._fs import open_named
from securebench.candidates.store import CandidateStore
from securebench.errors import ConfigError, IntegrityError, StoreError
from securebench.records._durable import read_file
from securebench.records.dsse import MAX_ENVELOPE
from securebench.records.plan import PLAN_FILE, load_plan
from securebench.records.plan_break import plan_break
from securebench.records.seal import SEAL_FILE, open_statement
from securebench.records.seed import kept_seed, reveals
from securebench.records.shape import RecordShape, checked_record
from securebench.records.store import RECORDS_FILE, read_lines

CANDIDATES = "candidates"
Key = tuple[str, int]
"""Task id and attempt."""


class SeedOrigin(StrEnum):
    REVEALED = "revealed"  # by the seal
    KEPT = "kept"  # beside the records of a run that is not finished
    FRESH = "fresh"  # neither could be had: generated cases, orders and twins are others than in the run


class _Place(NamedTuple):
    line: int
    offset: int
    length: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record: the fields that decide, all of them, and its line."""

    shape: RecordShape
    fields: dict[str, Any]
    line: int


class StoredRun:
    """Raises ConfigError where there is no run, IntegrityError for a plan that is none, StoreError.

    A line that is no record of ours is passed over: `evidence.verify` says what is wrong with it."""

    def __init__(self, directory: Path) -> None:
        if not (directory / PLAN_FILE).is_file():
            raise ConfigError(f"{directory}: holds no run: there is no {PLAN_FILE}")
        self.directory = directory
        self.path = directory / RECORDS_FILE
        self.candidates = CandidateStore(directory / CANDIDATES)
        self.plan, _ = load_plan(directory)  # the one in force at the end
        self._commitments = {self.plan.seed_commitment}
        self._places: dict[Key, _Place] = {}
        offset = 0
        for number, line in read_lines(self.path):
            self._see(number, offset, line)
            offset += len(line)

    def recorded(self) -> Iterator[Key]:
        """Every planned attempt that has a record, in the plan's order."""
        return (key for key in self.plan.attempt_keys() if key in self._places)

    def record(self, key: Key) -> StoredRecord:
        """The last record of an attempt. Raises IntegrityError where it is no longer what it was, StoreError."""
        place = self._places[key]
        where = f"{self.path}:{place.line}"
        try:
            with open_named(self.path) as file:
                file.seek(place.offset)
                data = file.read(place.length)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be read: {error.strerror}") from error
        if hashlib.sha256(data).digest() != place.sha256:
            raise IntegrityError(f"{where}: changed while it was being read")
        fields: Any = _json.loads(data)
        return StoredRecord(checked_record(fields, where), fields, place.line)

    def seed(self) -> tuple[bytes, SeedOrigin]:
        """The run's seed if it can be had, else a new one."""
        try:
            value = open_statement(read_file(self.directory / SEAL_FILE, MAX_ENVELOPE), SEAL_FILE).predicate.seed.value
        except (FileNotFoundError, IntegrityError, StoreError):
            value = None
        seed = bytes.fromhex(value) if value is not None else b""
        if value is not None and any(reveals(seed, commitment) for commitment in self._commitments):
            return seed, SeedOrigin.REVEALED
        for commitment in self._commitments:
            try:
                return kept_seed(self.directory, commitment), SeedOrigin.KEPT
            except (IntegrityError, StoreError):
                continue
        return secrets.token_bytes(32), SeedOrigin.FRESH

    def _see(self, number: int, offset: int, line: bytes) -> None:
        try:
            fields = _json.loads(line)
            if not line.endswith(b"\n") or not isinstance(fields, dict):
                return
            if (changed := plan_break(fields, RECORDS_FILE)) is not None:
                self.plan, _ = load_plan(self.directory, changed.plan)
                self._commitments.add(self.plan.seed_commitment)
                return
            shape = checked_record(fields, RECORDS_FILE)
        except (_json.JsonError, IntegrityError):
            return
        self._places[shape.key] = _Place(number, offset, len(line), hashlib.sha256(line).digest())
