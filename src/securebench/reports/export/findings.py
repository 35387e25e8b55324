"""Runs as SARIF: every attempt is a result, and the reasons why attempts fail are the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath

from securebench.records.store import RECORDS_FILE
from securebench.reports.rows import Row
from securebench.reports.runs import Run
from securebench.reports.sarif import Kind, Level, Log, Result

_KINDS: Mapping[str, tuple[Kind, Level]] = {
    "passed": ("pass", "none"),
    "failed": ("fail", "error"),
    "pending": ("notApplicable", "none"),
    "error": ("fail", "warning"),
}
_TEXTS = {
    "passed": "The candidate passed.",
    "pending": "A response that a model must judge, and none was named.",
    "host_failed": "The host failed, not the candidate. Not scored.",
}


def findings(runs: Sequence[Run]) -> Log:
    """One log of all runs, of the time the first was planned, so that it is the same whenever it is written. Paths are
    those of the records, beneath the name of their run's directory."""
    title = ", ".join(dict.fromkeys(run.plan.benchmark.id for run in runs))
    properties = {
        "runs": {
            run.label: {"run_id": run.plan.run_id, "score": run.summary.score, "seal": run.seal_status} for run in runs
        }
    }
    results = [_result(run, row) for run in runs for row in run.rows]
    return Log(title, min(_planned(runs), default=None), results, _TEXTS, properties, tags=("benchmark",))


def _planned(runs: Sequence[Run]) -> Iterator[float]:
    for run in runs:
        with suppress(ValueError):  # a stranger's plan may name a day that no month has
            yield datetime.fromisoformat(run.plan.created_at).timestamp()


def _result(run: Run, row: Row) -> Result:
    kind, level = _KINDS[row.status]
    reason = {"passed": "passed", "pending": "pending", "error": "host_failed"}.get(row.status)
    rule = reason or row.failure_reason or "failed"
    return Result(
        rule=rule,
        title=rule.replace("_", " "),
        kind=kind,
        level=level,
        message="\n".join(_sentences(run, row)),
        name=f"{run.label}/{row.name}",
        same_as=(run.plan.benchmark.id, run.label, row.task_id, str(row.attempt)),
        path=str(PurePosixPath(run.directory.resolve().name, RECORDS_FILE)),
        line=row.line,
        properties={"run": run.label, "task": row.task_id, "family": row.family, "assurance": row.assurance or ""},
    )


def _sentences(run: Run, row: Row) -> Iterator[str]:
    yield f"{row.name} of {run.label}: {row.status}" + (f" ({row.failure_reason})" if row.failure_reason else "")
    if row.failure_message:
        yield row.failure_message
