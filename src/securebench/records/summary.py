"""What a run came to, counted while its records are written."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from securebench import _json
from securebench.errors import StoreError
from securebench.records.store import RECORDS_FILE

SUMMARY_FILE = "summary.json"


@dataclass(frozen=True, slots=True)
class TesterRunSummary:
    """What a run came to. `error` attempts are infrastructure faults: counted, shown, not scored."""

    run_id: str
    output_dir: str
    output_path: str
    benchmark_id: str
    harness: str
    planned: int
    total: int
    verified: int
    passed: int
    failed: int
    pending: int
    errors: int
    score_sum: float
    verification_status: str
    interrupted: bool = False
    limit: int | None = None
    failure_reasons: dict[str, int] = field(default_factory=dict)
    assurance: dict[str, int] = field(default_factory=dict)
    by_task_type: dict[str, dict[str, float]] = field(default_factory=dict)
    wall_seconds: float = 0.0

    @property
    def score(self) -> float | None:
        """The mean over everything that was judged; None when nothing was."""
        return self.score_sum / self.verified if self.verified else None

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"score": self.score}


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What had to be done, known before anything ran."""

    run_id: str
    output_dir: Path
    benchmark_id: str
    harness: str
    attempts: int
    limit: int | None


class Tally:
    """Counts records as they are written, so that a summary costs no memory per record."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.statuses: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.assurance: Counter[str] = Counter()
        self.families: dict[str, Counter[str]] = {}
        self.score_sum = 0.0
        self.interrupted = False

    def add(self, record: dict[str, Any]) -> None:
        status = record["verification_status"]
        self.statuses[status] += 1
        if record["failure_reason"]:
            self.reasons[record["failure_reason"]] += 1
        if record["assurance"] and record["passed"] is not None:
            self.assurance[record["assurance"]] += 1
        self.families.setdefault(record["task_type"], Counter())[status] += 1
        self.score_sum += record["score"] or 0.0

    def summary(self, wall_seconds: float) -> TesterRunSummary:
        counts = self.statuses
        verified, total = counts["passed"] + counts["failed"], counts.total()
        return TesterRunSummary(
            run_id=self.plan.run_id,
            output_dir=str(self.plan.output_dir),
            output_path=str(self.plan.output_dir / RECORDS_FILE),
            benchmark_id=self.plan.benchmark_id,
            harness=self.plan.harness,
            planned=self.plan.attempts,
            total=total,
            verified=verified,
            passed=counts["passed"],
            failed=counts["failed"],
            pending=counts["pending"],
            errors=counts["error"],
            score_sum=self.score_sum,
            verification_status=verification_status(self.plan.attempts, verified),
            interrupted=self.interrupted,
            limit=self.plan.limit,
            failure_reasons=dict(self.reasons.most_common()),
            assurance=dict(self.assurance),
            by_task_type={name: dict(counter) for name, counter in sorted(self.families.items())},
            wall_seconds=round(wall_seconds, 3),
        )


def verification_status(planned: int, verified: int) -> str:
    """The seed's rule: nothing to do or all judged is `complete`, none judged is `pending`, else `partial`."""
    if planned <= verified:
        return "complete"
    return "partial" if verified else "pending"


def write_summary(directory: Path, summary: TesterRunSummary) -> None:
    """Replace `summary.json` in one step, so that a reader never sees half of it."""
    path = directory / SUMMARY_FILE
    temporary = path.with_name(f".{SUMMARY_FILE}.new")
    try:
        temporary.write_text(_json.dumps(summary.as_json()) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
