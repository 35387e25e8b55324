"""What the run engine itself costs: trivial tasks, an agent that does nothing, a verifier that compares one number.

    .venv/bin/python benchmarks/engine.py [--tasks 1000,10000] [--workers 8] [--records 2000] [--profile] [--json]

Each size is a run of its own in a process of its own, from loading the pack to the seal: processor time per task, peak
memory, and how both grow. Then the store alone: records per second with one and with 64 writers, against the same
lines written and synced one by one in the same directory.

The targets: at most 1.5 ms of processor time per task, at most 250 MB of memory however many tasks there are.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from securebench.records.store import RecordStore
from securebench.tester_config import load_tester_config
from securebench.tester_run import run_tester_config

TARGET_MS = 1.5
TARGET_MB = 250.0
WRITERS = (1, 8, 64)
START = "sha256:" + "0" * 64


def write_pack(directory: Path, tasks: int) -> Path:
    """A pack of questions, and a tester file whose agent answers all of them alike."""
    with (directory / "tasks.jsonl").open("w") as file:
        for number in range(tasks):
            row = {
                "id": f"task-{number:06}",
                "family": "short_answer",
                "input": {"question": f"What is 6 * 7 + {number}?"},
            }
            file.write(json.dumps(row | {"eval": {"accepted_answers": [42 + number]}}) + "\n")
    (directory / "manifest.yaml").write_text("id: engine-benchmark\nversion: 1\n")
    tester = {
        "schema_version": "0.3",
        "run": {"id": "engine-benchmark", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "constant", "config": {"response": "42"}},
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    return directory / "tester.yaml"


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def one_run(config: Path, workers: int, profile: bool) -> dict[str, float]:
    """In this process, which has done nothing else."""
    loaded = load_tester_config(config, env={})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, used = time.perf_counter(), cpu_seconds()
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    summary = run_tester_config(loaded, workers=workers)
    profiler.disable()
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - used
    assert summary.total == summary.planned
    if profile:
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(45)
    return {
        "tasks": summary.total,
        "cpu_ms_per_task": cpu * 1000 / summary.total,
        "wall_ms_per_task": seconds * 1000 / summary.total,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before_mb": before / 1024,
    }


def run_apart(tasks: int, workers: int, profile: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="engine-benchmark-") as directory:
        config = write_pack(Path(directory), tasks)
        argv = [sys.executable, __file__, "--one", str(config), "--workers", str(workers)]
        done = subprocess.run([*argv, *["--profile"] * profile], stdout=subprocess.PIPE, check=True)
        result: dict[str, float] = json.loads(done.stdout)
        return result


def marginal(small: dict[str, float], large: dict[str, float]) -> dict[str, float]:
    """What each further task costs."""
    more = large["tasks"] - small["tasks"]
    cpu = large["cpu_ms_per_task"] * large["tasks"] - small["cpu_ms_per_task"] * small["tasks"]
    return {"cpu_ms": cpu / more, "kb": (large["peak_mb"] - small["peak_mb"]) * 1024 / more}


def a_record(directory: Path) -> dict[str, Any]:
    """A real one."""
    config = write_pack(directory, 1)
    run_tester_config(load_tester_config(config, env={}))
    record: dict[str, Any] = json.loads((directory / "out" / "candidates.jsonl").read_text())
    del record["previous"]
    return record


async def appended(directory: Path, record: dict[str, Any], count: int, writers: int) -> float:
    """Records per second."""
    left = iter(range(count))
    with RecordStore(directory / f"store-{writers}") as store:
        store.begin(START)

        async def writer() -> None:
            for _ in left:
                await store.append(record)

        began = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(writers):
                tasks.start_soon(writer)
        return count / (time.perf_counter() - began)


def synced_one_by_one(directory: Path, record: dict[str, Any], count: int) -> float:
    """Records per second without any code of ours: encode, write, sync."""
    descriptor = os.open(directory / "plain.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        began = time.perf_counter()
        for _ in range(count):
            os.write(descriptor, (json.dumps(record) + "\n").encode())
            os.fsync(descriptor)
        return count / (time.perf_counter() - began)
    finally:
        os.close(descriptor)


def store_rates(count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="engine-benchmark-") as name:
        directory = Path(name)
        record = a_record(directory)
        plain = synced_one_by_one(directory, record, max(50, count // 4))
        rates = {writers: anyio.run(appended, directory, record, count, writers) for writers in WRITERS}
        return {
            "record_bytes": len(json.dumps(record)),
            "one_fsync_each": plain,
            "rates": {str(writers): rate for writers, rate in rates.items()},
            "ratios": {str(writers): rate / plain for writers, rate in rates.items()},
        }


def show(result: dict[str, Any]) -> None:
    print(f"{'tasks':>8}{'CPU ms/task':>14}{'wall ms/task':>14}{'peak MB':>10}{'loaded MB':>11}")
    for row in result["runs"]:
        figures = f"{row['cpu_ms_per_task']:>14.3f}{row['wall_ms_per_task']:>14.3f}{row['peak_mb']:>10.1f}"
        print(f"{row['tasks']:>8}{figures}{row['before_mb']:>11.1f}")
    if further := result.get("further"):
        print(f"each further task: {further['cpu_ms']:.3f} ms, {further['kb']:.2f} KB")
    store = result["store"]
    print(f"\nrecords/s ({store['record_bytes']} bytes each), against one sync per record")
    print(f"{'plain':>10}{store['one_fsync_each']:>12.0f}{1:>8.2f} x")
    for writers, rate in store["rates"].items():
        print(f"{writers + ' at once':>10}{rate:>12.0f}{store['ratios'][writers]:>8.2f} x")
    last = result["runs"][-1]
    for name, value, target, unit in (
        ("engine overhead", last["cpu_ms_per_task"], TARGET_MS, "ms per task"),
        ("peak memory", last["peak_mb"], TARGET_MB, "MB"),
    ):
        print(f"{name}: {value:.2f} {unit}; target {target:g}: {'met' if value <= target else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="1000,10000")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--profile", action="store_true", help="show where the time of each run goes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(one_run(arguments.one, arguments.workers, arguments.profile)))
        return
    sizes = [int(size) for size in arguments.tasks.split(",")]
    runs = [run_apart(size, arguments.workers, arguments.profile) for size in sizes]
    result: dict[str, Any] = {"runs": runs, "store": store_rates(arguments.records)}
    if len(runs) > 1:
        result["further"] = marginal(runs[0], runs[-1])
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
