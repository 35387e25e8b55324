"""Runs that a command was given, read and checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from securebench.reports.runs import Run


def read_runs(paths: Iterable[Path]) -> tuple[Run, ...]:
    """The runs at or beneath these paths. Raises ConfigError where there is none, IntegrityError for what is none of
    ours."""
    from securebench.cli._trust import trusted_keys
    from securebench.reports.runs import load_runs

    return load_runs(paths, trusted_keys())


def warn_of_runs(runs: Iterable[Run]) -> None:
    """Say of every run that does not verify that it does not, or has not ended."""
    from securebench.cli._text import visible, without_orders

    for run in runs:
        if not run.verification.ok:
            what = "has not ended and is not sealed" if run.unfinished else "does not verify"
            told = f"warning: {run.directory} {what}; `securebench verify` says why"
            click.echo(without_orders(visible(told)), err=True)
