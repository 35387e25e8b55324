"""A run in the terminal: its score, its parts as bars, why attempts failed, its tasks."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from securebench.cli._text import one_line, visible
from securebench.reports.content import Content, TaskLine
from securebench.reports.facts import notices
from securebench.reports.integrity import integrity_of
from securebench.reports.scores import Grouping
from securebench.reports.statistics import Estimate
from securebench.reports.words import (
    GLYPHS,
    UNITS,
    amount_text,
    interval_text,
    money_text,
    seconds_text,
    share_text,
)

STYLES = {"passed": "green", "failed": "red", "pending": "dim", "error": "yellow", "missing": "dim"}
_BAR = 24
_PARTS = 12
_NAME = 60
_MARKS = 10


def overview(content: Content, *, failed: bool, most: int | None) -> Iterator[RenderableType]:
    """Top to bottom. `most` tasks are listed, all where it is None; with `failed` only those that did not pass."""
    yield from _head(content)
    if not failed:
        for grouping in content.groupings:
            yield from _parts(grouping)
        if content.reasons:
            yield _reasons(content)
        yield from _used(content)
    lines = [line for line in content.tasks if not failed or set(line.statuses) != {"passed"}]
    shown = lines if most is None else lines[:most]
    yield _tasks(shown)
    if len(shown) < len(lines):
        yield Text(f"… and {len(lines) - len(shown):,} more tasks (--all shows them)", "dim")


def _head(content: Content) -> Iterator[Text]:
    plan, estimate = content.run.plan, content.whole.estimate
    yield Text(visible(f"{plan.run_id}: {plan.benchmark.id} {plan.benchmark.version}", keep=""), "bold")
    line = Text("–" if estimate is None else share_text(estimate.mean), "bold")
    if estimate is not None:
        line.append(f"  95 % interval {interval_text(estimate)}", "not bold")
    for status, count in content.whole.counts.items():
        if count:
            line.append("  ")
            line.append(f"{GLYPHS[status]} {count:,} {status}", f"not bold {STYLES[status]}")
    yield line
    integrity = integrity_of(content.run)
    yield Text(f"{integrity.mark} {visible(integrity.verdict, keep='')}", STYLES[integrity.state])
    for problem in integrity.problems[:5]:
        yield Text(f"  {visible(problem, keep='')}", "red")
    for notice in notices(content):
        yield Text(f"! {visible(notice, keep='')}", "yellow")


def _parts(grouping: Grouping) -> Iterator[RenderableType]:
    table = _table(grouping.by, "score", "95 % interval", "tasks:", "")
    parts = grouping.parts[:_PARTS]
    for part in parts:
        estimate = part.estimate
        table.add_row(
            Text(one_line(part.name, _NAME)),
            Text("–" if estimate is None else share_text(estimate.mean), "bold"),
            Text("" if estimate is None else interval_text(estimate), "dim"),
            Text(f"{estimate.tasks:,}" if estimate else "0"),
            Text() if estimate is None else _whisker(estimate),
        )
    yield table
    if len(grouping.parts) > len(parts):
        yield Text(f"… and {len(grouping.parts) - len(parts)} more (--json has them)", "dim")


def _whisker(estimate: Estimate) -> Text:
    """`  ├──●──┤    `, from 0 to 100 %."""
    low, mean, high = (
        round(share * (_BAR - 1)) for share in (estimate.interval.low, estimate.mean, estimate.interval.high)
    )
    cells = [" "] * _BAR
    for place in range(low, high + 1):
        cells[place] = "─"
    cells[low], cells[high] = "├", "┤"
    cells[mean] = "●"
    return Text("▏" + "".join(cells) + "▕", "cyan")


def _reasons(content: Content) -> Table:
    table = _table("failure", "attempts:", "")
    most = content.reasons[0][1]
    for reason, count in content.reasons[:_PARTS]:
        table.add_row(
            Text(one_line(reason, _NAME)), Text(f"{count:,}"), Text("█" * max(1, round(count / most * _BAR)), "red")
        )
    return table


def _used(content: Content) -> Iterator[Table]:
    if not content.spreads:
        return
    table = _table("an attempt", "median:", "10 to 90 %:", "most:", "in all:")
    for spread in content.spreads:
        write = UNITS[spread.unit]
        middle = f"{write(spread.quantile(0.1))} to {write(spread.quantile(0.9))}"
        table.add_row(
            spread.name, write(spread.quantile(0.5)), middle, write(spread.quantile(1.0)), write(spread.total)
        )
    yield table


def _tasks(lines: list[TaskLine]) -> Table:
    table = _table("task", "attempts", "failures", "time:", "tokens:", "cost:")
    for line in lines:
        marks = Text()
        for status in line.statuses[:_MARKS]:
            marks.append(GLYPHS[status], STYLES[status])
        if len(line.statuses) > _MARKS:
            marks.append(f" +{len(line.statuses) - _MARKS}", "dim")
        table.add_row(
            Text(one_line(line.task.id, _NAME)),
            marks,
            Text(one_line(", ".join(line.reasons), _NAME), "dim"),
            "–" if line.seconds is None else seconds_text(line.seconds),
            "–" if line.tokens is None else amount_text(line.tokens),
            "–" if line.cost is None else money_text(line.cost),
        )
    return table


def _table(*heads: str) -> Table:
    """A head that ends in `:` is aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        table.add_column(head.removesuffix(":"), justify="right" if head.endswith(":") else "left", overflow="fold")
    return table
