"""The trajectories of a run's attempts (ATIF), as they were kept; `extra.securebench` says which attempt each is of."""

from __future__ import annotations

from collections.abc import Iterator

from securebench import _json
from securebench.reports.export.attempts import attempts_of, file_name
from securebench.reports.runs import Run


def trajectory_files(run: Run) -> Iterator[tuple[str, str]]:
    """Name and content for every attempt that has one. Raises IntegrityError."""
    for one in attempts_of(run):
        document = one.trajectory()
        if document is not None:
            yield f"{file_name(*one.row.key)}.json", _json.dumps_ascii(document) + "\n"
