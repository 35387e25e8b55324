"""The result of a run as a table, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from securebench.records.summary import TesterRunSummary

if TYPE_CHECKING:
    from rich.table import Table


def print_summary(summary: TesterRunSummary, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary.as_json(), indent=2))
        return
    from rich.text import Text

    from securebench.cli._text import print_table

    print_table(summary_table([(summary.run_id, summary)]))
    for note in notes(summary):
        print_table(Text(note))


def summary_table(rows: Sequence[tuple[str, TesterRunSummary]]) -> Table:
    """One row per run; the columns are explained in the README."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("run", overflow="ellipsis")
    table.add_column("score [95 %]", justify="right", no_wrap=True, min_width=19)
    # What did not happen in any run needs no column of zeros.
    rare = [name for name in ("pending", "errors") if any(getattr(run, name) for _, run in rows)]
    for name in ("passed", "failed", *rare):
        table.add_column(name, justify="right")
    table.add_column("assurance")
    table.add_column("time", justify="right", no_wrap=True)
    for name, run in rows:
        colour = "bold green" if run.passed else "bold red" if run.verified else "dim"
        table.add_row(
            Text(name),
            Text(score_text(run), style=colour),
            f"{run.passed}/{run.verified}",
            str(run.failed),
            *(Text(str(getattr(run, column)), style="bold yellow") for column in rare),
            Text(", ".join(f"{level} {count}" for level, count in run.assurance.items()) or "–"),
            duration(run.wall_seconds),
        )
    return table


def score_text(summary: TesterRunSummary) -> str:
    """`62.8 % [55.2, 69.8]`."""
    if summary.score is None:
        return "–"
    text = f"{summary.score * 100:.1f} %"
    if summary.interval is not None:
        text += f" [{summary.interval['low'] * 100:.1f}, {summary.interval['high'] * 100:.1f}]"
    return text


def duration(seconds: float) -> str:
    """`9.4 s`, `12 min 5 s`, `3 h 20 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"


def amount(number: int) -> str:
    """`812`, `12.3 k`, `4.6 M`."""
    for size, unit in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if number >= size * 0.9995:
            return f"{number / size:.1f}{unit}"
    return str(number)


def notes(summary: TesterRunSummary) -> list[str]:
    """What a reader must know besides the numbers."""
    lines = []
    if summary.interrupted:
        lines.append(f"Interrupted: {summary.total} of {summary.planned} attempts recorded; continue with --resume.")
    if summary.filtered is not None:
        lines.append(f"Filtered: {summary.filtered}.")
    if summary.samples is not None:
        lines += _samples(summary)
    if summary.audit is not None:
        held = f"{summary.audit['held']} of {summary.audit['attacks']} attacks held on {summary.audit['on']}"
        lines.append(f"Audit: {held}; attached and signed.")
    if summary.attempts > 1:
        lines.append(_attempts(summary))
    if summary.usage:
        lines.append(_models(summary))
    if summary.errors:
        lines.append(
            f"{summary.errors} attempts hit infrastructure errors and are not scored; --resume runs them again."
        )
    if summary.retries:
        lines.append(f"Retries: {summary.retries} times a fault of the host was tried again, as the records say.")
    if summary.lost_starts:
        lines.append(f"Lost: {summary.lost_starts} agents were started and lost to an engine that was killed.")
    if summary.failure_reasons:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.failure_reasons.items())
        lines.append(f"Failures: {reasons}")
    lines.append(f"Verification: {summary.verification_status}. Records: {summary.output_path}")
    return lines


def _samples(summary: TesterRunSummary) -> list[str]:
    given = summary.samples or {}
    lines = [f"Samples: {given['samples']} in the file with the digest {given['digest']}."]
    if given["tasks_without"]:
        lines.append(
            f"Missing: {given['tasks_without']} of {summary.tasks} tasks have no sample and count as failed; "
            "--ignore-missing leaves them out."
        )
    if summary.filters.get("sampled"):
        left = summary.filters["pack_tasks"] - summary.tasks
        lines.append(f"WITHOUT MISSING TASKS: {left} tasks of the pack are not counted (--ignore-missing).")
    return lines


def _attempts(summary: TesterRunSummary) -> str:
    shown = [(int(k), value) for k, value in summary.pass_at_k.items()]
    shown = [(k, value) for k, value in shown if k in {1, 2, 5, 10, 100, summary.attempts}]
    parts = [f"pass@{k} {value * 100:.1f} %" for k, value in shown]
    if summary.mean_task_variance is not None:
        parts.append(f"variance within tasks {summary.mean_task_variance:.3f}")
    least = "" if summary.attempts_least is None else f"{summary.attempts_least} to "
    return f"Attempts: {least}{summary.attempts} per task. {', '.join(parts)}".rstrip(" .") + "."


def _models(summary: TesterRunSummary) -> str:
    used = summary.usage
    text = (
        f"Models: {amount(used['requests'])} requests, {amount(used['input_tokens'])} tokens in "
        f"({amount(used['cached_tokens'])} cached), {amount(used['output_tokens'])} out"
    )
    if summary.cost_usd is not None:
        text += f", {summary.cost_usd:.2f} USD"
    if summary.cost_unknown:
        text += f"; the price of {summary.cost_unknown} attempts is not known"
    return text + "."
