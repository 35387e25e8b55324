"""What `run` and `grade` have in common: which tasks, how to show it, what proof to attach, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from securebench.records.summary import TesterRunSummary

Decorated = Callable[..., Any]

_SELECTION = (
    click.option("--task", "tasks", multiple=True, metavar="ID", help="Only this task; also a pattern: 'math/*'."),
    click.option("--tag", "tags", multiple=True, help="Only tasks with this in metadata.tags; repeated: any of them."),
    click.option("--limit", type=click.IntRange(min=0), help="Only the first N of the tasks; the summary says so."),
)
_SHOWING = (
    click.option("--quiet", is_flag=True, help="No progress, only the result."),
    click.option(
        "--progress", type=click.Choice(["auto", "plain", "json"]), default="auto", help="How to show it on stderr."
    ),
    click.option(
        "--with-audit",
        is_flag=False,
        flag_value="",
        metavar="[FILE]",
        help="Attach signed proof that this host withstood the attack suite: played now, or an audit made by --sign.",
    ),
    click.option("--unsafe", is_flag=True, help="UNSAFE: go without the audit of the walls; every record says so."),
    click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
)


def selection(command: Decorated) -> Decorated:
    """Adds `tasks`, `tags` and `limit`."""
    return _with(_SELECTION, command)


def showing(command: Decorated) -> Decorated:
    """Adds `quiet`, `progress`, `with_audit`, `unsafe` and `as_json`."""
    return _with(_SHOWING, command)


def _with(options: tuple[Callable[[Decorated], Decorated], ...], command: Decorated) -> Decorated:
    for option in reversed(options):
        command = option(command)
    return command


def audit_to_attach(with_audit: str | None) -> bool | Path:
    """What the option says: none, one that is played now, or one in a file."""
    return False if with_audit is None else Path(with_audit) if with_audit else True


def end_with(summary: TesterRunSummary, as_json: bool) -> int:
    """Print what came of it; the exit code."""
    from securebench.cli._summary import print_summary

    print_summary(summary, as_json)
    if summary.interrupted:
        return 130
    return 3 if summary.errors else 0
