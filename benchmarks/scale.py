"""What carrying a run out on many machines costs its head, and how far one head goes.

    .venv/bin/python benchmarks/scale.py [--only ray,scheduler,simulation] [--rounds 3] [--nodes 1000]
        [--attempts 50000] [--full] [--profile] [--json FILE]

- `ray`: real Ray nodes on this machine. What an attempt costs more than with `--executor local` (trivial ones: a
  constant answer, judged in a sandbox), in turns, median of the rounds; and attempts per second with 1, 2 and 4 nodes,
  trivial ones and agents that sleep for a second. A node is declared with eight processors there, because sleeping
  takes none.
- `scheduler`: placing alone, with the real `Cluster` and 1,000 nodes, beside a plain limiter.
- `simulation`: no Ray, no sandbox: nodes that answer at once with vouchers they really sign, and everything of the head
  that is real: lanes, orders, placing, checking vouchers, records, journal, chain, sync, tally, seal. Records per
  second, memory along the way, time to resume. Nodes' own work is measured and taken off. What the million would take
  is extrapolated unless `--full` runs it. `--profile` names where the head's time goes, at twice the time.

Each measurement is a process of its own."""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scheduler_load import scheduler
from securebench import tester_run
from securebench.cluster import opening
from securebench.progress import Event, ProgressEvent
from securebench.tester_config import TesterConfig, load_tester_config
from securebench.tester_run import run_tester_config, with_tester_overrides
from simulated_nodes import NodeTime, simulated

TARGET_MS, MILLION = 10.0, 1_000_000
CORES = len(os.sched_getaffinity(0))
DECLARED = 8  # processors of a node whose agents sleep
PARTS = {  # functions whose whole time says what a part of the head costs; none calls another of them
    "orders": ("documents.py:produce_order", "documents.py:verify_order"),
    "placing": ("members.py:_placed", "members.py:_release"),
    "believing: parse, signature, statement": ("remote.py:_believed",),
    "record: build, scrub, encode": ("attempt.py:_record",),
    "journal": ("events.py:__call__",),
    "tally": ("summary.py:add",),
    "passing answers from links to attempts": ("talk.py:hear", "talk.py:heard"),
    "(the nodes' own)": ("simulated_nodes.py:_answer",),
}


def write_pack(directory: Path, tasks: int, attempts: int, kind: str) -> Path:
    """`kind`: trivial (judged in a sandbox), sleeping (an agent in a sandbox), or simulated (both on a node)."""
    with (directory / "tasks.jsonl").open("w") as file:
        for number in range(tasks):
            row = _question(number) if kind == "sleeping" else _function(number)
            file.write(json.dumps({"id": f"task-{number:06}", **row}) + "\n")
    (directory / "manifest.yaml").write_text("id: scale\nversion: 1\n")
    harness: dict[str, Any] = {"type": "constant", "config": {"response": "def f(x):\n    return x\n"}}
    if kind != "trivial":
        command = "sleep 1; echo 42 > answer" if kind == "sleeping" else "true"
        harness = {"type": "command", "config": {"command": command, "artifact_path": "answer"}}
    tester = {
        "schema_version": "0.3",
        "run": {"id": "scale", "output_dir": "out", "attempts": attempts},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": harness,
        "sandbox": {"memory": "256m", "backend": "bubblewrap"},
        "executor": {"type": "ray" if kind == "simulated" else "local"},
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    return directory / "tester.yaml"


def _question(number: int) -> dict[str, Any]:
    question = {"question": f"What is 42 + {number} - {number}?"}
    return {"family": "short_answer", "input": question, "eval": {"accepted_answers": [42]}}


def _function(number: int) -> dict[str, Any]:
    tests = f"def check(candidate):\n    assert candidate({number}) == {number}\n"
    return {
        "family": "code_completion",
        "input": {"prompt": "def f(x):\n", "language": "python", "entry_point": "f"},
        "eval": {"tests": {"source": "inline", "code": tests}},
    }


class Watch:
    """When the run began and ended, and memory along the way."""

    def __init__(self, total: int) -> None:
        self.began = self.ended = self.cpu = 0.0
        self._total, self._marks = total, [0.0, 0.0]
        self.written, self._every = 0, max(1, total // 10)
        self.memory: list[tuple[int, float]] = []

    def __call__(self, event: ProgressEvent) -> None:
        match event.event:
            case Event.RUN_START:
                self.began, self.cpu = time.perf_counter(), time.process_time()
            case Event.RECORD_WRITTEN:
                self.written += 1
                if self.written in (self._total // 3, self._total):
                    self._marks[self.written // self._total] = time.perf_counter()
                if self.written % self._every == 0:
                    self.memory.append((self.written, _resident_mb()))
            case Event.RUN_DONE:
                self.ended, self.cpu = time.perf_counter(), time.process_time() - self.cpu

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def rate(self) -> float:
        """Records per second after the first third, which the nodes needed to become ready."""
        return (self._total - self._total // 3) / (self._marks[1] - self._marks[0])


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


# -- Ray -------------------------------------------------------------------------------------------------------------


def on_ray(kind: str, tasks: int, nodes: int, cpus: int, rounds: int) -> dict[str, float]:
    """Attempts per second of the same pack with both executors, in turns: here, and on so many nodes. In a process of
    its own."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_USAGE_STATS_ENABLED": "0"}
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=cpus)
        found: dict[str, list[Watch]] = {"local": [], "ray": []}
        for _ in range(rounds):
            for executor, address in (("local", "local"), ("ray", cluster.address)):
                if executor == "ray" or kind == "trivial":
                    found[executor].append(_one_run(kind, tasks, address, workers=min(cpus, CORES)))
    finally:
        cluster.shutdown()
    result = {name: statistics.median(run.rate for run in runs) for name, runs in found.items() if runs}
    result["head_cpu_ms"] = statistics.median(run.cpu for run in found["ray"]) * 1000 / tasks
    return result


def _one_run(kind: str, tasks: int, executor: str, workers: int) -> Watch:
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        config = load_tester_config(write_pack(Path(name), tasks, 1, kind), env={})
        watch = Watch(tasks)
        summary = run_tester_config(with_tester_overrides(config, executor=executor), progress=watch, workers=workers)
        assert summary.passed == tasks, summary
        return watch


def ray_figures(rounds: int) -> dict[str, Any]:
    tasks = 300
    both = apart("on_ray", "trivial", tasks, 1, CORES, rounds)
    local, ray = 1000 / both["local"], 1000 / both["ray"]
    rows = []
    for nodes in (1, 2, 4):
        trivial = apart("on_ray", "trivial", tasks, nodes, CORES, 1)
        sleeping = apart("on_ray", "sleeping", DECLARED * nodes * 12, nodes, DECLARED, 1)
        rows.append(
            {
                "nodes": nodes,
                "trivial_per_s": trivial["ray"],
                "trivial_ratio": trivial["ray"] / trivial["local"],
                "sleeping_per_s": sleeping["ray"],
                "sleeping_ratio": sleeping["ray"] / (DECLARED * nodes),
            }
        )
    overhead = {"local_ms": local, "ray_ms": ray, "over_ms": ray - local, "ratio": ray / local}
    return {"attempts": tasks, "overhead": overhead | {"head_cpu_ms": both["head_cpu_ms"]}, "nodes": rows}


# -- simulation ------------------------------------------------------------------------------------------------------


def simulation(nodes: int, attempts: int, profile: bool) -> dict[str, Any]:
    """In a process of its own: a run on simulated nodes, then the time to open it again."""
    tasks = max(1, attempts // 100)
    total, spent = tasks * min(attempts, 100), NodeTime()
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        config = load_tester_config(write_pack(Path(name), tasks, min(attempts, 100), "simulated"), env={})
        opening.open_cluster = simulated(nodes, 1.0, spent)
        watch, profiler = Watch(total), cProfile.Profile(time.thread_time)
        if profile:
            profiler.enable()
        summary = run_tester_config(config, progress=watch)
        profiler.disable()
        assert summary.passed == total, summary
        lines = config.output_dir / "candidates.jsonl"
        result: dict[str, Any] = {
            "attempts": total,
            "wall_ms": watch.seconds * 1000 / total,
            "head_cpu_ms": (watch.cpu - spent.seconds) * 1000 / total,
            "nodes_cpu_ms": spent.seconds * 1000 / total,
            "record_bytes": lines.stat().st_size / total,
            "journal_bytes": (config.output_dir / "events.jsonl").stat().st_size / total,
            "memory_mb": watch.memory,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "resume_seconds": _resumed(config),
        }
        result["records_per_s"] = 1000 / result["head_cpu_ms"]
        if profile:
            result["parts_ms"] = _parts(pstats.Stats(profiler), total)
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(30)
        return result


def _resumed(config: TesterConfig) -> float:
    """Seconds until a run that was interrupted at its end goes on: everything read and checked."""
    opened: list[float] = []
    real = tester_run.open_run

    async def timed(*given: Any, **named: Any) -> Any:
        began = time.process_time()
        run = await real(*given, **named)
        opened.append(time.process_time() - began)
        return run

    tester_run.open_run = timed  # type: ignore[assignment]
    run_tester_config(config, resume=True)
    return opened[0]


def _parts(stats: pstats.Stats, total: int) -> dict[str, float]:
    """Milliseconds per attempt of the parts that have a name, by what the profile says."""
    times: dict[str, float] = {}
    for (file, _, function), (_, _, _, whole, _) in stats.stats.items():  # type: ignore[attr-defined]
        for title, names in PARTS.items():
            if f"{Path(file).name}:{function}" in names:
                times[title] = times.get(title, 0.0) + whole * 1000 / total
    return times


# -- all of it -------------------------------------------------------------------------------------------------------


def apart(what: str, *arguments: Any) -> dict[str, Any]:
    """The answer of one of these functions, from a process that has done nothing else."""
    call = json.dumps([what, *arguments])
    done = subprocess.run([sys.executable, __file__, "--one", call], stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def show(results: dict[str, Any]) -> None:
    if ray := results.get("ray"):
        over = ray["overhead"]
        print(
            f"a trivial attempt: local {over['local_ms']:.1f} ms, ray {over['ray_ms']:.1f} ms ({over['ratio']:.2f} x)"
        )
        met = "met" if over["over_ms"] <= TARGET_MS else "MISSED"
        print(f"ray over local: {over['over_ms']:.1f} ms per attempt; target {TARGET_MS:g}: {met}")
        print(f"\n{'nodes':>6}{'trivial/s':>12}{'x local':>10}{'1 s agents/s':>14}{'of ideal':>10}")
        for row in ray["nodes"]:
            trivial = f"{row['trivial_per_s']:>12.1f}{row['trivial_ratio']:>10.2f}"
            print(f"{row['nodes']:>6}{trivial}{row['sleeping_per_s']:>14.1f}{row['sleeping_ratio']:>10.2f}")
    if rows := results.get("scheduler"):
        print(f"\n{'placing, 1,000 nodes':44}{'us':>8}{'limiter us':>12}{'ratio':>8}")
        for row in rows:
            print(f"{row['load']:44}{row['us']:>8.0f}{row['limiter_us']:>12.0f}{row['ratio']:>8.1f}")
    if run := results.get("simulation"):
        _show_simulation(run)


def _show_simulation(run: dict[str, Any]) -> None:
    print(f"\n{run['attempts']} attempts: {run['records_per_s']:.0f} records/s of one core of the head")
    print(
        f"head {run['head_cpu_ms']:.3f} ms per attempt, nodes {run['nodes_cpu_ms']:.3f} ms, wall {run['wall_ms']:.3f}"
    )
    memory = ", ".join(f"{written}: {size:.0f}" for written, size in run["memory_mb"])
    print(f"memory MB at records: {memory}; peak {run['peak_mb']:.0f}")
    each = run["resume_seconds"] * 1e6 / run["attempts"]
    print(f"resume: {run['resume_seconds']:.1f} s, {each:.0f} us per record of {run['record_bytes']:.0f} bytes")
    if run["attempts"] < MILLION:
        hours, minutes = run["head_cpu_ms"] * MILLION / 3.6e6, each * MILLION / 60e6
        size = (run["record_bytes"] + run["journal_bytes"]) * MILLION / 1e9
        print(f"a million, extrapolated: {hours:.2f} h of the head, {minutes:.1f} min to resume, {size:.1f} GB on disk")
    for title, spent in sorted(run.get("parts_ms", {}).items(), key=lambda item: -item[1]):
        print(f"{title:44}{spent:>8.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="ray,scheduler,simulation")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--attempts", type=int, default=50_000)
    parser.add_argument("--full", action="store_true", help="simulate the million")
    parser.add_argument("--profile", action="store_true", help="show where the time of the simulation goes")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one is not None:
        what, *arguments = json.loads(chosen.one)
        print(json.dumps({"on_ray": on_ray, "simulation": simulation}[what](*arguments)))
        return
    only, results = chosen.only.split(","), {}
    if "ray" in only:
        results["ray"] = ray_figures(chosen.rounds)
    if "scheduler" in only:
        results["scheduler"] = scheduler(chosen.nodes, 5000)
    if "simulation" in only:
        attempts = MILLION if chosen.full else chosen.attempts
        results["simulation"] = apart("simulation", chosen.nodes, attempts, chosen.profile)
    show(results)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"cores": CORES, "kernel": os.uname().release, **results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
