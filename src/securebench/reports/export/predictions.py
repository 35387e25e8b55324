"""A run as predictions for SWE-bench: one JSON object per line, of one attempt at each task that collects a patch."""

from __future__ import annotations

from collections.abc import Iterator

from securebench import _json
from securebench.reports.export.attempts import PATCHES, attempts_of, model_of
from securebench.reports.runs import Run


def prediction_lines(run: Run, attempt: int) -> Iterator[str]:
    """Of this attempt at each task, since SWE-bench takes one. `model_patch` is null where nothing was judged."""
    model = model_of(run)
    for one in attempts_of(run, lambda row: row.family == PATCHES and row.attempt == attempt):
        line = {"instance_id": one.row.task_id, "model_name_or_path": one.row.model or model, "model_patch": one.patch}
        yield _json.dumps_ascii(line) + "\n"
