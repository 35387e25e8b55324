"""What a run came to, counted while its records are written, and countable again from plan and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from securebench import _json
from securebench._statistics.clusters import METHOD, Estimate
from securebench._statistics.intervals import CONFIDENCE
from securebench.records._durable import replace_file
from securebench.records._task_scores import TaskScores
from securebench.records.plan import Filters, Plan
from securebench.records.store import RECORDS_FILE

SUMMARY_FILE = "summary.json"

VOLATILE = frozenset({"output_dir", "output_path", "wall_seconds"})
"""Fields that no record tells: where the run lies and how long it took. All others follow from plan and records, and
`interrupted` from the seal."""

_LARGEST = 2**53
_TOKENS = ("requests", "input_tokens", "cached_tokens", "output_tokens")


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
    filters: dict[str, Any] = field(default_factory=dict)  # empty when the whole pack was planned
    filtered: str | None = None  # the same in words
    audit: dict[str, Any] | None = None  # the attack suite that the host withstood before the run, in short
    tasks: int = 0
    attempts: int = 1  # per task; the most, where they differ
    statuses: dict[str, int] = field(default_factory=dict)
    failure_reasons: dict[str, int] = field(default_factory=dict)
    assurance: dict[str, int] = field(default_factory=dict)
    by_task_type: dict[str, dict[str, float]] = field(default_factory=dict)
    interval: dict[str, Any] | None = None  # of the score: low, high, confidence, method
    standard_error: float | None = None
    pass_at_k: dict[str, float] = field(default_factory=dict)  # with several attempts per task
    mean_task_variance: float | None = None
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None  # of the attempts whose cost is known; None where no model was paid
    cost_unknown: int = 0  # attempts that used a model whose price is not known
    retries: int = 0  # of the host's faults
    lost_starts: int = 0  # starts of agents that a killed engine left without a record
    produce_seconds: float = 0.0
    verify_seconds: float = 0.0
    wall_seconds: float = 0.0
    attempts_least: int | None = None  # per task, where they differ
    samples: dict[str, Any] | None = None  # the file that candidates came from: digest, number, and tasks it lacks

    @property
    def score(self) -> float | None:
        """The mean over everything that was judged; None when nothing was."""
        return self.score_sum / self.verified if self.verified else None

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"score": self.score}


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What had to be done, known before anything ran; what a summary needs of a plan."""

    run_id: str
    output_dir: Path
    benchmark_id: str
    harness: str
    attempts: int  # in all
    limit: int | None
    tasks: int | None = None
    filters: Filters = field(default_factory=Filters)
    pack_tasks: int | None = None  # how many the pack has
    least: int = 1  # attempts per task
    most: int = 1
    samples: Mapping[str, Any] | None = None
    suite: Mapping[str, Any] | None = None  # the signed audit that it carries, in short

    @classmethod
    def of(cls, plan: Plan, directory: Path) -> RunPlan:
        attempts = {plan.attempts_of(task) for task in plan.tasks} or {1}
        return cls(
            run_id=plan.run_id,
            output_dir=directory,
            benchmark_id=plan.benchmark.id,
            harness=str(plan.harness.get("type", "")),
            attempts=plan.total,
            limit=plan.filters.limit,
            tasks=len(plan.tasks),
            filters=plan.filters,
            pack_tasks=plan.pack_tasks,
            least=min(attempts),
            most=max(attempts),
            samples=_dict(plan.harness.get("samples")) or None,
            suite=_dict((plan.audit or {}).get("suite")) or None,
        )

    def filtered(self) -> str | None:
        """`20 of 164 tasks (limit 20, tag easy)`; None when the whole pack runs."""
        chosen = self.filters or Filters(limit=self.limit)
        if not chosen:
            return None
        what = [f"task {name}" for name in chosen.tasks[:5]] + ["…"] * (len(chosen.tasks) > 5)
        what += [f"tag {name}" for name in chosen.tags]
        what += ["only tasks that have a sample"] if chosen.sampled else []
        what += [f"limit {chosen.limit}"] if chosen.limit is not None else []
        of = f" of {self.pack_tasks}" if self.pack_tasks is not None else ""
        number = self.tasks if self.tasks is not None else self.attempts
        return f"{number}{of} tasks ({', '.join(what)})"


class Tally:
    """Counts records as they are written, so that a summary costs no memory but a few numbers per task."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.statuses: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.assurance: Counter[str] = Counter()
        self.families: dict[str, Counter[str]] = {}
        self.scores = TaskScores()
        self.usage: Counter[str] = Counter()
        self.cost: float | None = None
        self.cost_unknown = self.retries = self.lost_starts = 0
        self.seconds: Counter[str] = Counter()
        self.score_sum = 0.0
        self.interrupted = False

    def add(self, record: Mapping[str, Any]) -> None:
        status = record["verification_status"]
        self.statuses[status] += 1
        if record["failure_reason"]:
            self.reasons[record["failure_reason"]] += 1
        if record["passed"] is not None:
            if record["assurance"]:
                self.assurance[record["assurance"]] += 1
            self.scores.add(record["task_id"], record["passed"], record["score"] or 0.0)
        self.families.setdefault(record["task_type"], Counter())[status] += 1
        self.score_sum += record["score"] or 0.0
        self.retries += len(_list(record.get("repeats")))
        self.lost_starts += _number(record.get("lost_starts"))
        for phase in ("produce_seconds", "verify_seconds"):
            self.seconds[phase] += _number(_dict(record.get("timings")).get(phase))
        self._count_models(_dict(_dict(record.get("usage")).get("models")))

    def _count_models(self, models: Mapping[str, Any]) -> None:
        for name in _TOKENS:
            self.usage[name] += int(_number(models.get(name)))
        if models.get("cost_usd") is not None:
            self.cost = (self.cost or 0.0) + _number(models["cost_usd"])
        elif models:
            self.cost_unknown += 1

    def summary(self, wall_seconds: float) -> TesterRunSummary:
        counts, plan = self.statuses, self.plan
        verified, total = counts["passed"] + counts["failed"], counts.total()
        estimate = self.scores.estimate()
        filters = plan.filters or Filters(limit=plan.limit)
        return TesterRunSummary(
            run_id=plan.run_id,
            output_dir=str(plan.output_dir),
            output_path=str(plan.output_dir / RECORDS_FILE),
            benchmark_id=plan.benchmark_id,
            harness=plan.harness,
            planned=plan.attempts,
            total=total,
            verified=verified,
            passed=counts["passed"],
            failed=counts["failed"],
            pending=counts["pending"],
            errors=counts["error"],
            score_sum=self.score_sum,
            verification_status=verification_status(plan.attempts, verified),
            interrupted=self.interrupted,
            limit=plan.limit,
            filters=filters.as_json() | {"pack_tasks": plan.pack_tasks} if filters else {},
            filtered=plan.filtered(),
            audit=None if plan.suite is None else dict(plan.suite),
            tasks=plan.tasks if plan.tasks is not None else plan.attempts,
            attempts=plan.most,
            attempts_least=plan.least if plan.least != plan.most else None,
            samples=None if plan.samples is None else dict(plan.samples),
            statuses={name: counts[name] for name in ("passed", "failed", "pending", "error")},
            failure_reasons=dict(sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))),
            assurance=dict(sorted(self.assurance.items())),
            by_task_type={name: dict(sorted(counter.items())) for name, counter in sorted(self.families.items())},
            interval=_interval(estimate),
            standard_error=estimate.error if estimate is not None else None,
            pass_at_k=self.scores.pass_at_k(plan.least, plan.most),
            mean_task_variance=self.scores.mean_variance(),
            usage={name: self.usage[name] for name in _TOKENS} if self.usage["requests"] else {},
            cost_usd=self.cost,
            cost_unknown=self.cost_unknown,
            retries=self.retries,
            lost_starts=self.lost_starts,
            produce_seconds=round(self.seconds["produce_seconds"], 3),
            verify_seconds=round(self.seconds["verify_seconds"], 3),
            wall_seconds=round(wall_seconds, 3),
        )


def summarize(
    plan: Plan, records: Iterable[Mapping[str, Any]], *, directory: Path = Path(), interrupted: bool = False
) -> TesterRunSummary:
    """The summary of the records that count: one per attempt, the last where an `error` was tried again."""
    tally = Tally(RunPlan.of(plan, directory))
    for record in records:
        tally.add(record)
    tally.interrupted = interrupted
    return tally.summary(0.0)


def verification_status(planned: int, verified: int) -> str:
    """The seed's rule: nothing to do or all judged is `complete`, none judged is `pending`, else `partial`."""
    if planned <= verified:
        return "complete"
    return "partial" if verified else "pending"


def write_summary(directory: Path, summary: TesterRunSummary) -> None:
    """Replace `summary.json` in one step, so that a reader never sees half of it."""
    replace_file(directory / SUMMARY_FILE, (_json.dumps(summary.as_json()) + "\n").encode())


def _interval(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"low": estimate.interval.low, "high": estimate.interval.high, "confidence": CONFIDENCE, "method": METHOD}


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> Any:
    """A stranger's record may hold numbers that no sum can take; nobody who ran something wrote them."""
    ours = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    return value if ours else 0
