"""The files of a run directory, by name."""

from __future__ import annotations

from pathlib import Path

from securebench.records.events import EVENTS_FILE
from securebench.records.plan import PLAN_FILE
from securebench.records.seal import BUNDLE_FILE, CHECKPOINTS_FILE, SEAL_FILE
from securebench.records.store import RECORDS_FILE
from securebench.records.summary import SUMMARY_FILE

MARKS = (PLAN_FILE, RECORDS_FILE, SEAL_FILE)
"""What shows that a directory is one."""

RUN_FILES = (*MARKS, SUMMARY_FILE, CHECKPOINTS_FILE, BUNDLE_FILE, EVENTS_FILE)
RUN_DIRECTORIES = ("candidates", "audits")


def is_of_a_run(path: Path) -> bool:
    """Whether a file is there that belongs to a run, whatever links lead to it."""
    if not path.exists():
        return False
    real = path.resolve()
    if real.name in RUN_FILES and any((real.parent / name).exists() for name in MARKS):
        return True
    within = [place for place in real.parents if place.name in RUN_DIRECTORIES]
    return any((place.parent / name).exists() for place in within for name in MARKS)
