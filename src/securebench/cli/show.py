"""`securebench show`: a run, or one of its tasks, in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from securebench.reports.content import Content, TaskLine
    from securebench.reports.details import Detail
    from securebench.reports.rows import Row


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("task", metavar="[TASK]", required=False)
@click.option("--attempt", type=click.IntRange(min=1), help="Only this attempt at the task.")
@click.option("--failed", is_flag=True, help="Only what did not pass.")
@click.option("--all", "everything", is_flag=True, help="All tasks, however many; all of every text.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def command(run: Path, task: str | None, attempt: int | None, failed: bool, everything: bool, as_json: bool) -> int:
    """Show what came of a run; with TASK, what came of its attempts: candidate, tests, output, transcript.

    TASK is a task's id, or a part of it that only one has. What candidates wrote cannot steer the terminal."""
    from securebench.cli._runs import read_runs
    from securebench.errors import ConfigError
    from securebench.reports.content import content_of
    from securebench.reports.words import counted

    if attempt is not None and task is None:
        raise click.UsageError("--attempt needs a TASK")
    found = read_runs([run])
    if len(found) > 1:
        names = ", ".join(str(one.directory) for one in found[:5])
        raise ConfigError(f"{run} holds {len(found)} runs; choose one: {names}")
    content = content_of(found[0])
    if task is None:
        return _show_run(content, failed, everything, as_json)
    line = _task(content, task)
    attempts = [row for row in line.rows if attempt in (None, row.attempt) and not (failed and row.status == "passed")]
    if attempt is not None and attempt > len(line.attempts):
        raise ConfigError(
            f"task {line.task.id} has {counted(len(line.attempts), 'attempt')}; there is no attempt {attempt}"
        )
    if failed and line.rows and not attempts and not as_json:
        click.echo("passed: there is nothing that did not", err=True)
    return _show_task(content, line, attempts, everything, as_json)


def _show_run(content: Content, failed: bool, everything: bool, as_json: bool) -> int:
    if as_json:
        value = content.as_json()
        if failed:
            value["tasks"] = [one for one in value["tasks"] if set(one["statuses"]) != {"passed"}]
        click.echo(json.dumps(value, indent=2))
        return 0
    from securebench.cli._show_run import overview
    from securebench.cli._text import print_table

    for part in overview(content, failed=failed, most=None if everything else 40):
        print_table(part)
    return 0


def _show_task(content: Content, line: TaskLine, rows: list[Row], everything: bool, as_json: bool) -> int:
    from securebench.reports.details import EVERYTHING, Bounds

    bounds = EVERYTHING if everything or as_json else Bounds(6000, 100, 200)
    told = [(row, _detail(content, row, bounds)) for row in rows]
    if as_json:
        click.echo(json.dumps(line.as_json() | {"attempts": [_attempt_json(row, one) for row, one in told]}, indent=2))
        return 0
    from securebench.cli._show_attempt import attempt_lines, task_lines
    from securebench.cli._text import print_table

    for part in task_lines(line):
        print_table(part)
    shown = None
    for row, detail in told:
        asked = None if detail is None else detail.asked
        for part in attempt_lines(row, detail, asked=asked != shown):
            print_table(part)
        shown = asked or shown
    return 0


def _detail(content: Content, row: Row, bounds: Any) -> Detail | None:
    from securebench.candidates.store import CandidateStore
    from securebench.evidence.verify import CANDIDATES
    from securebench.reports.details import detail_of
    from securebench.reports.record_file import open_records

    directory = content.run.directory
    with open_records(directory) as records:
        record = records.record(row.line)
    if record is None or (record.get("task_id"), record.get("attempt")) != row.key:
        return None
    return detail_of(record, CandidateStore(directory / CANDIDATES), bounds)


def _attempt_json(row: Row, detail: Detail | None) -> dict[str, Any]:
    from dataclasses import asdict

    from securebench.reports.spreads import seconds_of

    return asdict(row) | {"seconds": seconds_of(row), "detail": None if detail is None else detail.as_json()}


def _task(content: Content, wanted: str) -> TaskLine:
    """Raises ConfigError where no task, or more than one, goes by that name."""
    from difflib import get_close_matches

    from securebench.errors import ConfigError

    exact = [line for line in content.tasks if line.task.id == wanted]
    found = exact or [line for line in content.tasks if wanted in line.task.id]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(line.task.id for line in found[:8])
        raise ConfigError(f"{len(found)} tasks have {wanted!r} in their names: {names}{'…' if len(found) > 8 else ''}")
    close = get_close_matches(wanted, [line.task.id for line in content.tasks], 3)
    hint = f"; did you mean {', '.join(close)}?" if close else "; `securebench show RUN` lists them"
    raise ConfigError(f"there is no task {wanted!r} in this run{hint}")
