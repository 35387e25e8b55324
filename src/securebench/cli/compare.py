"""`securebench compare`: which run is better, by how much, and could chance explain it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from securebench.cli._text import one_line, print_table, without_orders

if TYPE_CHECKING:
    from rich.table import Table

    from securebench.reports.compare.comparison import Comparison, Match

FORMATS = ("table", "json", "markdown", "github")
_COLOURS = {"better": "green", "worse": "red"}
_NAME, _MOST = 60, 30


@click.command()
@click.argument("runs", metavar="A B [C...]", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--all-pairs", is_flag=True, help="Every run against every other, instead of against the first.")
@click.option("--by-id", is_flag=True, help="Pair tasks of the same id even where their rows differ.")
@click.option("--strict", is_flag=True, help="Exit 1 if the runs are not simply comparable.")
@click.option("--format", "style", type=click.Choice(FORMATS), default="table", help="How to print; default: a table.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page there too.")
def command(
    runs: tuple[Path, ...], all_pairs: bool, by_id: bool, strict: bool, style: str, as_json: bool, html: Path | None
) -> int:
    """Compare runs of one pack, paired by task: the difference with its interval, exact tests, tasks won and lost, and
    how small a difference could have been seen at all. The first run is the one the others are compared with.

    Runs that cannot simply be compared (other rows, limits, attempts or assurance, filtered, unsealed, changed since
    they were sealed, unsafe) are compared as far as they can be, and a warning says why they cannot."""
    from securebench.cli._reports import check_destinations, write
    from securebench.cli._runs import read_runs
    from securebench.errors import ConfigError
    from securebench.reports.compare.comparison import compare_runs

    check_destinations(html)
    read = read_runs(runs)
    if len(read) < 2 <= len(runs):
        raise ConfigError(f"{read[0].directory} was given more than once; a comparison needs another run")
    comparison = compare_runs(read, by_id=by_id, all_pairs=all_pairs)
    if html is not None:
        from securebench.reports.compare.page import comparison_page

        write(html, comparison_page(comparison))
    _show(comparison, "json" if as_json else style)
    return 1 if strict and not comparison.comparable else 0


def _show(comparison: Comparison, style: str) -> None:
    if style == "json":
        click.echo(json.dumps(comparison.as_json(), indent=2))
    elif style == "markdown":
        from securebench.reports.compare.markdown import markdown

        click.echo(markdown(comparison), nl=False)
    elif style == "github":
        from securebench.reports.compare.annotations import annotate

        for line in annotate(comparison):
            click.echo(line)
    else:
        _print(comparison)


def _print(comparison: Comparison) -> None:
    print_table(_runs(comparison))
    for match in comparison.matches:
        _match(match, comparison.corrected)
    lines = [(side.run.label, line) for side in comparison.sides for line in side.caveats]
    lines += [
        (f"{match.first.label} and {match.second.label}:", line)
        for match in comparison.matches
        for line in match.caveats
    ]
    if lines:
        click.secho("\nNot simply comparable:", fg="yellow", bold=True)
        for name, line in lines:
            _say(f"  {one_line(name, 2 * _NAME)} {one_line(line, 400)}")


def _runs(comparison: Comparison) -> Table:
    from rich.text import Text

    from securebench.reports.words import interval_text, share_text

    table = _table(("run", None), ("score", "right"), ("95 %", "right"), ("passed", "right"), ("seal", None))
    for side in comparison.sides:
        estimate = side.score.estimate
        table.add_row(
            Text(one_line(side.run.label, _NAME)),
            "–" if estimate is None else share_text(estimate.mean),
            "–" if estimate is None else interval_text(estimate),
            f"{side.score.counts['passed']:,}/{side.score.judged:,}",
            side.run.seal_status,
        )
    return table


def _match(match: Match, corrected: bool) -> None:
    from securebench.reports.compare.words import explained, seen, tested, verdict
    from securebench.reports.words import counted

    told, one = verdict(match), match.difference
    names = f"{one_line(match.second.label, _NAME)} against {one_line(match.first.label, _NAME)}: "
    click.echo(without_orders(names) + click.style(told, fg=_COLOURS.get(told), bold=True))
    _say(f"  {explained(match, corrected)}")
    _say(f"  {counted(one.tasks, 'task')}: {one.wins:,} won, {one.ties:,} tied, {one.losses:,} lost")
    _say(f"  {tested(match)}")
    _say(f"  {seen(match)}")
    _parts(match)
    _flips(match)


def _parts(match: Match) -> None:
    from rich.text import Text

    from securebench.reports.compare.words import difference_text

    if match.parts:
        table = _table(("family", None), ("tasks", "right"), ("difference in points", "right"))
        for name, part in match.parts[:_MOST]:
            table.add_row(Text(one_line(name, _NAME)), f"{part.tasks:,}", difference_text(part))
        print_table(table)


def _flips(match: Match) -> None:
    from rich.text import Text

    from securebench.reports.compare.words import listed_flips, share

    flips, more = listed_flips(match)
    if flips:
        table = _table(("flipped", None), ("task", None), ("was", "right"), ("is", "right"))
        for kind, pair in flips:
            row = (Text(kind, style="red" if kind == "lost" else "green"), Text(one_line(pair.task_id, _NAME)))
            table.add_row(*row, share(pair.first.mean), share(pair.second.mean))
        print_table(table)
    if more:
        click.echo(f"  … and {more:,} more (--json has all)")


def _say(line: str) -> None:
    click.echo(without_orders(line))


def _table(*columns: tuple[str, str | None]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    return table
