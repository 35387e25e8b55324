"""Writes a report wherever it was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securebench.errors import ConfigError

if TYPE_CHECKING:
    from securebench.audit.report.model import Report


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where to: standard output as JSON or as a table, and files."""

    as_json: bool
    verbose: bool
    output: Path | None = None
    sarif: Path | None = None
    html: Path | None = None

    def check(self, *others: Path | None) -> None:
        """Every file, `others` too, can be written. Raises ConfigError."""
        check_destinations(self.output, self.sarif, self.html, *others)

    def files(self, report: Report, value: Mapping[str, Any]) -> None:
        """Raises ConfigError for a file that cannot be written."""
        if self.output is not None:
            write(self.output, json.dumps(value, indent=2) + "\n")
        if self.sarif is not None:
            from securebench.audit.report.sarif import sarif

            write(self.sarif, json.dumps(sarif(report), indent=2) + "\n")
        if self.html is not None:
            from securebench.audit.report.page import page

            write(self.html, page(report))

    def show(self, report: Report, value: Mapping[str, Any]) -> None:
        """Everything: the files, and standard output."""
        self.files(report, value)
        if self.as_json:
            click.echo(json.dumps(value, indent=2))
            return
        from securebench.audit.report.table import lines

        for line in lines(report, verbose=self.verbose):
            click.echo(line)


def check_destinations(*paths: Path | None) -> None:
    """Before minutes of work: every file can be written, and is none of a run's own. Raises ConfigError."""
    from securebench.records.files import is_of_a_run

    for path in filter(None, paths):
        if is_of_a_run(path):
            raise ConfigError(f"{path}: is a file of a run, which would be lost; write somewhere else")
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise ConfigError(f"{path}: cannot be written: its directory does not exist, or it is one itself")


def write(path: Path, data: str | bytes) -> None:
    """Raises ConfigError."""
    try:
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
