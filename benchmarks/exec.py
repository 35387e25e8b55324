"""What confining a program costs: an empty file and one that computes for about a second, in the same run.

    .venv/bin/python benchmarks/exec.py [--rounds 30] [--cpu-rounds 21] [--json]

`plain` is the interpreter by itself, `guard` the guard layer alone, `default` what `securebench exec` uses here; all
three with the same interpreter. The first is the time from the call to the result, the second the processor time the
program says its own loop took. `command` is the whole command line from a cold start, audit included when it is due:
for information, because most of it is our own interpreter.

The work has five shapes, because a single one says little: where an interpreter's objects happen to lie in memory
makes the same loop up to a fifth faster or slower, confined or not. What counts is their sum.

A round runs every row once, each round in another order; `ratio` and `added` are the median over rounds of the
comparison with `plain` in the same round, because the machine's own pace drifts more than the difference looked for.

The target: `default` adds at most 35 ms to the start and at most 2 % to the work.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio

from securebench._proc import run_tool
from securebench.errors import SecureBenchError
from securebench.execution.interpreter import find_interpreter
from securebench.execution.isolation import Isolation, select_isolation
from securebench.execution.request import PythonRequest
from securebench.execution.run import run_python

START_MS, WORK_PERCENT = 35.0, 2.0
WARM_UP = 2
EMPTY = b""
WORK = b"""
import json, re, time

total = 0
began = time.process_time()
for number in range(1_500_000):
    total += number * number % 7
times = [time.process_time() - began]

def arithmetic():
    total = 0
    for number in range(4_000_000):
        total += number * number % 7

def containers():
    values = {str(number): [number] * 3 for number in range(400_000)}
    return sum(map(len, values.values()))

def text():
    for _ in range(10):
        data = json.dumps([{"name": f"n{number}", "value": number / 3} for number in range(12_000)])
        json.loads(data), re.findall(r"n([0-9]+)[^,]*", data)

class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def key(self):
        return (self.y * 31 + self.x) % 1009

def objects():
    sorted((Point(number, number * 7 % 1000) for number in range(250_000)), key=Point.key)

for work in (arithmetic, containers, text, objects):
    began = time.process_time()
    work()
    times.append(time.process_time() - began)
print(*times)
"""
SHAPES = ("module level", "arithmetic", "containers", "text", "objects")


Job = Callable[[], Awaitable[bytes]]
T = TypeVar("T")


def plain(program: bytes, folder: Path) -> Job:
    path = folder / f"{len(program)}.py"
    path.write_bytes(program)
    argv = (find_interpreter().program, str(path))

    async def job() -> bytes:
        done = await run_tool(argv, 120)
        assert done.ok, done.stderr
        return done.stdout

    return job


def confined(program: bytes, isolation: Isolation) -> Job:
    request = PythonRequest(program)

    async def job() -> bytes:
        result = await run_python(request, isolation)
        assert result.ok, result
        return result.stdout.data

    return job


def command(folder: Path) -> Job:
    path = folder / "empty.py"
    path.write_bytes(EMPTY)

    async def job() -> bytes:
        done = await run_tool((sys.executable, "-m", "securebench", "exec", str(path)), 120)
        assert done.ok, done.stderr
        return done.stdout

    return job


async def levels() -> dict[str, Isolation]:
    """The levels this host offers, by the name they have in the table."""
    found = {}
    for name, level in (("guard", "guard"), ("default", "auto")):
        try:
            found[name] = await select_isolation(level)
        except SecureBenchError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
    return found


async def interleaved(jobs: dict[str, Job], rounds: int, value: Callable[[float, bytes], T]) -> dict[str, list[T]]:
    """`value(milliseconds, output)` per job; in turns, so that a busy moment of the machine hits all alike."""
    times: dict[str, list[T]] = {name: [] for name in jobs}
    names = list(jobs)
    for turn in range(-WARM_UP, rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            began = time.perf_counter()
            output = await jobs[name]()
            if turn >= 0:
                times[name].append(value((time.perf_counter() - began) * 1000, output))
    return times


async def measure(rounds: int, cpu_rounds: int) -> dict[str, Any]:
    chosen = await levels()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        starts = {"plain": plain(EMPTY, folder)} | {name: confined(EMPTY, level) for name, level in chosen.items()}
        starts["command"] = command(folder)
        works = {"plain": plain(WORK, folder)} | {name: confined(WORK, level) for name, level in chosen.items()}
        start = await interleaved(starts, rounds, lambda milliseconds, _: milliseconds)
        outputs = await interleaved(
            works, cpu_rounds, lambda _, output: [float(word) * 1000 for word in output.split()]
        )
    work = {name: [sum(times) for times in rounds] for name, rounds in outputs.items()}
    shapes = {
        shape: {name: row([times[at] for times in rounds], [times[at] for times in outputs["plain"]])["ratio"]
                for name, rounds in outputs.items()}
        for at, shape in enumerate(SHAPES)
    }  # fmt: skip
    return {
        "levels": {name: level.level for name, level in chosen.items()},
        "start": {name: row(values, start["plain"]) for name, values in start.items()},
        "work": {name: row(values, work["plain"]) for name, values in work.items()},
        "shapes": shapes,
    }


def row(values: list[float], base: list[float]) -> dict[str, float]:
    pairs = list(zip(values, base, strict=True))
    return {
        "rounds": len(values),
        "median_ms": round(statistics.median(values), 2),
        "least_ms": round(min(values), 2),
        "added_ms": round(statistics.median(value - plainly for value, plainly in pairs), 2),
        "ratio": round(statistics.median(value / plainly for value, plainly in pairs), 4),
    }


def show(result: dict[str, Any]) -> None:
    for title, rows in (("empty file", result["start"]), ("computing", result["work"])):
        print(f"{title:12}{'median ms':>12}{'least ms':>12}{'added ms':>12}{'ratio':>9}{'rounds':>8}")
        for name, values in rows.items():
            shown = "".join(f"{values[key]:>12.2f}" for key in ("median_ms", "least_ms", "added_ms"))
            print(f"  {name:10}{shown}{values['ratio']:>9.3f}{values['rounds']:>8}")
    print("ratio by shape: " + "; ".join(f"{shape} {_ratios(rows)}" for shape, rows in result["shapes"].items()))
    if "default" not in result["levels"]:
        return
    added, slower = result["start"]["default"]["added_ms"], (result["work"]["default"]["ratio"] - 1) * 100
    print(f"\ndefault is {result['levels']['default']}")
    print(f"it adds {added:.1f} ms to the start; target {START_MS:.0f} ms: {_verdict(added <= START_MS)}")
    print(f"it adds {slower:.1f} % to the work; target {WORK_PERCENT:.0f} %: {_verdict(slower <= WORK_PERCENT)}")


def _ratios(rows: dict[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.3f}" for name, ratio in rows.items() if name != "plain")


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--cpu-rounds", type=int, default=21)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = anyio.run(measure, arguments.rounds, arguments.cpu_rounds)
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
