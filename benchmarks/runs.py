"""What reading runs costs: two synthetic ones of 10,000 tasks with three attempts each, through every command.

    .venv/bin/python benchmarks/runs.py [--tasks 10000] [--attempts 3]

Each command is a process of its own: processor time, wall time, peak memory. Reading and checking the records is most
of it; the target is 15 seconds of processor time and 500 MB for two runs of that size.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from securebench.testing.synthetic_run import SyntheticRun, write_run

TARGET_SECONDS, TARGET_MB = 15.0, 500.0
SQL = "SELECT run, family, status, avg(score), count(*) FROM records GROUP BY ALL ORDER BY ALL"


def commands(first: str, second: str, out: str) -> dict[str, list[str]]:
    return {
        "verify, one run": ["verify", first, "--json"],
        "compare": ["compare", first, second, "--json"],
        "compare, with a page": ["compare", first, second, "--html", f"{out}/page.html", "--format", "github"],
        "gate": ["gate", second, "--max-drop-from", first, "1", "--json"],
        "query": ["query", SQL, first, second, "--json"],
        **{f"export {end}": ["export", first, second, "-o", f"{out}/out.{end}"] for end in ("csv", "parquet", "xml")},
        "export sarif": ["export", first, second, "-o", f"{out}/out.sarif"],
    }


def measured(arguments: list[str]) -> tuple[float, float, float]:
    """Processor seconds, wall seconds, peak MB."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "securebench", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--attempts", type=int, default=3)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="runs-benchmark-") as name:
        place, made = Path(name), []
        for run_id, skill in (("first", 1.0), ("second", 1.03)):
            run = SyntheticRun(run_id, wanted.tasks, wanted.attempts, skill=skill, transcripts=0.0)
            made.append(str(write_run(place / run_id, run)))
        print(f"{'':24}{'CPU s':>8}{'wall s':>8}{'peak MB':>10}")
        worst = [0.0, 0.0]
        for title, arguments in commands(*made, name).items():
            seconds, wall, memory = measured(arguments)
            worst = [max(worst[0], seconds), max(worst[1], memory)]
            print(f"{title:24}{seconds:8.1f}{wall:8.1f}{memory:10.0f}")
        met = "met" if worst[0] <= TARGET_SECONDS and worst[1] <= TARGET_MB else "MISSED"
        print(f"most: {worst[0]:.1f} s, {worst[1]:.0f} MB; target {TARGET_SECONDS:g} s, {TARGET_MB:g} MB: {met}")


if __name__ == "__main__":
    main()
