"""The report of runs as Markdown: in full, and as the small summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from securebench.reports.content import Content
from securebench.reports.facts import facts, notices
from securebench.reports.integrity import integrity_of
from securebench.reports.markdown import details, name, plain, table
from securebench.reports.scores import Grouping
from securebench.reports.words import GLYPHS, UNITS, interval_text, money_text, share_text

_MOST_PARTS = 50
_MOST_TASKS = 100
_MOST_TASKS_OF_A_JOB = 30


def markdown_report(contents: Sequence[Content]) -> str:
    """Everything but the tasks that passed and the details of attempts."""
    lines = ["# SecureBench report", "", *_overview(contents)]
    for content in contents:
        lines += ["", f"## {name(content.run.label)}", *_run(content)]
    return "\n".join(lines) + "\n"


def job_summary(contents: Sequence[Content]) -> str:
    """A table, what must be known of it, and the rest folded away."""
    lines = ["### SecureBench", "", *_overview(contents)]
    for content in contents:
        title = f"{name(content.run.label)}: " if len(contents) > 1 else ""
        lines += [f"> {title}{plain(notice)}\n" for notice in notices(content)]
        integrity = integrity_of(content.run)
        lines += [f"> {title}{plain(problem)}\n" for problem in integrity.problems[:10]]
        failed = list(_failed(content, _MOST_TASKS_OF_A_JOB))
        if failed:
            lines += ["", *details(f"Tasks that failed {title}".strip(": "), failed)]
        lines += ["", *details("What this does not prove", [f"- {plain(text)}" for text in integrity.not_proven])]
    return "\n".join(lines) + "\n"


def _overview(contents: Sequence[Content]) -> Iterator[str]:
    heads = ["Run", "With", "Score:", "95 % interval:", "Passed:", "Failed:", "Not judged:", "Cost:", "Integrity"]
    yield from table(heads, [_overview_row(content) for content in contents])
    yield ""


def _overview_row(content: Content) -> list[str]:
    run, estimate, counts = content.run, content.whole.estimate, content.whole.counts
    cost, integrity = run.summary.cost_usd, integrity_of(run)
    asked = " ".join([str(run.plan.harness.get("type", "")), *content.models[:1]])
    return [
        name(run.label),
        name(asked),
        "–" if estimate is None else f"**{share_text(estimate.mean)}**",
        "–" if estimate is None else interval_text(estimate),
        f"{counts['passed']:,}",
        f"{counts['failed']:,}",
        f"{run.plan.total - content.whole.judged:,}",
        "–" if cost is None else money_text(cost),
        f"{integrity.mark} {plain(integrity.verdict)}",
    ]


def _run(content: Content) -> Iterator[str]:
    for notice in notices(content):
        yield from ("", f"> {plain(notice)}")
    for grouping in content.groupings:
        yield from ("", f"### By {grouping.by}", "", *_parts(grouping))
    if content.passes:
        rows = [
            [str(k), f"{one.tasks:,}", *(f"{share_text(each.mean)} ({interval_text(each)})" for each in (one, all_))]
            for k, (one, all_) in content.passes.items()
        ]
        heads = ["k:", "Tasks:", "pass@k (95 % interval):", "pass^k (95 % interval):"]
        yield from ("", "### Several attempts", "", *table(heads, rows[:_MOST_PARTS]))
    if content.reasons:
        rows = [[name(reason), f"{count:,}"] for reason, count in content.reasons[:_MOST_PARTS]]
        yield from ("", "### Failures", "", *table(["Reason", "Attempts:"], rows))
    if content.spreads:
        yield from ("", "### Time, tokens and cost of an attempt", "")
        rows = [[one.name, *(UNITS[one.unit](one.quantile(q)) for q in (0.1, 0.5, 0.9))] for one in content.spreads]
        yield from table(["", "10 % below:", "Median:", "90 % below:"], rows)
    failed = list(_failed(content, _MOST_TASKS))
    if failed:
        yield from ("", "### Tasks that failed", "", *failed)
    yield from _integrity(content)
    yield from ("", "### What was run", "", *table(["", ""], [[one, name(value)] for one, value in facts(content)]))


def _parts(grouping: Grouping) -> Iterator[str]:
    rows = [
        [
            name(part.name),
            f"{part.estimate.tasks:,}" if part.estimate else "0",
            "–" if part.estimate is None else f"**{share_text(part.estimate.mean)}**",
            "–" if part.estimate is None else interval_text(part.estimate),
        ]
        for part in grouping.parts[:_MOST_PARTS]
    ]
    yield from table([grouping.by.capitalize(), "Tasks:", "Score:", "95 % interval:"], rows)
    if len(grouping.parts) > _MOST_PARTS:
        yield from ("", f"{len(grouping.parts) - _MOST_PARTS:,} more are not shown.")


def _failed(content: Content, most: int) -> Iterator[str]:
    lines = [line for line in content.tasks if any(status in {"failed", "error"} for status in line.statuses)]
    if not lines:
        return
    rows = [
        [
            name(line.task.id, 120),
            "".join(GLYPHS[status] for status in line.statuses[:12]),
            name(", ".join(line.reasons), 120) if line.reasons else "",
        ]
        for line in lines[:most]
    ]
    yield from table(["Task", "Attempts", "Why"], rows)
    if len(lines) > most:
        yield from ("", f"{len(lines) - most:,} more are not shown.")


def _integrity(content: Content) -> Iterator[str]:
    integrity = integrity_of(content.run)
    yield from ("", "### Integrity", "", f"**{plain(integrity.verdict)}**", "")
    yield from table(["", "", ""], [[one.mark, one.name, plain(one.words)] for one in integrity.checks])
    if integrity.problems:
        yield from ("", *(f"- {plain(problem)}" for problem in integrity.problems[:_MOST_PARTS]))
    yield from ("", "This result does not prove:", "", *(f"- {plain(text)}" for text in integrity.not_proven))
