"""`securebench validate`: is this pack sound, and does it refuse answers without work?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securebench.audit.pack.controls import ControlReport
from securebench.benchmark_pack import BenchmarkPack

if TYPE_CHECKING:
    from securebench.audit.pack.trials import Trial, TrialReport

SHOWN = 20


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--no-run", is_flag=True, help="Do not run the trials of tasks that execute code.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def command(pack: Path, as_json: bool, no_run: bool, quiet: bool) -> int:
    """Check PACK (a directory, or its manifest), and that answers without work do not score on it.

    Every problem of every file is reported with file, line and field (exit 2). Then each text task gets the negative
    controls: empty, shape-only, echo of the question, all options at once. Each task that executes code is tried in
    sandboxes: doing nothing must fail, the reference solution must pass, every mutant must fail. What comes out
    otherwise is a fault of the pack (exit 1), and so is an admission of `securebench import` that is about another
    pack."""
    from securebench.audit.pack.controls import load_with_controls
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
    admission = _admission(loaded)
    trials = None if no_run else _try(loaded, quiet or as_json)
    ok = report.ok and (trials is None or trials.ok)
    if as_json:
        value = {"ok": ok, "id": loaded.manifest.id, "digest": loaded.digest, **report.as_json(), **admission}
        click.echo(json.dumps(value | ({} if trials is None else trials.as_json())))
    else:
        _print(loaded, report, trials)
        if admission:
            said = admission["admission"]
            click.echo(f"admission: {said['admitted']} of {said['rows']} rows, signed by {said['key'] or 'nobody'}")
    return 0 if ok else 1


def _admission(pack: BenchmarkPack) -> dict[str, Any]:
    """What the admission beside the pack says, where there is one. Raises IntegrityError for one that is not true."""
    from securebench.records.admissions import load_admission

    stored = load_admission(pack.directory, pack.digest)
    if stored is None:
        return {}
    key = stored.key
    whose = None if key is None else f"{key.id}{' (forgotten)' if key.ephemeral else ''}"
    return {"admission": {**stored.admission.counts, "key": whose}}


def _try(pack: BenchmarkPack, quiet: bool) -> TrialReport | None:
    from securebench.audit.pack.trials import runs_code, try_pack

    if not runs_code(pack):
        return None
    import anyio

    done = 0

    def show(trial: Trial) -> None:
        nonlocal done
        done += 1
        if not quiet:
            click.echo(f"{done}: {trial.task_id}, {trial.name}: {trial.outcome}", err=True)

    return anyio.run(try_pack, pack, show)


def _print(pack: BenchmarkPack, report: ControlReport, trials: TrialReport | None) -> None:
    families = ", ".join(f"{name} {count}" for name, count in sorted(report.families.items()))
    click.echo(f"{pack.manifest.id} version {pack.manifest.version}: {report.rows} tasks ({families})")
    click.echo(f"digest {pack.digest}")
    uncontrolled = report.rows - report.controlled
    if uncontrolled:
        click.echo(f"{uncontrolled} tasks run code or ask a judge")
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
    broken = [] if trials is None else trials.broken
    if trials is not None:
        _print_trials(pack, trials)
    if report.ok and not broken:
        click.echo("ok")
    else:
        click.echo(f"not ok: {len(report.violations)} controls and {len(broken)} trials came out as they must not")


def _print_trials(pack: BenchmarkPack, trials: TrialReport) -> None:
    lines = {entry.id: entry.line for entry in pack.entries}
    click.echo(f"{len(trials.trials)} trials in sandboxes, {len(trials.broken)} not as they must be")
    for trial in trials.broken[:SHOWN]:
        wanted = "must pass" if trial.must_pass else "must fail"
        click.echo(
            f"{pack.tasks_path}:{lines[trial.task_id]}: task {trial.task_id}: {trial.name} {wanted}, but was "
            f"{trial.outcome}" + (f": {trial.message.strip()[:300]}" if trial.message else "")
        )
    if len(trials.broken) > SHOWN:
        click.echo(f"… and {len(trials.broken) - SHOWN} more (--json shows all)")
    if trials.without_reference:
        click.echo(
            f"{len(trials.without_reference)} tasks have no reference solution, so nothing shows they can be solved"
        )
