"""How long `securebench import` takes on 100,000 rows, and how much memory, from JSON lines and from Parquet.

Run: .venv/bin/python benchmarks/importing.py [rows]"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS, MEGABYTES = 60, 300
"""What 100,000 rows may take."""
TEXT = "What follows from the premises in the passage above, taken together? " * 6


def write_rows(path: Path, rows: int) -> None:
    with path.open("w") as file:
        for number in range(rows):
            worked = f"We look at {number} and add one, step by step, until nothing is left. " * 3
            row = {"question": f"{number}: {TEXT}", "answer": f"{worked}\n#### {number + 1000}"}
            file.write(json.dumps(row) + "\n")


def as_parquet(source: Path, target: Path) -> None:
    """In a process of its own, whose memory is not measured."""
    code = f"import duckdb; duckdb.sql(\"copy (select * from read_json('{source}')) to '{target}'\")"
    subprocess.run([sys.executable, "-c", code], check=True)


def measured(source: Path, target: Path) -> tuple[float, float]:
    """Seconds, and the most megabytes that the process had."""
    argv = [sys.executable, "-m", "securebench", "import", "gsm8k", str(source), "-o", str(target), "--json"]
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"import failed with status {status}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    held = True
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        lines, table = directory / "rows.jsonl", directory / "rows.parquet"
        write_rows(lines, rows)
        as_parquet(lines, table)
        for source in (lines, table):
            seconds, megabytes = measured(source, directory / source.suffix[1:])
            held &= seconds <= SECONDS and megabytes <= MEGABYTES
            size = source.stat().st_size / 2**20
            print(f"{source.name:13} {rows} rows, {size:.0f} MB: {seconds:5.1f} s, {megabytes:.0f} MB of memory")
    if rows <= 100_000 and not held:
        raise SystemExit(f"more than {SECONDS} s or {MEGABYTES} MB")


if __name__ == "__main__":
    main()
