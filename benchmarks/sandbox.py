"""What a sandbox costs, from start to result: `/bin/true` and `python3 -c pass`, plain and sandboxed, in the same run.

    .venv/bin/python benchmarks/sandbox.py [--rounds 60] [--docker-rounds 20] [--parallel 1,2,4,8] [--json]

Where a container engine answers and has the image of scripts/ci-docker: `docker run` is our one command in a container
of its own, `docker session` our one command of an open session, `docker ahead` a program that was started in one
prepared ahead (which is not timed), from its first input to its result; `client run` (`docker run --rm`) and
`client exec` (`docker exec`) are the bare client without any walls of ours, to compare with.

The targets: bubblewrap adds at most 15 ms to the median of a plain process; a container prepared ahead costs at most a
half of a bare `docker run` of the same moment.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from securebench._proc import run_tool
from securebench.sandboxes._docker.client import Client, find_client
from securebench.sandboxes.ahead import PreparedAhead, prepared_ahead
from securebench.sandboxes.base import (
    ISOLATED,
    Command,
    Guarantee,
    HostRoot,
    ImageRoot,
    Limits,
    Root,
    Sandbox,
    SandboxSpec,
    Scratch,
    run_once,
)
from securebench.sandboxes.bubblewrap import BubblewrapSandbox
from securebench.sandboxes.docker import DockerSandbox
from securebench.sandboxes.guarded import GuardedSandbox

PROGRAMS = {"true": ("/bin/true",), "python": ("/usr/bin/python3", "-I", "-c", "pass")}
WAITING = {"true": ("/bin/cat",), "python": ("/usr/bin/python3", "-I", "-c", "import sys; sys.stdin.read()")}
TARGET_MS = 15.0
TARGET_RATIO = 0.5
IMAGE = "securebench-base:test"
WARM_UP = 3
DOCKER_JOBS = 12  # per width; each takes about half a second
COMPARED = {"docker run": "client run", "docker session": "client exec", "docker ahead": "client run"}

Job = Callable[[], Awaitable[None]]
READY: dict[str, Job] = {}
"""What is done before a job, untimed."""


def plain(argv: tuple[str, ...]) -> Job:
    async def job() -> None:
        assert (await run_tool(argv, 60)).ok

    return job


def sandboxed(
    sandbox: Sandbox,
    argv: tuple[str, ...],
    *mounts: Scratch,
    root: Root | None = None,
    require: frozenset[Guarantee] = ISOLATED,
) -> Job:
    spec = SandboxSpec(root=root or HostRoot(), mounts=mounts, require=require, limits=Limits(wall_seconds=60))

    async def job() -> None:
        assert (await run_once(sandbox, spec, Command(argv))).ok

    return job


async def embedded() -> dict[str, Job]:
    sandbox = BubblewrapSandbox()
    if not (await sandbox.probe()).usable:
        print("bubblewrap: not usable here", file=sys.stderr)
        return {}
    jobs = {}
    for program, argv in PROGRAMS.items():
        jobs[f"{program} bubblewrap"] = sandboxed(sandbox, argv)
        jobs[f"{program} bubblewrap+scratch"] = sandboxed(sandbox, argv, Scratch("/work"))
        jobs[f"{program} guarded"] = sandboxed(GuardedSandbox(), argv, require=frozenset())
    return jobs


@asynccontextmanager
async def containers(image: str) -> AsyncIterator[dict[str, Job]]:
    """The jobs that need an engine; none where it does not answer, or has not the image."""
    sandbox, root = DockerSandbox(), ImageRoot(image)
    if not await sandbox.offers(root) or not (await sandbox.probe()).usable:
        print(f"docker: not usable here, or has no {image} (scripts/ci-docker)", file=sys.stderr)
        yield {}
        return
    client, name = find_client(), f"securebench-benchmark-{os.getpid()}"
    spec = SandboxSpec(root=root, mounts=(Scratch("/work"),), limits=Limits(wall_seconds=60))
    async with sandbox.open(spec) as session, _idle(client, image, name), prepared_ahead(sandbox) as standing:

        def in_session(argv: tuple[str, ...]) -> Job:
            async def job() -> None:
                assert (await session.run(Command(argv))).ok

            return job

        jobs = {}
        for program, argv in PROGRAMS.items():
            run = (client.binary, "run", "--rm", "--pull=never", "--network=none", image, *argv)
            jobs[f"{program} docker run"] = sandboxed(sandbox, argv, root=root)
            jobs[f"{program} docker session"] = in_session(argv)
            jobs[f"{program} docker ahead"] = from_ahead(standing, root, WAITING[program], f"{program} docker ahead")
            jobs[f"{program} client run"] = plain(run)
            jobs[f"{program} client exec"] = plain((client.binary, "exec", name, *argv))
        yield jobs


def from_ahead(standing: PreparedAhead, root: Root, argv: tuple[str, ...], name: str) -> Job:
    spec = SandboxSpec(root=root, limits=Limits(wall_seconds=60))

    async def ready() -> None:
        await standing.prepare(spec, Command(argv, waits=True))
        await anyio.sleep(0.3)  # a daemon goes on working after each container

    async def job() -> None:
        ours, theirs = socket.socketpair()
        ours.send(b"input")
        ours.close()
        async with standing.open(spec) as session:
            assert (await session.run(Command(argv, channels={0: theirs, 1: theirs}, waits=True))).started

    READY[name] = ready
    return job


@asynccontextmanager
async def _idle(client: Client, image: str, name: str) -> AsyncIterator[None]:
    """A container to execute things in."""
    words = ["run", "--detach", "--pull=never", "--network=none", "--init", f"--name={name}", image, "sleep", "3600"]
    await client.ask("starting a container", words)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await client.ask("removing a container", ["rm", "--force", name])


async def latencies(jobs: dict[str, Job], rounds: int) -> dict[str, list[float]]:
    """Milliseconds per job. Interleaved, so that a busy moment of the machine hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(-WARM_UP, rounds):
        for name, job in jobs.items():
            if name in READY:
                await READY[name]()
            began = time.perf_counter()
            await job()
            if turn >= 0:
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


async def rates_of(jobs: dict[str, Job], widths: list[int], count: int) -> dict[str, dict[str, float]]:
    return {
        name: {str(width): round(await throughput(job, width, count), 1) for width in widths}
        for name, job in jobs.items()
        if name.startswith("true") and not name.endswith(("session", "ahead"))  # one at a time; not sustained
    }


async def measure(rounds: int, docker_rounds: int, widths: list[int], image: str) -> dict[str, Any]:
    light = {f"{program} plain": plain(argv) for program, argv in PROGRAMS.items()} | await embedded()
    times = await latencies(light, rounds)
    rates = await rates_of(light, widths, max(20, rounds // 2))
    # Apart: a daemon goes on working after each container, which would be counted on whatever comes next.
    async with containers(image) as heavy:
        times |= await latencies(heavy, docker_rounds)
        rates |= await rates_of(heavy, widths, DOCKER_JOBS)
    rows = {name: row(values, times[f"{name.split()[0]} plain"]) for name, values in times.items()}
    against = {
        f"{program} {ours} / {theirs}": round(
            rows[f"{program} {ours}"]["median_ms"] / rows[f"{program} {theirs}"]["median_ms"], 2
        )
        for program in PROGRAMS
        for ours, theirs in COMPARED.items()
        if f"{program} {ours}" in rows
    }
    return {"latency": rows, "against_bare_client": against, "jobs_per_second": rates}


def row(values: list[float], base: list[float]) -> dict[str, float]:
    deciles, median, plainly = statistics.quantiles(values, n=10), statistics.median(values), statistics.median(base)
    return {
        "rounds": len(values),
        "median_ms": round(median, 2),
        "p10_ms": round(deciles[0], 2),
        "p90_ms": round(deciles[-1], 2),
        "added_ms": round(median - plainly, 2),
        "ratio": round(median / plainly, 2),
    }


def show(result: dict[str, Any]) -> None:
    print(f"{'':28}{'median':>9}{'p10':>9}{'p90':>9}{'added':>9}{'ratio':>8}{'rounds':>8}")
    rows = result["latency"]
    for name, values in rows.items():
        shown = "".join(f"{values[key]:>9.2f}" for key in ("median_ms", "p10_ms", "p90_ms", "added_ms"))
        print(f"{name:28}{shown}{values['ratio']:>8.2f}{values['rounds']:>8}")
    for name, ratio in result["against_bare_client"].items():
        print(f"{name}: {ratio:.2f}")
    print("\njobs per second, by jobs in flight")
    for name, rates in result["jobs_per_second"].items():
        print(f"{name:28}" + "  ".join(f"{width}: {rate:.1f}" for width, rate in rates.items()))
    added = rows.get("true bubblewrap", {}).get("added_ms")
    if added is not None:
        verdict = met(added <= TARGET_MS)
        ratio = rows["true bubblewrap"]["ratio"]
        print(f"\nbubblewrap adds {added:.1f} ms to a plain process ({ratio:.1f} times it); ", end="")
        print(f"target {TARGET_MS:.0f} ms: {verdict}")
    ratio = result["against_bare_client"].get("true docker ahead / client run")
    if ratio is not None:
        print(f"a container prepared ahead costs {ratio:.2f} of `docker run`; ", end="")
        print(f"target {TARGET_RATIO:g}: {met(ratio <= TARGET_RATIO)}")


def met(it: bool) -> str:
    return "met" if it else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--docker-rounds", type=int, default=20)
    parser.add_argument("--parallel", default="1,2,4,8")
    parser.add_argument("--image", default=IMAGE)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    widths = [int(width) for width in arguments.parallel.split(",")]
    result = anyio.run(measure, arguments.rounds, arguments.docker_rounds, widths, arguments.image)
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
