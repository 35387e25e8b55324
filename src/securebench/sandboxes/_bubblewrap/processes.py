"""What the processes of a sandbox use, read from /proc, for hosts without control groups. Sampled, so not exact."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """The sum over a process and its descendants; processor time includes children that were waited for."""

    cpu_seconds: float
    resident: int
    processes: int


def sample(roots: list[int]) -> Sample:
    """Look at these processes and everything beneath them; what has ended meanwhile is left out."""
    cpu, resident, seen = 0, 0, 0
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
            threads = list(Path(f"/proc/{pid}/task").iterdir())
            children = " ".join((thread / "children").read_text() for thread in threads)
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        cpu += sum(int(field) for field in fields[11:15])  # utime, stime, cutime, cstime
        resident += int(fields[21])
        seen += 1
        waiting += [int(child) for child in children.split()]
    return Sample(cpu / _TICKS, resident * _PAGE, seen)
