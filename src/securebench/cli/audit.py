"""`securebench audit`: does every wall stand on this host, with the backend that would be used?"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from securebench.audit.result import AuditResult

LEVELS = ("auto", "guard", "bubblewrap", "docker")


@click.command()
@click.option(
    "--isolation",
    "level",
    type=click.Choice(LEVELS),
    default="auto",
    show_default=True,
    help="The level to look at; auto is the one that would be used.",
)
@click.option("--verbose", is_flag=True, help="Show the rows that passed too.")
@click.option("--json", "as_json", is_flag=True, help="Print every row as JSON.")
def command(level: str, verbose: bool, as_json: bool) -> int:
    """Try, harmlessly, everything a stranger's program must not be able to do, and see that it fails.

    The guard, the kernel's walls inside the process and the backend are looked at together and each alone, then the
    limits, the command line and, in a source checkout, CI. A check that cannot be made has not passed. Exit 1 if one
    did not pass. The same checks run before every `run` and `exec`."""
    import anyio

    from securebench.audit.run import audit_level
    from securebench.cli import app

    async def audited() -> AuditResult:
        return await audit_level(level, app=app)

    result = anyio.run(audited)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        _print(result, verbose)
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
