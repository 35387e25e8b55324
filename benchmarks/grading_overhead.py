"""What grading a sample costs besides judging it: processor time of the engine and of its processes, apart from rooms.

    python benchmarks/grading_overhead.py [SAMPLES] [PROCESSES] [text|code]

`text` needs no rooms, so everything measured is ours; `code` has rooms, whose processes are not counted."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from securebench.progress import Event, ProgressEvent
from securebench.sample_run import grade_samples

TICK = os.sysconf("SC_CLK_TCK")
TASKS = 160
PROMPT = 'def f(x: int) -> int:\n    """The square of x, for whole numbers of any size.\n    >>> f(3)\n    9\n    """\n'
CHECK = "def check(candidate):\n" + "".join(f"    assert candidate({n}) == {n * n}\n" for n in range(8))


def row(number: int, kind: str) -> dict[str, Any]:
    if kind == "text":
        question = {"question": f"What is {number} * 7?"}
        return {
            "id": f"t{number}",
            "family": "short_answer",
            "input": question,
            "eval": {"accepted_answers": [7 * number]},
        }
    public = {"prompt": PROMPT, "language": "python", "entry_point": "f"}
    return {
        "id": f"t{number}",
        "family": "code_completion",
        "input": public,
        "eval": {"tests": {"source": "inline", "code": CHECK}, "canonical_solution": "    return x * x\n"},
    }


def sample(number: int, kind: str) -> dict[str, Any]:
    task = number % TASKS
    text = f"Answer: {7 * task}" if kind == "text" else f"    # {number}\n    return x * x\n"
    return {"task_id": f"t{task}", "completion": text}


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def children() -> list[int]:
    found = []
    for thread in Path("/proc/self/task").iterdir():
        found += [int(pid) for pid in (thread / "children").read_text().split()]
    return [pid for pid in found if b"executors.child" in Path(f"/proc/{pid}/cmdline").read_bytes()]


class Watch:
    """Looks at the clocks when the first tenth of the records is there, and when all are."""

    def __init__(self, total: int) -> None:
        self.marks = {max(1, total // 10), total}
        self.written = 0
        self.seen: list[tuple[int, float, float, float]] = []

    def __call__(self, event: ProgressEvent) -> None:
        if event.event is Event.RECORD_WRITTEN:
            self.written += 1
            if self.written in self.marks:
                theirs = sum(map(processor_seconds, children()))
                self.seen.append((self.written, time.monotonic(), time.process_time(), theirs))


def main() -> None:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else len(os.sched_getaffinity(0))
    kind = sys.argv[3] if len(sys.argv) > 3 else "text"
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "manifest.yaml").write_text("id: cost\nversion: 1\n")
        (place / "tasks.jsonl").write_text("".join(json.dumps(row(n, kind)) + "\n" for n in range(TASKS)))
        (place / "samples.jsonl").write_text("".join(json.dumps(sample(n, kind)) + "\n" for n in range(total)))
        watch = Watch(total)
        began = time.process_time()
        summary = grade_samples(
            place, place / "samples.jsonl", output_dir=place / "out", processes=processes, progress=watch
        )
        assert summary.passed == total, summary
        (first, began_at, ours, theirs), (_, ended_at, ours_end, theirs_end) = watch.seen
        number = total - first
        print(f"{total} samples ({kind}), {processes} processes, {number / (ended_at - began_at):.0f} a second")
        print(f"engine    {(ours_end - ours) / number * 1e3:.3f} ms of processor time a sample")
        print(f"processes {(theirs_end - theirs) / number * 1e3:.3f} ms of processor time a sample")
        print(f"engine    {time.process_time() - began:.1f} s in all, with reading pack and samples")


if __name__ == "__main__":
    main()
