"""Runs as tables: what queries ask and exports write. One row per attempt, per task of a run, and per run.

Texts are made visible as everywhere: no control or invisible character is left in them. What was hidden from agents is
in none of them, since it is in no record; and neither is the digest of a row, from which a key can be guessed where few
answers are possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from securebench._text import visible
from securebench.reports.rows import Row
from securebench.reports.runs import Run
from securebench.reports.scores import score_of

Value = None | bool | int | float | str | datetime | list[str]
_LATEST = 2**35  # seconds; a stranger's clock may say anything


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is its SQL type."""

    name: str
    kind: str
    about: str


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    about: str
    columns: tuple[Column, ...]
    rows: Callable[[Sequence[Run]], Iterator[tuple[Value, ...]]]


def _columns(*lines: str) -> tuple[Column, ...]:
    return tuple(Column(*line.split(None, 2)) for line in lines)


def _records(runs: Sequence[Run]) -> Iterator[tuple[Value, ...]]:
    for run in runs:
        for row in run.rows:
            yield _record(run, row)


def _record(run: Run, row: Row) -> tuple[Value, ...]:
    return (
        _text(run.label),
        _text(row.task_id),
        row.attempt,
        _text(row.family),
        [visible(tag, "") for tag in row.tags],
        _text(row.difficulty),
        row.status,
        row.passed,
        row.score,
        _text(row.assurance),
        _text(row.failure_reason),
        _text(row.failure_message),
        _text(row.model),
        _time(row.started_at),
        row.produce_seconds,
        row.verify_seconds,
        row.requests,
        row.input_tokens,
        row.cached_tokens,
        row.output_tokens,
        row.cost_usd,
        row.retries,
        row.lost_starts,
        _text(row.candidate_digest),
        _text(row.image),
        _text(row.harness_digest),
        row.line,
    )


RECORDS = Table(
    "records",
    "every attempt that counts",
    _columns(
        "run VARCHAR the run's name here",
        "task_id VARCHAR which task",
        "attempt BIGINT which attempt at it, from 1",
        "family VARCHAR the task's family",
        "tags VARCHAR[] the task's tags",
        "difficulty VARCHAR a tag that names one",
        "status VARCHAR passed, failed, pending or error",
        "passed BOOLEAN the verdict, null where there is none",
        "score DOUBLE from 0 to 1, null where there is no verdict",
        "assurance VARCHAR how the verdict was reached",
        "failure_reason VARCHAR why it did not pass, a fixed word",
        "failure_message VARCHAR the same in a sentence",
        "model VARCHAR the model that was asked",
        "started_at TIMESTAMP when, UTC",
        "produce_seconds DOUBLE how long the agent worked",
        "verify_seconds DOUBLE how long the verifier did",
        "requests BIGINT of its models",
        "input_tokens BIGINT what they read",
        "cached_tokens BIGINT of these, what they knew already",
        "output_tokens BIGINT what they wrote",
        "cost_usd DOUBLE what that cost, null where no price is known",
        "retries BIGINT faults of the host that were tried again",
        "lost_starts BIGINT starts that a killed engine lost",
        "candidate_digest VARCHAR of what was judged",
        "image VARCHAR digest of the image it ran in",
        "harness_digest VARCHAR of tool and prompt",
        "line BIGINT of candidates.jsonl",
    ),
    _records,
)


def _tasks(runs: Sequence[Run]) -> Iterator[tuple[Value, ...]]:
    for run in runs:
        attempts = run.attempts()
        for task in run.plan.tasks:
            rows = attempts[task.id]
            scores = [row.score or 0.0 for row in rows if row.judged]
            costs = [row.cost_usd for row in rows if row.cost_usd is not None]
            yield (
                _text(run.label),
                _text(task.id),
                _text(task.task_type),
                [visible(tag, "") for tag in task.tags],
                run.plan.attempts_of(task),
                len(scores),
                sum(row.passed is True for row in rows),
                sum(row.status == "error" for row in rows),
                sum(scores) / len(scores) if scores else None,
                sum(costs) if costs else None,
            )


TASKS = Table(
    "tasks",
    "every planned task of every run",
    _columns(
        "run VARCHAR the run's name here",
        "task_id VARCHAR which task",
        "family VARCHAR its family",
        "tags VARCHAR[] its tags",
        "attempts BIGINT planned attempts at it",
        "judged BIGINT those with a verdict",
        "passed BIGINT those that passed",
        "errors BIGINT those on which the host failed",
        "score DOUBLE mean over the judged ones",
        "cost_usd DOUBLE of all attempts whose cost is known",
    ),
    _tasks,
)


def _runs(runs: Sequence[Run]) -> Iterator[tuple[Value, ...]]:
    for run in runs:
        plan, summary, key = run.plan, run.summary, run.verification.key
        estimate = score_of(run.label, run.rows).estimate
        yield (
            _text(run.label),
            _text(str(run.directory)),
            plan.run_id,
            _text(plan.benchmark.id),
            _text(plan.benchmark.version),
            plan.pack_digest,
            _text(str(plan.harness.get("type", ""))),
            sorted({visible(row.model, "") for row in run.rows if row.model is not None}),
            len(plan.tasks),
            summary.attempts,
            len(run.rows),
            summary.passed,
            summary.failed,
            summary.pending,
            summary.errors,
            None if estimate is None else estimate.mean,
            None if estimate is None else estimate.interval.low,
            None if estimate is None else estimate.interval.high,
            summary.cost_usd,
            run.seal_status,
            None if key is None else _text(key.name or key.id),
            bool(plan.filters),
            plan.unsafe,
            _text(plan.created_at),
            _text(plan.securebench),
        )


RUNS = Table(
    "runs",
    "every run",
    _columns(
        "run VARCHAR its name here",
        "directory VARCHAR where it lies",
        "run_id VARCHAR its name in the tester file",
        "benchmark_id VARCHAR what was run",
        "benchmark_version VARCHAR which version of it",
        "pack_digest VARCHAR of the whole pack",
        "harness VARCHAR who answered",
        "models VARCHAR[] the models that were asked",
        "tasks BIGINT planned ones",
        "attempts BIGINT planned at each task, the most where they differ",
        "recorded BIGINT attempts with a record",
        "passed BIGINT attempts that passed",
        "failed BIGINT attempts that did not",
        "pending BIGINT attempts that nobody judged",
        "errors BIGINT attempts on which the host failed",
        "score DOUBLE mean over passed and failed attempts",
        "score_low DOUBLE lower end of its 95 % interval",
        "score_high DOUBLE upper end of it",
        "cost_usd DOUBLE of attempts whose cost is known",
        "seal VARCHAR complete, interrupted, unsealed or broken",
        "sealed_by VARCHAR name or id of the key",
        "filtered BOOLEAN whether tasks of the pack were left out",
        "unsafe BOOLEAN whether the audit of the walls was left out",
        "created_at VARCHAR when it was planned",
        "securebench VARCHAR version and digest of what ran it",
    ),
    _runs,
)

TABLES = (RECORDS, TASKS, RUNS)


def _text(value: str | None) -> str | None:
    return None if value is None else visible(value, "")


def _time(seconds: float | None) -> datetime | None:
    if seconds is None or seconds >= _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
