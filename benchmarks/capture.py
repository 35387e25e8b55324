"""Capture against `tar` of the same tree, in the same run: files per second and MB per second.

    python benchmarks/capture.py [--files 50000] [--size 2000] [--rounds 3]

Target: at most 1.5 times tar's time on 50,000 small files. Both write what they read to the same disk and sync it;
both find the tree in the page cache. Rounds alternate between the two. Shown are the best and the median of wall time,
and the median of processor time, which other load on the machine disturbs less."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from securebench._fs import open_directory
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore

TARGET = 1.5


def make_tree(root: Path, files: int, size: int) -> int:
    """Small files of random sizes around `size`, forty to a directory; the bytes in all."""
    chosen = random.Random(7)
    total = 0
    for number in range(files):
        folder = root / f"package{number // 2000}" / f"module{number // 40}"
        if number % 40 == 0:
            folder.mkdir(parents=True)
        data = chosen.randbytes(max(1, int(chosen.expovariate(1 / size))))
        (folder / f"source_file_{number}.py").write_bytes(data)
        total += len(data)
    return total


def cpu_seconds() -> float:
    """Of this process, its threads and the children that ended."""
    return sum(os.times()[:4])


def measured(work: Callable[[], float]) -> tuple[float, float]:
    """Wall and processor seconds."""
    before = cpu_seconds()
    wall = work()
    return wall, cpu_seconds() - before


def time_tar(root: Path, work: Path) -> float:
    target = work / "tree.tar"
    began = time.perf_counter()
    subprocess.run(["tar", "-cf", str(target), "-C", str(root), "."], check=True)
    descriptor = os.open(target, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    took = time.perf_counter() - began
    target.unlink()
    return took


def time_capture(root: Path, work: Path, portable: bool, expected: int) -> float:
    directory = work / "store"
    began = time.perf_counter()
    store = CandidateStore(directory)
    with open_directory(root) as descriptor:
        captured = read_tree(descriptor, store, portable=portable)
    took = time.perf_counter() - began
    assert len(captured.tree.files) == expected
    assert not captured.left_out
    shutil.rmtree(directory)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--portable", action="store_true", help="without openat2")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (root := work / "tree").mkdir()
        total = make_tree(root, options.files, options.size)
        runs: dict[str, Callable[[], float]] = {
            "tar": lambda: time_tar(root, work),
            "capture": lambda: time_capture(root, work, options.portable, options.files),
        }
        runs["tar"]()  # brings the tree into the page cache
        found: dict[str, list[tuple[float, float]]] = {label: [] for label in runs}
        for _ in range(options.rounds):
            for label, run in runs.items():
                found[label].append(measured(run))
    print(f"{options.files} files, {total / 1e6:.1f} MB, {options.rounds} rounds")
    best = {label: min(times)[0] for label, times in found.items()}
    median = {label: statistics.median(wall for wall, _ in times) for label, times in found.items()}
    cpu = {label: statistics.median(used for _, used in times) for label, times in found.items()}
    for label, took in best.items():
        rates = f"{options.files / took:9.0f} files/s  {total / took / 1e6:7.1f} MB/s"
        print(f"{label:8} best {took:5.2f} s  {rates}  median {median[label]:5.2f} s  processor {cpu[label]:5.2f} s")
    ratios = [
        f"{name} {figures['capture'] / figures['tar']:.2f}"
        for name, figures in (("best", best), ("median", median), ("processor", cpu))
    ]
    print(f"capture takes {', '.join(ratios)} times what tar takes; target at most {TARGET} of wall time")


if __name__ == "__main__":
    main()
