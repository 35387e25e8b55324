"""What was run and with what, and what a reader must know before the numbers. Sentences and pairs of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from securebench.records.plan import Plan
from securebench.reports.content import Content
from securebench.reports.statistics import bootstrap_ratio
from securebench.reports.words import counted, money_text, share_text

_MOST = 6


def facts(content: Content) -> list[tuple[str, str]]:
    """Name and value, in the order people ask."""
    return [(name, value) for name, value in _facts(content) if value]


def _facts(content: Content) -> Iterator[tuple[str, str]]:
    run, plan = content.run, content.run.plan
    yield "benchmark", f"{plan.benchmark.id}, version {plan.benchmark.version}"
    yield "tasks", _tasks(content)
    yield "harness", _harness(plan.harness)
    yield "model", ", ".join(content.models[:_MOST])
    yield "cost of a passed attempt", _cost_of_a_pass(content)
    yield "limits", ", ".join(_limits(plan.limits))
    yield "host", ", ".join(f"{name} {value}" for name, value in sorted(plan.host.items()) if value is not None)
    yield "images", ", ".join(f"{name} ({digest})" for name, digest in list(plan.images.items())[:_MOST])
    yield "planned", plan.created_at
    yield "finished", run.verification.facts.get("finished_at") or ""
    yield "SecureBench", plan.securebench
    yield "pack digest", plan.pack_digest
    yield "configuration digest", plan.config_digest
    yield "prompt digest", plan.prompt_digest or ""


def _tasks(content: Content) -> str:
    plan = content.run.plan
    filtered = content.run.summary.filtered
    return (filtered or f"{len(plan.tasks):,}, all of the pack") + _each(plan)


def _each(plan: Plan) -> str:
    planned = {plan.attempts_of(task) for task in plan.tasks} or {1}
    least, most = min(planned), max(planned)
    if most == 1:
        return ""
    return f", {most:,} attempts each" if least == most else f", {least:,} to {most:,} attempts each"


def _cost_of_a_pass(content: Content) -> str:
    """What was spent on all attempts, for each that passed; nothing where the cost of any is not known."""
    tasks = [
        (sum(row.cost_usd or 0.0 for row in line.rows), float(sum(row.passed is True for row in line.rows)))
        for line in content.tasks
    ]
    spent, passed = (sum(column) for column in zip(*tasks, strict=True))
    if not spent or not passed or any(row.cost_usd is None for row in content.run.rows):
        return ""
    between = bootstrap_ratio(tasks)
    told = "" if between is None else f" (95 % interval {money_text(between.low)} to {money_text(between.high)})"
    return money_text(spent / passed) + told


def _harness(harness: Mapping[str, Any]) -> str:
    tools = harness.get("tools")
    named = [f"{name} {digest}" for name, digest in tools.items()] if isinstance(tools, Mapping) else []
    return ", ".join([str(harness.get("type", "unknown")), *named[:_MOST]])


def _limits(limits: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Those that were set; what is not there or open is no limit."""
    for name, value in limits.items():
        if isinstance(value, Mapping):
            yield from _limits(value, f"{prefix}{name} ")
        elif value not in (None, [], "auto", False) and not prefix.startswith("egress"):
            yield f"{prefix}{name} {value:,}" if isinstance(value, int) else f"{prefix}{name} {value}"


def notices(content: Content) -> list[str]:
    """What changes how the score is to be read, one sentence each."""
    return list(_notices(content))


def _notices(content: Content) -> Iterator[str]:
    run, counts = content.run, content.whole.counts
    if run.plan.unsafe:
        yield "This run went without the audit of the walls: nothing shows that they stood."
    if run.summary.filtered is not None:
        yield f"Not the whole benchmark: {run.summary.filtered}."
    missing = run.plan.total - len(run.rows)
    unjudged = [
        f"{counts['error']:,} on which the host failed" if counts["error"] else "",
        f"{counts['pending']:,} that nobody judged" if counts["pending"] else "",
        f"{missing:,} without a record" if missing > 0 else "",
    ]
    if any(unjudged) and content.bounds is not None:
        yield (
            f"Not in the score: {', '.join(filter(None, unjudged))}. Whatever these would have come to, the score over "
            f"all {run.plan.total:,} attempts would lie between {share_text(content.bounds.low)} and "
            f"{share_text(content.bounds.high)}."
        )
    levels = [part.name for grouping in content.groupings if grouping.by == "assurance" for part in grouping.parts]
    if levels:
        yield f"Verdicts of different assurance are counted together ({', '.join(levels)}); see the score of each."
    if content.whole.estimate is not None and content.whole.estimate.tasks < 30:
        yield f"{counted(content.whole.estimate.tasks, 'task')}: the interval says how little so few tell."
