"""What the suite found: one row for each attack on each backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

NO_BACKEND = "engine"
"""The column of attacks that meet no sandbox."""


class Verdict(StrEnum):
    HELD = "held"
    SUCCEEDED = "succeeded"  # the attack reached its goal
    FAULT = "fault"  # it provoked a failure of the framework, or was refused for a reason that is not the right one
    TWIN_FAILED = "twin_failed"  # so did its honest twin, and nothing is shown
    BROKEN = "broken"  # it cannot even beat what was made weak for it
    NOT_PLAYED = "not_played"  # this backend lacks what it needs


SHOWN = frozenset({Verdict.HELD, Verdict.NOT_PLAYED})
"""The verdicts that do not fail the suite."""


@dataclass(frozen=True, slots=True)
class Row:
    attack: str
    threat: str
    title: str
    backend: str
    verdict: Verdict
    detail: str = ""
    seconds: float = 0.0

    @property
    def letter(self) -> str:
        return self.threat[0]

    @property
    def in_order(self) -> bool:
        return self.verdict in SHOWN

    def as_json(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "threat": self.threat,
            "title": self.title,
            "backend": self.backend,
            "verdict": self.verdict.value,
            "detail": self.detail,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """All rows. `host` names what they depend on (versions, kernel); `time` is when it began, in Unix seconds."""

    time: float
    seconds: float
    host: Mapping[str, str]
    rows: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        """On every backend something held, and nothing did not."""
        held = {row.backend for row in self.rows if row.verdict is Verdict.HELD}
        return bool(held) and held == {row.backend for row in self.rows} and all(row.in_order for row in self.rows)

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(row.verdict for row in self.rows)
        return {verdict.value: found[verdict] for verdict in Verdict}

    @property
    def failures(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.verdict not in SHOWN)

    def as_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "time": round(self.time, 3),
            "seconds": round(self.seconds, 3),
            "host": dict(self.host),
            "counts": self.counts,
            "rows": [row.as_json() for row in self.rows],
        }


def from_json(data: Mapping[str, Any]) -> SuiteResult:
    """The inverse of `as_json`. Raises KeyError, TypeError or ValueError for anything else."""
    rows = tuple(
        Row(
            str(row["attack"]),
            str(row["threat"]),
            str(row["title"]),
            str(row["backend"]),
            Verdict(row["verdict"]),
            str(row["detail"]),
            float(row["seconds"]),
        )
        for row in data["rows"]
    )
    host = {str(name): str(value) for name, value in data["host"].items()}
    return SuiteResult(float(data["time"]), float(data["seconds"]), host, rows)
