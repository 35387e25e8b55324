"""`securebench convert`: packs in other people's formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from securebench.converters.report import ConversionReport

SHOWN = 20
FORMATS = ("harbor",)
_PRIVATE = (
    "the directory holds tests and solutions: keep it as private as the pack. Harbor tests where the agent was, so a "
    "reward there has no assurance; import it again, or run the pack, for one"
)


@click.command("convert")
@click.argument("format_", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("pack", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "target", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The new directory."
)
@click.option("--image", metavar="NAME", help="The image of rows that name none.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(format_: str, pack: Path, target: Path, image: str | None, as_json: bool) -> int:
    """Write PACK for another tool into the new directory DIR.

    FORMAT `harbor`: a task directory for each terminal_task row, with its checker, its files and its reference. What
    cannot be said there is listed row by row; rows that have no place there are left out (exit 1). `securebench import
    harbor DIR` makes a pack of it again."""
    from securebench.benchmark_pack import find_pack, load_benchmark_pack
    from securebench.converters.harbor import write_tasks
    from securebench.importers.importing import new_directory

    loaded = load_benchmark_pack(*find_pack(pack))
    with new_directory(target) as directory:
        report = write_tasks(loaded, directory, image)
    if as_json:
        click.echo(json.dumps({"output": str(target), "format": format_, "pack": loaded.digest, **report.as_json()}))
    else:
        _print(target, report)
    click.echo(_PRIVATE, err=True)
    return 1 if report.left_out else 0


def _print(target: Path, report: ConversionReport) -> None:
    from securebench.cli._text import visible

    click.echo(f"{target}: {report.written} of {report.rows} rows")
    for what, told in (("left out", report.left_out), ("note", report.notes)):
        for one in told[:SHOWN]:
            click.echo(visible(f"{what}: {one}"))
        if len(told) > SHOWN:
            click.echo(f"… and {len(told) - SHOWN} more (--json shows them)")
