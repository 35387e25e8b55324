"""What a report costs: time and memory to make it, its size, and how soon a browser can use it.

    .venv/bin/python benchmarks/report.py [--tasks 10000] [--attempts 3] [--keep DIR] [--json]

A synthetic run of that size is written through the real store and sealed; then `securebench report` makes its page in a
process of its own, and Chromium opens it from disk, three times on a desktop and three times as a phone. Interactive
means: all parts of the page are there, and its script has taken over the table.

The targets, at 10,000 tasks with 3 attempts each: 15 s, 400 MB, 25 MB, 2 s.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from securebench.testing.synthetic_run import SyntheticRun, write_run

TARGETS = {"seconds": 15.0, "peak_mb": 400.0, "file_mb": 25.0, "interactive_s": 2.0}
VIEWS = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 375, "height": 812}}
ARGUMENTS = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")


def made(run: Path, page: Path) -> dict[str, float]:
    """The command in a process of its own."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "securebench", "report", str(run), "-o", str(page)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime  # of our first child
    return {"seconds": seconds, "cpu_s": cpu, "peak_mb": used.ru_maxrss / 1024, "file_mb": page.stat().st_size / 1e6}


def opened(page: Path) -> dict[str, float]:
    """Seconds until the page can be used, the median of three, for each view."""
    from playwright.sync_api import sync_playwright

    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=[*ARGUMENTS, *root])
        for name, size in VIEWS.items():
            found[name] = statistics.median(_one(browser, page, size) for _ in range(3))
        browser.close()
    return found


def _one(browser: Any, page: Path, size: dict[str, int]) -> float:
    context = browser.new_context(viewport=size)
    shown = context.new_page()
    shown.goto(page.as_uri(), wait_until="commit")
    shown.wait_for_selector("html[data-ready]", timeout=60_000)
    ready = float(shown.evaluate("Number(document.documentElement.dataset.ready)")) / 1000
    context.close()
    return ready


def measure(tasks: int, attempts: int, place: Path) -> dict[str, Any]:
    began = time.perf_counter()
    run = write_run(place / "run", SyntheticRun(tasks=tasks, attempts=attempts))
    result: dict[str, Any] = {"tasks": tasks, "attempts": attempts, "writing_s": time.perf_counter() - began}
    result["records_mb"] = (run / "candidates.jsonl").stat().st_size / 1e6
    result |= made(run, place / "report.html")
    if shutil.which("chromium") is None:
        result["interactive_s"] = None
        return result
    result["views"] = opened(place / "report.html")
    result["interactive_s"] = max(result["views"].values())
    return result


def show(result: dict[str, Any]) -> None:
    print(f"{result['tasks']:,} tasks x {result['attempts']} attempts, {result['records_mb']:.0f} MB of records")
    for name, view in result.get("views", {}).items():
        print(f"{'interactive, ' + name:24}{view:8.2f} s")
    for name, target in TARGETS.items():
        value = result[name]
        told = "not measured: no chromium" if value is None else f"{value:8.2f}"
        verdict = "" if value is None else "met" if value <= target else "MISSED"
        print(f"{name:24}{told}   target {target:g}   {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="write run and page there, and leave them")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="report-benchmark-") as name:
        result = measure(arguments.tasks, arguments.attempts, arguments.keep or Path(name))
    print(json.dumps(result, indent=2)) if arguments.json else show(result)


if __name__ == "__main__":
    main()
