"""`securebench query`: SQL over the records of runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securebench.cli._text import fits, one_line, print_table

if TYPE_CHECKING:
    from rich.table import Table

FORMATS = ("table", "csv", "json")
_SHOWN = 200
_CELL, _VALUE = 80, 4000


@click.command()
@click.argument("sql", required=False)
@click.argument("runs", metavar="RUN...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--schema", is_flag=True, help="Show the tables and their columns.")
@click.option("--format", "style", type=click.Choice(FORMATS), default="table", help="How to print; default: a table.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(sql: str | None, runs: tuple[Path, ...], schema: bool, style: str, as_json: bool) -> int:
    """Ask runs, or every run beneath a directory, in SQL: the tables are `records`, `tasks` and `runs`.

    The query can read these tables and nothing else: no file, no network, no extension. Needs DuckDB, which is the
    extra `analysis`.

    \b
    securebench query "SELECT failure_reason, count(*) FROM records GROUP BY 1 ORDER BY 2 DESC" runs/demo"""
    if schema:
        _print_schema(as_json or style == "json")
        return 0
    if sql is None or not runs:
        raise click.UsageError('give a query and runs: securebench query "SELECT * FROM runs" runs/demo')
    from securebench.cli._runs import read_runs, warn_of_runs
    from securebench.reports.database import Database, check_extra

    check_extra()
    read = read_runs(runs)
    warn_of_runs(read)
    with Database(read) as database, database.query(sql) as (columns, rows):
        _show(columns, rows, "json" if as_json else style)
    return 0


def _print_schema(as_json: bool) -> None:
    from securebench.reports.tables import TABLES

    if as_json:
        told = {table.name: {column.name: [column.kind, column.about] for column in table.columns} for table in TABLES}
        click.echo(json.dumps(told, indent=2))
        return
    for table in TABLES:
        click.echo(f"{table.name}: {table.about}")
        for column in table.columns:
            click.echo(f"  {column.name:17} {column.kind:10} {column.about}")


def _show(columns: Sequence[str], rows: Iterator[tuple[Any, ...]], style: str) -> None:
    if style == "csv":
        from securebench.reports.sheets import csv_lines

        for line in csv_lines(columns, rows):
            click.echo(line, nl=False)
    elif style == "json":
        values = [[_plain(value) for value in row] for row in rows]
        click.echo(json.dumps([dict(zip(_unique(columns), row, strict=True)) for row in values], indent=2))
    else:
        _table(columns, rows)


def _table(columns: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    """A line for each row, or a block, where that is wider than the terminal."""
    shown = list(islice(rows, _SHOWN))
    lines = _lines(columns, shown)
    for part in [lines] if fits(lines) else _blocks(columns, shown):
        print_table(part)
    more = sum(1 for _ in rows)
    if more:
        click.echo(f"… and {more:,} more rows (--format csv and --json print all)")


def _lines(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(Text(one_line(name, _CELL)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value), justify=_side(value)) for value in row))
    return table


def _blocks(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Iterator[Table]:
    from rich.table import Table
    from rich.text import Text

    for number, row in enumerate(rows, 1):
        block = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        block.title, block.title_justify = Text(f"row {number:,}", "bold"), "left"
        block.add_column(style="dim", max_width=_CELL // 2)
        block.add_column(overflow="fold")
        for name, value in zip(columns, row, strict=True):
            block.add_row(Text(one_line(name, _CELL)), Text(_cell(value, _VALUE)))
        yield block


def _cell(value: Any, width: int = _CELL) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return one_line(str(_plain(value)) if not isinstance(value, str) else value, width)


def _side(value: Any) -> Any:
    return "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"


def _plain(value: Any) -> Any:
    """As JSON has it; what it has no word for is text, and what is no number is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return str(value)


def _unique(columns: Sequence[str]) -> list[str]:
    """A query may name two columns alike; an object cannot."""
    seen: dict[str, int] = {}
    names = []
    for name in columns:
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names
