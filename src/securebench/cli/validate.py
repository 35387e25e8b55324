"""`securebench validate`: is this pack sound, and does it refuse answers without work?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from securebench.audit.pack_controls import ControlReport
from securebench.benchmark_pack import BenchmarkPack

SHOWN = 20


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(pack: Path, as_json: bool) -> int:
    """Check PACK (a directory, or its manifest), and that answers without work do not score on it.

    Every problem of every file is reported with file, line and field (exit 2). Then each text task gets the negative
    controls: empty, shape-only, echo of the question, all options at once. One that passes is a fault of the pack
    (exit 1)."""
    from securebench.audit.pack_controls import load_with_controls
    from securebench.benchmark_pack import find_pack
    from securebench.errors import ConfigError

    try:
        loaded, report = load_with_controls(*find_pack(pack))
    except ConfigError as error:
        if not as_json:
            raise
        problems = [{"file": p.file, "line": p.line, "field": p.field, "message": p.message} for p in error.problems]
        click.echo(json.dumps({"ok": False, "problems": problems or [{"message": str(error)}]}, indent=2))
        return 2
    if as_json:
        click.echo(json.dumps({"ok": report.ok, "id": loaded.manifest.id, "digest": loaded.digest, **report.as_json()}))
    else:
        _print(loaded, report)
    return 0 if report.ok else 1


def _print(pack: BenchmarkPack, report: ControlReport) -> None:
    families = ", ".join(f"{name} {count}" for name, count in sorted(report.families.items()))
    click.echo(f"{pack.manifest.id} version {pack.manifest.version}: {report.rows} tasks ({families})")
    click.echo(f"digest {pack.digest}")
    uncontrolled = report.rows - report.controlled
    if uncontrolled:
        click.echo(f"{uncontrolled} tasks run code or ask a judge; their controls come with their verifiers")
    if report.controlled:
        rates = [f"{name!r} {count / report.controlled:.0%}" for name, count in report.constants.most_common(3)]
        click.echo(f"best constant guesses: {', '.join(rates) or 'none scores'}")
    for violation in report.violations[:SHOWN]:
        click.echo(
            f"{pack.tasks_path}:{violation.line}: task {violation.task_id}: passes without work "
            f"(control {violation.control}); make the answer impossible to reach that way"
        )
    if len(report.violations) > SHOWN:
        click.echo(f"… and {len(report.violations) - SHOWN} more (--json shows all)")
    click.echo("ok" if report.ok else f"not ok: {len(report.violations)} controls passed that must fail")
