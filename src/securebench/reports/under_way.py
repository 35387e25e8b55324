"""Whether a run is under way on this machine."""

from __future__ import annotations

from pathlib import Path

from securebench.records.store import LOCK_FILE


def is_held(directory: Path) -> bool:
    """Whether an engine of this machine has the run's lock. Looked up, not tried: a try could keep an engine out."""
    try:
        lock = (directory / LOCK_FILE).lstat()
        rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return False
    return any(row[1:2] == ["FLOCK"] and row[5:6] and row[5].endswith(f":{lock.st_ino}") for row in rows)
