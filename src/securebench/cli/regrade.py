"""`securebench regrade`: would the present verifiers and pack give the verdicts a run has recorded?"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from securebench.cli._text import one_line, print_table, visible

if TYPE_CHECKING:
    from rich.table import Table

    from securebench.engine.regrade_report import Regraded, RegradeReport, Totals
    from securebench.regrading import Listener, RegradeOptions

SHOWN = 50
_EVERY = 5.0  # seconds between lines of progress where there is no terminal


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--pack", type=click.Path(path_type=Path), help="The pack: its directory, or its manifest.")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="A tester YAML: its pack unless --pack is given, its verification policy, sandbox and judge.",
)
@click.option("--task", "only", multiple=True, metavar="ID", help="Only this task; may be given several times.")
@click.option("--workers", type=click.IntRange(min=1), help="Attempts side by side; default: the number of cores.")
@click.option("--env-file", type=click.Path(path_type=Path), help="Read variables, such as a judge's key, from a file.")
@click.option("--output", type=click.Path(path_type=Path), help="Also write the report there, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--quiet", is_flag=True, help="No progress, only the result.")
def command(
    run: Path,
    pack: Path | None,
    config_path: Path | None,
    only: tuple[str, ...],
    workers: int | None,
    env_file: Path | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Verify the stored candidates of RUN again, with this SecureBench and this pack, and report every verdict that
    changed, with the reason. RUN is only read.

    Attempts whose producing failed stay failed. Exit 1 when a verdict changed, when a candidate can no longer be
    judged from what is stored, or when the run is not what was sealed; 3 when the host failed."""
    from securebench.regrading import regrade_run

    _check_elsewhere(output, run)
    options = _options(pack, config_path, only, workers, env_file)
    with _progress(quiet) as listener:
        report = regrade_run(run, options, listener)
    text = json.dumps(report.as_json(), indent=2)
    if output is not None:
        _write(output, text)
    if as_json:
        click.echo(text)
    else:
        _print(report)
    if report.interrupted:
        return 130
    return 3 if report.errors else 0 if report.ok else 1


def _options(
    pack: Path | None, config_path: Path | None, only: tuple[str, ...], workers: int | None, env_file: Path | None
) -> RegradeOptions:
    from securebench.benchmark_pack import find_pack
    from securebench.cli._trust import trusted_keys
    from securebench.regrading import RegradeOptions
    from securebench.tester_config import load_env_file, load_tester_config

    if pack is None and config_path is None:
        raise click.UsageError("a run does not hold its pack: give --pack, or the tester YAML with --config")
    config = None
    if config_path is not None:
        env = dict(os.environ) | (load_env_file(env_file) if env_file else {})
        config = load_tester_config(config_path, env=env)
    if pack is not None:
        manifest, tasks = find_pack(pack)
    elif config is not None:
        manifest, tasks = config.manifest, config.tasks
    return RegradeOptions(
        manifest=manifest,
        tasks=tasks,
        config=config,
        only=tuple(dict.fromkeys(only)),
        workers=workers,
        trusted=trusted_keys(),
    )


def _check_elsewhere(output: Path | None, run: Path) -> None:
    from securebench.errors import ConfigError

    if output is not None and output.parent.resolve().is_relative_to(run.resolve()):
        raise ConfigError(f"--output {output} lies in the run, which is only read; choose another place")


def _write(path: Path, text: str) -> None:
    """Put beside its final name first: a name that is a link to something else is replaced, never written through."""
    from securebench.errors import StoreError

    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


@contextmanager
def _progress(quiet: bool) -> Iterator[Listener]:
    """On standard error: a bar on a terminal, a line now and then elsewhere."""
    from securebench.regrading import Listener

    if quiet or sys.stderr is None:
        yield Listener()
    elif sys.stderr.isatty():
        with _bar() as listener:
            yield listener
    else:
        lines = _Lines()
        yield Listener(notice=_say, begin=lines.begin, done=lines.done)


@contextmanager
def _bar() -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from securebench.regrading import Listener

    columns = (TextColumn("regrading"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def notice(text: str) -> None:
            bar.console.print(visible(text), markup=False, highlight=False, style="dim")

        def begin(total: int) -> None:
            bar.update(task, total=total)

        def done(_: Regraded) -> None:
            bar.advance(task)

        yield Listener(notice, begin, done)


class _Lines:
    """How far it has come, readable in a log."""

    def __init__(self) -> None:
        self.count = self.total = 0
        self.said = time.monotonic()

    def begin(self, total: int) -> None:
        self.total = total

    def done(self, _: Regraded) -> None:
        self.count += 1
        if self.count == self.total or time.monotonic() - self.said >= _EVERY:
            self.said = time.monotonic()
            _say(f"regraded {self.count} of {self.total}")


def _say(text: str) -> None:
    click.echo(visible(text), err=True)


def _print(report: RegradeReport) -> None:
    click.echo(f"{visible(str(report.run))}: run {report.run_id} of {report.benchmark.id}, {report.sealed}")
    for title, lines in (("not as it was written", report.problems), ("other than in the run", report.since)):
        if lines:
            click.echo(f"  {title}:")
        for line in lines[:SHOWN]:
            click.echo(f"    {visible(line, keep='')}")
    shown = [one for one in report.attempts if one.category not in ("same", "not_judged_before")]
    if shown:
        print_table(_table(shown[:SHOWN]))
    if len(shown) > SHOWN:
        click.echo(f"… and {len(shown) - SHOWN} more (--json shows all)")
    click.echo(_counted(report))
    click.echo(f"score: {_total(report.old)} → {_total(report.new)}")


def _table(attempts: list[Regraded]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("task", "was", "is", "why"):
        table.add_column(name, overflow="fold")
    colours = {"improved": "green", "worsened": "red", "level": "yellow"}
    for one in attempts:
        why = "; ".join(one.why)
        if one.new is not None and one.new.message:
            why += f". Now: {one.new.message}"
        table.add_row(
            Text(f"{visible(one.task_id, keep='')} #{one.attempt}"),
            Text(str(one.old)),
            Text(str(one.new or one.category), style=colours.get(one.direction or "", "bold yellow")),
            Text(one_line(why, 400)),
        )
    return table


def _counted(report: RegradeReport) -> str:
    counts = report.counts
    ways = ", ".join(f"{counts[name]} {name}" for name in ("improved", "worsened", "level") if counts[name])
    parts = [f"{counts['same']} the same", f"{counts['changed']} changed" + (f" ({ways})" if ways else "")]
    for name, words in (
        ("unverifiable", "unverifiable"),
        ("error", "not judged because of errors"),
        ("not_judged_before", "that never came before a verifier"),
    ):
        parts += [f"{counts[name]} {words}"] if counts[name] else []
    parts += [f"{report.not_recorded} without a record"] if report.not_recorded else []
    text = f"{len(report.attempts)} attempts: {', '.join(parts)}"
    return f"interrupted after {text}" if report.interrupted else text


def _total(totals: Totals) -> str:
    score = "–" if totals.score is None else f"{totals.score:.1%}"
    return f"{score} ({totals.passed} of {totals.judged} passed)"
