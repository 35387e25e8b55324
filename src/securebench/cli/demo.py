"""`securebench demo`: the shipped pack, an honest agent and a cheating one, end to end in the sandbox."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path

import click

from securebench.records.summary import TesterRunSummary

AGENTS = ("honest", "cheat")


@click.command()
@click.option("--output-dir", type=click.Path(path_type=Path), help="Keep the records there; default: throw them away.")
@click.option("--quiet", is_flag=True, help="No progress, only the result.")
@click.option("--json", "as_json", is_flag=True, help="Print the summaries as JSON.")
def command(output_dir: Path | None, quiet: bool, as_json: bool) -> int:
    """Watch an honest agent score and a cheating one not, in a few seconds.

    Both run in the embedded sandbox against a small pack that ships with SecureBench."""
    from securebench.cli._display import open_display
    from securebench.tester_config import load_tester_config
    from securebench.tester_run import run_tester_config, with_tester_overrides

    with ExitStack() as stack:
        shipped = stack.enter_context(as_file(files("securebench") / "data" / "demo"))
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="securebench-demo-")))
        pack = Path(shutil.copytree(shipped, temporary / "pack"))
        target = output_dir or temporary
        _check_free(target)
        summaries = {}
        for agent in AGENTS:
            config = with_tester_overrides(load_tester_config(pack / f"{agent}.yaml"), output_dir=target / agent)
            with open_display("quiet" if quiet else "auto", show_agent_output=False) as show:
                summaries[agent] = run_tester_config(config, progress=show)
            if summaries[agent].interrupted:
                return 130
        tried = _what_was_tried(Path(summaries["cheat"].output_path))
    if as_json:
        click.echo(json.dumps({name: summary.as_json() for name, summary in summaries.items()}, indent=2))
    else:
        _print(summaries, tried, output_dir)
    honest, cheat = (summaries[agent] for agent in AGENTS)
    return 0 if honest.passed == honest.total and cheat.passed == 0 and not cheat.errors else 1


def _check_free(target: Path) -> None:
    from securebench.errors import ConfigError

    taken = [str(target / agent) for agent in AGENTS if (target / agent).exists()]
    if taken:
        raise ConfigError(f"{', '.join(taken)} is there already; choose another --output-dir")


def _what_was_tried(path: Path) -> list[tuple[str, str]]:
    """The cheat's own notes, from the record of its first attempt."""
    from securebench.records.store import read_records

    for _, _, record in read_records(path):
        lines = record["producer_stderr"].splitlines()
        return [(what, result) for what, bar, result in (line.partition("|") for line in lines) if bar]
    return []


def _print(summaries: dict[str, TesterRunSummary], tried: list[tuple[str, str]], output_dir: Path | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from securebench.cli._summary import summary_table
    from securebench.cli._text import one_line, program

    console = Console(highlight=False)
    titles = {"honest": "honest agent", "cheat": "cheating agent"}
    console.print(summary_table([(titles[name], summary) for name, summary in summaries.items()]))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what the cheat tried", no_wrap=True)
    table.add_column("what came of it")
    for what, result in tried:
        table.add_row(Text(one_line(what, 60)), Text(one_line(result, 60), "red" if "FOUND" in result else "green"))
    reasons = ", ".join(f"{reason} {count}" for reason, count in summaries["cheat"].failure_reasons.items())
    table.add_row(Text("print every option, number and verdict it knows"), Text(f"scored 0: {reasons}", "green"))
    console.print(table)
    console.print(f"Records: {output_dir}" if output_dir else f"Next: {program()} init my-pack", markup=False)
