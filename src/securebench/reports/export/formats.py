"""Every format that runs can be written in, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from securebench import _json
from securebench.reports.export.findings import findings
from securebench.reports.export.harbor_job import job_files
from securebench.reports.export.inspect_log import log_pieces
from securebench.reports.export.junit import junit_lines
from securebench.reports.export.predictions import prediction_lines
from securebench.reports.export.trajectories import trajectory_files
from securebench.reports.runs import Run
from securebench.reports.sheets import csv_lines
from securebench.reports.tables import Table

TEXTS = ("csv", "jsonl", "junit", "sarif")
BY_TABLE = ("csv", "jsonl", "parquet")
"""Formats that hold one table; the others hold attempts."""
OF_ONE_RUN = ("atif", "inspect", "swebench")
"""Formats of other people's runs, each of one run. Texts in them are exact, and spelt in ASCII."""


def export_text(runs: Sequence[Run], style: str, table: Table) -> Iterator[str]:
    """The file in pieces, for every format of `TEXTS`."""
    if style == "csv":
        yield from csv_lines([column.name for column in table.columns], table.rows(runs))
    elif style == "jsonl":
        names = [column.name for column in table.columns]
        for row in table.rows(runs):
            yield _json.dumps(dict(zip(names, map(_plain, row), strict=True))) + "\n"
    elif style == "junit":
        yield from junit_lines(runs)
    else:
        yield from findings(runs).pieces()


def run_text(run: Run, style: str, attempt: int = 1) -> Iterator[str]:
    """One run in pieces, for every format of `OF_ONE_RUN`; `attempt` is about predictions."""
    if style == "inspect":
        yield from log_pieces(run)
    elif style == "swebench":
        yield from prediction_lines(run, attempt)
    else:
        yield from (content for _, content in trajectory_files(run))


def run_files(run: Run, style: str) -> Iterator[tuple[str, bytes]]:
    """One run as the files of a directory: `harbor`, or `atif`."""
    if style == "harbor":
        yield from job_files(run)
    else:
        yield from ((name, content.encode()) for name, content in trajectory_files(run))


def _plain(value: Any) -> Any:
    return value.isoformat() + "Z" if isinstance(value, datetime) else value
