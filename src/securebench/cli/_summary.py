"""The result of a run as a table, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from securebench.records.summary import TesterRunSummary


def print_summary(summary: TesterRunSummary, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary.as_json(), indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(summary_table([(summary.run_id, summary)]))
    for note in notes(summary):
        console.print(note, markup=False)


def summary_table(rows: Sequence[tuple[str, TesterRunSummary]]) -> object:
    """One row per run; the columns are explained in the README."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("run", no_wrap=True)
    for name in ("score", "passed", "failed", "pending", "errors"):
        table.add_column(name, justify="right")
    table.add_column("assurance")
    table.add_column("time", justify="right")
    for name, run in rows:
        score = "–" if run.score is None else f"{run.score:.1%}"
        colour = "bold green" if run.passed else "bold red" if run.verified else "dim"
        table.add_row(
            Text(name),
            Text(score, style=colour),
            f"{run.passed}/{run.verified}",
            str(run.failed),
            str(run.pending),
            Text(str(run.errors), style="bold yellow" if run.errors else ""),
            Text(", ".join(f"{level} {count}" for level, count in run.assurance.items()) or "–"),
            f"{run.wall_seconds:.1f} s",
        )
    return table


def notes(summary: TesterRunSummary) -> list[str]:
    """What a reader must know besides the numbers."""
    lines = []
    if summary.interrupted:
        lines.append(f"Interrupted: {summary.total} of {summary.planned} attempts recorded; continue with --resume.")
    if summary.limit is not None:
        lines.append(f"Filtered: only the first {summary.limit} tasks were run (--limit).")
    if summary.errors:
        lines.append(
            f"{summary.errors} attempts hit infrastructure errors and are not scored; --resume runs them again."
        )
    if summary.failure_reasons:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.failure_reasons.items())
        lines.append(f"Failures: {reasons}")
    lines.append(f"Verification: {summary.verification_status}. Records: {summary.output_path}")
    return lines
