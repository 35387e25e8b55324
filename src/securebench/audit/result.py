"""What an audit found: one row per wall it looked at, and whether it stood."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from securebench import _json


class Group(StrEnum):
    """What a row is about; an audit can be asked for some of them only."""

    GUARD = "guard"  # the guard alone, and under the backend: every symbol refuses
    SEAL = "seal"  # the kernel's walls inside the process, without a backend around it
    BACKEND = "backend"  # the backend alone: neither guard nor seal
    KERNEL = "kernel"  # backend and seal together, the guard left out
    LIMITS = "limits"
    ORPHANS = "orphans"
    SURFACE = "surface"  # the command line
    CHECKOUT = "checkout"  # CI runs what a local run runs


EVERYTHING = frozenset(Group)


@dataclass(frozen=True, slots=True)
class Check:
    """One row. What could not be looked at has not passed."""

    id: str
    group: Group
    passed: bool
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "group": self.group.value, "passed": self.passed, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class AuditResult:
    """All rows of one audit. `key` names everything they depend on; `time` is when they were seen, in Unix seconds."""

    level: str
    key: str
    time: float
    seconds: float
    checks: tuple[Check, ...]
    cached: bool = False

    @property
    def passed(self) -> bool:
        """An audit without a single row has seen nothing, and has not passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    @property
    def id(self) -> str:
        rows = _json.dumps([check.as_json() for check in self.checks])
        return hashlib.sha256(f"{self.key}\0{self.time}\0{rows}".encode()).hexdigest()[:16]

    def as_record(self) -> dict[str, Any]:
        """The short form that goes into records."""
        return {
            "id": self.id,
            "time": self.time,
            "level": self.level,
            "checks": len(self.checks),
            "passed": self.passed,
        }

    def as_json(self) -> dict[str, Any]:
        return {
            **self.as_record(),
            "key": self.key,
            "seconds": round(self.seconds, 3),
            "cached": self.cached,
            "rows": [check.as_json() for check in self.checks],
        }


def merged(results: Iterable[AuditResult]) -> AuditResult:
    """Several audits of one run as one. Raises ValueError when there is none."""
    parts = list(results)
    if not parts:
        raise ValueError("nothing was audited")
    return AuditResult(
        level="+".join(part.level for part in parts),
        key="+".join(part.key for part in parts),
        time=min(part.time for part in parts),
        seconds=sum(part.seconds for part in parts),
        checks=tuple(check for part in parts for check in part.checks),
        cached=all(part.cached for part in parts),
    )


def from_json(data: Mapping[str, Any]) -> AuditResult:
    """The inverse of `as_json`. Raises KeyError, TypeError or ValueError for anything else."""
    rows = tuple(
        Check(str(row["id"]), Group(row["group"]), row["passed"] is True, str(row["detail"])) for row in data["rows"]
    )
    return AuditResult(
        level=str(data["level"]),
        key=str(data["key"]),
        time=float(data["time"]),
        seconds=float(data["seconds"]),
        checks=rows,
        cached=True,
    )
