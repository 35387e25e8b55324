"""`securebench doctor`: what this host offers, and how to get more."""

from __future__ import annotations

import json

import click

from securebench.sandboxes.doctor import Diagnosis

GRADES = {
    "A": "isolated with a kernel of its own",
    "B": "isolated, hard memory limits",
    "C": "isolated, memory limits by best effort",
    "F": "not usable",
}


@click.command()
@click.option("--clean", "cleaning", is_flag=True, help="Remove what a killed run left behind.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(cleaning: bool, as_json: bool) -> int:
    """Show what the sandboxes of this host guarantee, as seen by running them, and how to get more.

    Exit 1 when no backend can isolate anything here."""
    import anyio

    from securebench.sandboxes.doctor import clean, diagnose

    if cleaning:
        removed = anyio.run(clean)
        click.echo(json.dumps({"removed": removed}) if as_json else _cleaned(removed))
        return 0
    found = anyio.run(diagnose)
    if as_json:
        click.echo(json.dumps({"backends": [diagnosis.as_json() for diagnosis in found]}, indent=2))
    else:
        for diagnosis in found:
            _print(diagnosis)
    return 0 if any(diagnosis.grade != "F" for diagnosis in found) else 1


def _cleaned(removed: list[str]) -> str:
    return "\n".join([f"removed {name}" for name in removed] or ["nothing was left behind"])


def _print(diagnosis: Diagnosis) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from securebench.cli._text import visible

    console = Console(highlight=False)
    colour = "red" if diagnosis.grade == "F" else "green"
    console.print(Text.assemble((diagnosis.backend, "bold"), "  grade ", (diagnosis.grade, f"bold {colour}")), end="")
    guarantees = ", ".join(sorted(diagnosis.capabilities.guarantees))
    console.print(Text(f"  {GRADES[diagnosis.grade]}{f' ({guarantees})' if guarantees else ''}"))
    table = Table.grid(padding=(0, 2))
    for finding in diagnosis.capabilities.findings:
        mark = Text("✓", "green") if finding.ok else Text("✗", "red")
        table.add_row("", mark, Text(finding.name), Text(visible(finding.detail), "dim"))
        if finding.remedy:
            table.add_row("", "", "", Text(f"→ {visible(finding.remedy)}", "yellow"))
    for complaint in diagnosis.canary:
        table.add_row("", Text("✗", "red"), Text("canary"), Text(visible(complaint), "red"))
    console.print(table)
    console.print()
