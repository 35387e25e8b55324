"""`securebench export`: runs in the formats of other tools."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from securebench.reports.runs import Run
    from securebench.reports.tables import Table

FORMATS = ("csv", "jsonl", "junit", "parquet", "sarif", "atif", "harbor", "inspect", "swebench")
TABLES = ("records", "tasks", "runs")


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "style", type=click.Choice(FORMATS), help="The format; by default the ending of --output.")
@click.option("--table", "table", type=click.Choice(TABLES), help="Of csv, jsonl and parquet: which; default: records.")
@click.option("--attempt", type=click.IntRange(min=1), help="Of swebench: which attempt at each task; default: 1.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write it there.")
def command(
    runs: tuple[Path, ...], style: str | None, table: str | None, attempt: int | None, output: Path | None
) -> int:
    """Write runs, or every run beneath a directory, for other tools: tables as CSV, JSON lines or Parquet (which needs
    the extra `analysis`), every attempt as JUnit XML or SARIF. Without --output, on standard output.

    One run as a log of Inspect (inspect), as predictions of SWE-bench (swebench), as trajectories (atif: JSON lines, or
    a directory with a file each), or as a directory of Harbor's (harbor).

    In CSV no cell is a formula; in every format control and invisible characters are written out. What was hidden
    from agents is in none of them."""
    from securebench.cli._reports import check_destinations
    from securebench.cli._runs import read_runs, warn_of_runs
    from securebench.reports.export.formats import BY_TABLE, OF_ONE_RUN

    style = style or _from_ending(output)
    if table is not None and style not in BY_TABLE:
        raise click.UsageError(f"--table is about {', '.join(BY_TABLE)}; {style} holds every attempt")
    if attempt is not None and style != "swebench":
        raise click.UsageError("--attempt is about swebench, which takes one attempt at each task")
    if style == "parquet" and output is None:
        raise click.UsageError("Parquet is no text: give --output FILE")
    if style == "harbor" and output is None:
        raise click.UsageError("a job of Harbor is a directory: give --output DIRECTORY")
    if style == "inspect" and output is not None and output.suffix == ".eval":
        raise click.UsageError("a log of Inspect is written as JSON, and .eval means another packing: name it .json")
    if style == "harbor" or (style == "atif" and output is not None and output.suffix != ".jsonl"):
        return _write_directory(runs, style, output or Path())
    check_destinations(output)
    if style == "parquet":
        from securebench.reports.database import check_extra

        check_extra()
    read = read_runs(runs)
    warn_of_runs(read)
    pieces = _of_one(read, style, attempt) if style in OF_ONE_RUN else _of_all(read, style, table)
    if output is None:
        for piece in pieces:
            click.echo(piece, nl=False)
        return 0
    with _replacing(output) as temporary:
        if style == "parquet":
            from securebench.reports.database import write_parquet

            write_parquet(read, _table(table), temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
    return 0


def _of_all(read: Sequence[Run], style: str, table: str | None) -> Iterator[str]:
    from securebench.reports.export.formats import export_text

    yield from export_text(read, style, _table(table))


def _table(name: str | None) -> Table:
    from securebench.reports.tables import TABLES as KNOWN

    return next(one for one in KNOWN if one.name == (name or "records"))


def _of_one(read: Sequence[Run], style: str, attempt: int | None) -> Iterator[str]:
    """Raises ConfigError where there is nothing to write."""
    from securebench.errors import ConfigError
    from securebench.reports.export.formats import run_text

    run, written = _one(read, style), False
    _warn_of_patches(run, style, attempt)
    for piece in run_text(run, style, attempt or 1):
        written = True
        yield piece
    if not written:
        raise ConfigError(f"{run.directory}: {NOTHING[style]}")


def _warn_of_patches(run: Run, style: str, attempt: int | None) -> None:
    """Of those that are not, or not wholly, what was judged: graded again, they would come to another verdict."""
    from securebench.cli._text import visible, without_orders
    from securebench.reports.export.attempts import lacking

    if style == "atif":
        return
    for told in lacking(run, attempt or 1 if style == "swebench" else None):
        click.echo(without_orders(visible(f"warning: {told}; graded again, it may come to another verdict")), err=True)


NOTHING = {
    "atif": "no attempt kept a trajectory; agents and `chat` do",
    "swebench": "no such attempt at a task that collects a patch (repo_patch)",
}


def _one(read: Sequence[Run], style: str) -> Run:
    if len(read) > 1:
        raise click.UsageError(f"{style} holds one run, and these are {len(read)}; name one")
    return read[0]


def _write_directory(runs: tuple[Path, ...], style: str, output: Path) -> int:
    """A directory that is there when it is whole. Raises ConfigError."""
    from securebench.cli._runs import read_runs, warn_of_runs
    from securebench.errors import ConfigError
    from securebench.reports.export.formats import run_files

    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise ConfigError(f"{output}: is there already; name a directory that is new or empty")
    read = read_runs(runs)
    run, written = _one(read, style), False
    warn_of_runs(read)
    _warn_of_patches(run, style, None)
    with _replacing(output.absolute()) as temporary:
        temporary.mkdir()
        for name, data in run_files(run, style):
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            with (temporary / name).open("xb") as file:
                file.write(data)
            written = True
        if not written:
            raise ConfigError(f"{run.directory}: {NOTHING[style]}")
    return 0


def _from_ending(output: Path | None) -> str:
    ending = "" if output is None else output.suffix.removeprefix(".").lower()
    ending = {"xml": "junit", "ndjson": "jsonl"}.get(ending, ending)
    if ending not in FORMATS:
        raise click.UsageError(f"say which format: --format {'|'.join(FORMATS)}")
    return ending


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file or directory beside it that takes its place when it is whole: half an export is never taken for one, and
    a name that is a link is replaced, never written through. Raises ConfigError."""
    from securebench.errors import ConfigError

    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            if temporary.is_dir():
                shutil.rmtree(temporary)
            temporary.unlink(missing_ok=True)
