"""What a sandbox costs, from start to result: `/bin/true` and `python3 -c pass`, plain and sandboxed, in the same run.

    .venv/bin/python benchmarks/sandbox.py [--rounds 60] [--parallel 1,2,4,8] [--json]

The target: bubblewrap adds at most 15 ms to the median of a plain process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import anyio

from securebench._proc import run_tool
from securebench.sandboxes.base import Command, Limits, Sandbox, SandboxSpec, Scratch, run_once
from securebench.sandboxes.select import BACKENDS, make_sandbox

PROGRAMS = {"true": ("/bin/true",), "python": ("/usr/bin/python3", "-I", "-c", "pass")}
TARGET_MS = 15.0

Job = Callable[[], Awaitable[None]]


def plain(argv: tuple[str, ...]) -> Job:
    async def job() -> None:
        assert (await run_tool(argv, 30)).ok

    return job


def sandboxed(sandbox: Sandbox, argv: tuple[str, ...], *mounts: Scratch) -> Job:
    spec = SandboxSpec(mounts=mounts, limits=Limits(wall_seconds=30))

    async def job() -> None:
        assert (await run_once(sandbox, spec, Command(argv))).ok

    return job


async def latencies(jobs: dict[str, Job], rounds: int) -> dict[str, list[float]]:
    """Milliseconds per job. Interleaved, so that a busy moment of the machine hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 3):
        for name, job in jobs.items():
            began = time.perf_counter()
            await job()
            if turn >= 3:
                times[name].append((time.perf_counter() - began) * 1000)
    return times


async def throughput(job: Job, width: int, count: int) -> float:
    """Jobs per second with `width` in flight."""
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await job()

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(width):
            tasks.start_soon(worker)
    return count / (time.perf_counter() - began)


async def measure(rounds: int, widths: list[int]) -> dict[str, object]:
    jobs: dict[str, Job] = {}
    for program, argv in PROGRAMS.items():
        jobs[f"{program} plain"] = plain(argv)
    for name in BACKENDS:
        sandbox = make_sandbox(name)
        if not (await sandbox.probe()).usable:
            print(f"{name}: not usable here", file=sys.stderr)
            continue
        for program, argv in PROGRAMS.items():
            jobs[f"{program} {name}"] = sandboxed(sandbox, argv)
            jobs[f"{program} {name}+scratch"] = sandboxed(sandbox, argv, Scratch("/work"))
    times = await latencies(jobs, rounds)
    rows = {}
    for name, values in times.items():
        base = statistics.median(times[f"{name.split()[0]} plain"])
        deciles = statistics.quantiles(values, n=10)
        median = statistics.median(values)
        rows[name] = {
            "median_ms": round(median, 2),
            "p10_ms": round(deciles[0], 2),
            "p90_ms": round(deciles[-1], 2),
            "added_ms": round(median - base, 2),
            "ratio": round(median / base, 2),
        }
    rates = {
        name: {str(width): round(await throughput(job, width, max(20, rounds // 2)), 1) for width in widths}
        for name, job in jobs.items()
        if name.startswith("true")
    }
    return {"latency": rows, "jobs_per_second": rates}


def show(result: dict[str, object]) -> None:
    print(f"{'':28}{'median':>9}{'p10':>9}{'p90':>9}{'added':>9}{'ratio':>8}")
    rows = result["latency"]
    assert isinstance(rows, dict)
    for name, row in rows.items():
        print(
            f"{name:28}" + "".join(f"{row[key]:>9.2f}" for key in ("median_ms", "p10_ms", "p90_ms", "added_ms")), end=""
        )
        print(f"{row['ratio']:>8.2f}")
    print("\njobs per second, by jobs in flight")
    rates = result["jobs_per_second"]
    assert isinstance(rates, dict)
    for name, row in rates.items():
        print(f"{name:28}" + "  ".join(f"{width}: {rate:.0f}" for width, rate in row.items()))
    added = rows.get("true bubblewrap", {}).get("added_ms")
    if added is not None:
        verdict = "met" if added <= TARGET_MS else "MISSED"
        print(f"\nbubblewrap adds {added:.1f} ms to a plain process; target {TARGET_MS:.0f} ms: {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--parallel", default="1,2,4,8")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    widths = [int(width) for width in arguments.parallel.split(",")]
    result = anyio.run(measure, arguments.rounds, widths)
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
