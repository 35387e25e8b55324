"""Runs as JUnit XML: a suite for each run, a case for each planned attempt.

Written by hand, a line at a time, and escaped: XML allows no control character at all, not even as a reference, so
`visible` writes them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from securebench._text import visible
from securebench.reports.rows import Row
from securebench.reports.runs import Run

_MISSING = 10_000


def junit_lines(runs: Sequence[Run]) -> Iterator[str]:
    """Lines with their ends. Planned attempts without a record are errors: nobody knows what became of them."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield "<testsuites>\n"
    for run in runs:
        yield from _suite(run)
    yield "</testsuites>\n"


def _suite(run: Run) -> Iterator[str]:
    summary, missing = run.summary, min(_MISSING, run.plan.total - len(run.rows))
    yield _tag(
        "testsuite",
        name=run.label,
        tests=str(len(run.rows) + missing),
        failures=str(summary.failed),
        errors=str(summary.errors + missing),
        skipped=str(summary.pending),
        time=_seconds(sum(_taken(row) for row in run.rows)),
        timestamp=run.plan.created_at[:19],
    )
    yield "<properties>\n"
    for name, value in _properties(run):
        yield _tag("property", closed=True, name=name, value=value)
    yield "</properties>\n"
    for classname, name, row in _cases(run):
        yield from _case(classname, name, row)
    yield "</testsuite>\n"


def _cases(run: Run) -> Iterator[tuple[str, str, Row | None]]:
    """Class, name and record of every planned attempt; of those without one only the first, since a plan can name more
    than anybody can write."""
    attempts, left = run.attempts(), _MISSING
    for task in run.plan.tasks:
        found = {row.attempt: row for row in attempts[task.id]}
        planned = run.plan.attempts_of(task)
        for attempt in range(1, min(planned, max(found, default=0) + max(0, left)) + 1):
            row = found.get(attempt)
            left -= row is None
            if row is not None or left >= 0:
                name = task.id if planned == 1 else f"{task.id} #{attempt}"
                yield f"{run.plan.benchmark.id}.{task.task_type}", name, row


def _properties(run: Run) -> Iterator[tuple[str, str]]:
    plan, score = run.plan, run.summary.score
    yield "run_id", plan.run_id
    yield "benchmark", f"{plan.benchmark.id} {plan.benchmark.version}"
    yield "pack_digest", plan.pack_digest
    yield "harness", str(plan.harness.get("type", ""))
    yield "score", "" if score is None else f"{score:.6f}"
    yield "seal", run.seal_status
    yield "securebench", plan.securebench


def _case(classname: str, name: str, row: Row | None) -> Iterator[str]:
    if row is None:
        yield _tag("testcase", classname=classname, name=name, time="0")
        yield _tag("error", closed=True, type="no_record", message="planned, and there is no record of it")
    elif row.status == "passed":
        yield _tag("testcase", closed=True, classname=classname, name=name, time=_seconds(_taken(row)))
        return
    else:
        yield _tag("testcase", classname=classname, name=name, time=_seconds(_taken(row)))
        yield from _outcome(row)
    yield "</testcase>\n"


def _outcome(row: Row) -> Iterator[str]:
    told = row.failure_message or row.failure_reason or ""
    if row.status == "pending":
        yield _tag("skipped", closed=True, message=told or "nobody judged it")
        return
    kind = "failure" if row.status == "failed" else "error"
    score = "" if row.score is None else f"score {row.score:g}, "
    text = f"{score}{row.assurance or 'no'} assurance, candidates.jsonl:{row.line}"
    opened = _tag(kind, type=row.failure_reason or "host", message=told).rstrip("\n")
    yield f"{opened}{_inert(text)}</{kind}>\n"


def _taken(row: Row) -> float:
    return (row.produce_seconds or 0.0) + (row.verify_seconds or 0.0)


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _tag(element: str, /, *, closed: bool = False, **attributes: str) -> str:
    given = "".join(f' {key}="{_inert(value)}"' for key, value in attributes.items())
    return f"<{element}{given}{'/' if closed else ''}>\n"


def _inert(text: str) -> str:
    return escape(visible(text, keep=""), quote=True)
