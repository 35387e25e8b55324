"""One attempt as reports see it: small, typed, and of sound values only, whoever wrote the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from securebench.records.plan import PlannedTask

_TEXT = 1000  # characters of a text that a report may show
_LARGEST = 2**53
_DIFFICULTIES = frozenset({"trivial", "easy", "medium", "hard", "expert"})
_PREFIX = "difficulty:"


@dataclass(frozen=True, slots=True)
class Row:
    """The record of an attempt that counts. What an older record does not say is None.

    Texts are the record's, cut but otherwise as they are: whoever shows them makes them inert."""

    task_id: str
    attempt: int
    family: str
    tags: tuple[str, ...]
    difficulty: str | None  # a tag that names one
    status: str  # passed, failed, pending, error
    passed: bool | None
    score: float | None
    assurance: str | None
    failure_reason: str | None
    failure_message: str
    model: str | None
    started_at: float | None  # seconds since the epoch
    produce_seconds: float | None
    verify_seconds: float | None
    requests: int | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    retries: int
    lost_starts: int
    candidate_digest: str | None
    image: str | None
    harness_digest: str | None
    line: int  # of candidates.jsonl
    controls: tuple[tuple[str, bool | None], ...] = ()  # what was run beside the tests, and whether it held

    @property
    def judged(self) -> bool:
        return self.passed is not None

    @property
    def key(self) -> tuple[str, int]:
        return self.task_id, self.attempt

    @property
    def name(self) -> str:
        return f"{self.task_id} #{self.attempt}"


def row_of(line: int, record: Mapping[str, Any], task: PlannedTask) -> Row:
    """Of a record whose deciding fields were checked (`records.shape`)."""
    timings, digests = _mapping(record.get("timings")), _mapping(record.get("digests"))
    models = _mapping(_mapping(record.get("usage")).get("models"))
    agent = _mapping(_mapping(record.get("producer_metadata")).get("agent"))
    repeats = record.get("repeats")
    return Row(
        task_id=record["task_id"],
        attempt=record["attempt"],
        family=task.task_type,
        tags=task.tags,
        difficulty=difficulty_of(task.tags),
        status=record["verification_status"],
        passed=record["passed"],
        score=record["score"],
        assurance=_text(record["assurance"]),
        failure_reason=_text(record["failure_reason"]),
        failure_message=_text(record.get("failure_message")) or "",
        model=_text(agent.get("model")),
        started_at=_number(timings.get("started_at")),
        produce_seconds=_number(timings.get("produce_seconds")),
        verify_seconds=_number(timings.get("verify_seconds")),
        requests=_whole(models.get("requests")),
        input_tokens=_whole(models.get("input_tokens")),
        cached_tokens=_whole(models.get("cached_tokens")),
        output_tokens=_whole(models.get("output_tokens")),
        cost_usd=_number(models.get("cost_usd")),
        retries=len(repeats) if isinstance(repeats, list) else 0,
        lost_starts=_whole(record.get("lost_starts")) or 0,
        candidate_digest=_text(digests.get("candidate")),
        image=_text(digests.get("image")),
        harness_digest=_text(digests.get("harness")),
        line=line,
        controls=tuple(_controls(record.get("controls"))),
    )


def _controls(value: Any) -> Iterator[tuple[str, bool | None]]:
    for control in map(_mapping, value if isinstance(value, list) else ()):
        held = control.get("held")
        yield _text(control.get("name")) or "?", held if isinstance(held, bool) else None


def difficulty_of(tags: tuple[str, ...]) -> str | None:
    """`difficulty:WORD`, or one of the usual words by itself."""
    named = next((tag.removeprefix(_PREFIX) for tag in tags if tag.startswith(_PREFIX)), None)
    return named or next((tag for tag in tags if tag in _DIFFICULTIES), None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return value if len(value) <= _TEXT else value[: _TEXT - 1] + "…"


def _number(value: Any) -> float | None:
    """Of a size that can be added up; a stranger's record may hold others."""
    ours = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST
    return float(value) if ours else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else None
