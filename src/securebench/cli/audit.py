"""`securebench audit`: does every wall stand on this host, does every attack fail, is a pack worth its score?"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from securebench.audit.result import AuditResult
    from securebench.audit.suite.full import FullAudit
    from securebench.audit.suite.result import Row
    from securebench.cli._reports import Destinations

LEVELS = ("auto", "guard", "bubblewrap", "docker")
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True)
class _Full:
    """What `--full` may be told."""

    backends: tuple[str, ...]
    only: tuple[str, ...]
    image: str | None
    workers: int | None
    sign: Path | None
    key: str | None


@click.command()
@click.argument("pack", required=False, type=click.Path(path_type=Path))
@click.option("--full", is_flag=True, help="Play every attack of the catalogue on every backend of this host.")
@click.option(
    "--isolation",
    "level",
    type=click.Choice(LEVELS),
    help="Of the canaries: the level to look at; by default the one that would be used.",
)
@click.option("--backend", "backends", multiple=True, metavar="NAME", help="Play on this one only; may be repeated.")
@click.option("--only", multiple=True, metavar="G|G05|G05/NAME", help="Play this class, threat or attack only.")
@click.option("--image", metavar="NAME", help="The image with python3 that --full uses where it needs one.")
@click.option("--workers", type=click.IntRange(min=1), help="Attacks side by side; default: as many as cores.")
@click.option("--no-run", is_flag=True, help="Of a pack: look at its files only, execute nothing.")
@click.option("--mutants", type=click.IntRange(min=0), metavar="N", help="Of a pack: mutants of each reference.")
@click.option("--verbose", is_flag=True, help="Show the rows that are in order too.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--output", type=_FILE, metavar="FILE", help="Write the JSON there.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Write SARIF there, for code hosts.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write one page there, for people.")
@click.option("--sign", type=_FILE, metavar="FILE", help="Of --full: write a signed audit there, for run --with-audit.")
@click.option("--key", metavar="NAME", help="The key to sign with; see securebench keys.")
def command(
    pack: Path | None,
    full: bool,
    level: str | None,
    backends: tuple[str, ...],
    only: tuple[str, ...],
    image: str | None,
    workers: int | None,
    no_run: bool,
    mutants: int | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    output: Path | None,
    sarif: Path | None,
    html: Path | None,
    sign: Path | None,
    key: str | None,
) -> int:
    """Try, harmlessly, everything that must fail, and see that it does.

    Without anything: the canaries, in seconds, as before every `run` and `exec`. The guard, the kernel's walls inside
    the process and the backend are looked at together and each alone, then the limits, the command line and, in a
    source checkout, CI.

    With --full: every attack of the catalogue (docs/attacks.md) on every backend of this host, each beside an honest
    twin that must pass and a weak target that it must beat.

    With PACK (a directory, or its manifest): attacks on that pack, which nobody should be able to pass without work.

    What cannot be looked at has not passed. Exit 1 if something did not hold."""
    from securebench.cli._reports import Destinations

    used = {"--full": full, "--only": only, "--image": image, "--sign": sign, "--key": key, "--isolation": level}
    used |= {"--backend": backends, "--workers": workers, "--no-run": no_run, "--mutants": mutants is not None}
    mode = "--full" if full else "PACK" if pack is not None else "the canaries"
    allowed = {
        "--full": {"--full", "--only", "--image", "--sign", "--key", "--backend", "--workers"},
        "PACK": {"--backend", "--workers", "--no-run", "--mutants"},
        "the canaries": {"--isolation"},
    }[mode]
    wrong = [name for name, value in used.items() if value and name not in allowed]
    if full and pack is not None:
        raise click.UsageError("--full plays the catalogue and PACK audits a pack; ask for one of them")
    if wrong:
        raise click.UsageError(f"{', '.join(wrong)} cannot be used with {mode}")
    to = Destinations(as_json, verbose, output, sarif, html)
    to.check(sign)
    if full:
        return _full(_Full(backends, only, image, workers, sign, key), to, quiet or as_json)
    if pack is not None:
        return _pack(pack, backends, workers, not no_run, mutants, to, quiet or as_json)
    return _canaries(level or "auto", to)


def _canaries(level: str, to: Destinations) -> int:
    import anyio

    from securebench.audit.run import audit_level
    from securebench.cli import app

    async def audited() -> AuditResult:
        return await audit_level(level, app=app)

    result = anyio.run(audited)
    if to.output or to.sarif or to.html:
        from securebench.audit.suite.findings import canary_report

        to.files(canary_report(result), result.as_json())
    if to.as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        _print(result, to.verbose)
    return 0 if result.passed else 1


def _print(result: AuditResult, verbose: bool) -> None:
    from securebench.cli._text import visible

    for check in result.checks:
        if verbose or not check.passed:
            click.echo(visible(f"{'ok  ' if check.passed else 'FAIL'} {check.id}: {check.detail}"))
    passed = Counter(check.group.value for check in result.checks if check.passed)
    total = Counter(check.group.value for check in result.checks)
    for group, count in total.items():
        click.echo(f"{group:9} {passed[group]:3} of {count:3}")
    verdict = "passed" if result.passed else f"NOT PASSED: {len(result.failures)} of {len(result.checks)} checks"
    click.echo(f"audit of {result.level} in {result.seconds:.1f} s: {verdict}")


def _full(wish: _Full, to: Destinations, quiet: bool) -> int:
    import anyio

    from securebench.audit.suite.backends import Offered, find_backends
    from securebench.audit.suite.catalogue import load_catalogue
    from securebench.audit.suite.findings import suite_report
    from securebench.audit.suite.full import CANARIES, full_audit
    from securebench.cli import app
    from securebench.cli._suite_progress import progress
    from securebench.records.keys import load_signing_key

    catalogue = load_catalogue()
    catalogue.chosen([word for word in wish.only if word != CANARIES])  # a wrong name or key is said at once
    key = load_signing_key(wish.key) if wish.sign is not None else None
    with progress(quiet) as tell:
        failed = 0

        def step(what: str, done: int, total: int, row: Row | None) -> None:
            nonlocal failed
            failed += row is not None and not row.in_order
            tell(what, done, total, failed)

        async def audited() -> tuple[FullAudit, Offered]:
            tell("looking for backends", 0, 0, 0)
            offered = await find_backends(wish.backends, wish.image)
            at_once = wish.workers or len(os.sched_getaffinity(0))
            audit = await full_audit(
                catalogue, offered.backends, only=wish.only, at_once=at_once, app=app, on_step=step
            )
            return audit, offered

        audit, offered = anyio.run(audited)
    if key is not None and wish.sign is not None:
        from securebench.audit.suite.signed import sign_audit
        from securebench.cli._reports import write

        if key.ephemeral:
            click.echo("signed with a key that is forgotten now; `securebench keys new NAME` makes one", err=True)
        write(wish.sign, sign_audit(audit, key).data)
    to.show(suite_report(audit, catalogue, offered.missing), audit.as_json())
    return 0 if audit.passed else 1


def _pack(
    pack: Path,
    backends: tuple[str, ...],
    workers: int | None,
    run: bool,
    mutants: int | None,
    to: Destinations,
    quiet: bool,
) -> int:
    import anyio

    from securebench.audit.pack.run import MUTANTS, audit_pack
    from securebench.audit.report.data import as_json
    from securebench.audit.report.model import Report
    from securebench.cli._suite_progress import progress

    if len(backends) > 1:
        raise click.UsageError("a pack is audited on one backend")
    with progress(quiet) as tell:

        async def audited() -> Report:
            return await audit_pack(
                pack,
                backend=backends[0] if backends else "auto",
                workers=workers,
                run=run,
                mutants=MUTANTS if mutants is None else mutants,
                on_progress=lambda what, done, total: tell(what, done, total, 0),
            )

        report = anyio.run(audited)
    to.show(report, as_json(report))
    return 0 if report.passed else 1
