"""Canaries for the limits that end a program: each in a child of its own, judged by how it was seen to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from securebench.execution.request import PythonLimits, PythonResult
from securebench.sandboxes.base import MIB, Outcome

THROUGH = b"through"


@dataclass(frozen=True, slots=True)
class LimitCanary:
    """A program that reaches for more than its limits, and the end it must come to."""

    program: str
    limits: PythonLimits
    outcome: Outcome

    def verdict(self, result: PythonResult) -> tuple[bool, str]:
        """Whether the limit held, and what was seen."""
        stopped = THROUGH not in result.stdout.data
        used = "?" if result.cpu_seconds is None else f"{result.cpu_seconds:.2f}"
        seen = f"{result.outcome.value} after {result.wall_seconds:.2f} s, processor {used} s, signal {result.signal}"
        return stopped and result.outcome is self.outcome, seen


_PRINT = f"print({THROUGH.decode()!r}, flush=True)\n"

LIMIT_CANARIES: Mapping[str, LimitCanary] = {
    "memory": LimitCanary(
        "held = bytearray(384 << 20)\nfor i in range(0, len(held), 4096): held[i] = 1\n" + _PRINT,
        PythonLimits(timeout=60, memory=96 * MIB),
        Outcome.OUT_OF_MEMORY,
    ),
    "cpu": LimitCanary(
        "import time\nwhile time.process_time() < 4: pass\n" + _PRINT,
        PythonLimits(timeout=60, cpu_seconds=1),
        Outcome.CPU_LIMIT,
    ),
    "wall": LimitCanary("import time\ntime.sleep(4)\n" + _PRINT, PythonLimits(timeout=0.5), Outcome.TIMEOUT),
    "output": LimitCanary(
        "import sys\nfor _ in range(64): sys.stdout.write('x' * 65536)\n" + _PRINT,
        PythonLimits(timeout=60, output=64 * 1024),
        Outcome.OUTPUT_LIMIT,
    ),
}

ORPHAN = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        for fd in (0, 1, 2): os.close(fd)\n"
    "        time.sleep(60)\n"
    "    os._exit(0)\n"
    "os.wait()\n"
    "print('forked', flush=True)\n"
)
"""Leaves a daemon behind: forked twice, in a session of its own, holding none of our pipes."""
