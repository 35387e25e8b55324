"""How long `securebench validate` takes on a 10,000-row pack, against only parsing the same JSON lines.

Run: .venv/bin/python benchmarks/validate.py [rows]"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 5


def write_pack(directory: Path, rows: int) -> None:
    """A third of the rows of each text family, with questions of a few hundred characters."""
    text = "What follows from the premises in the passage above, taken together? " * 6
    makers = (
        lambda n: ("multiple_choice", {"question": f"{n}: {text}", "choices": ["a", "b", "c", "d"]}, {"answer": n % 4}),
        lambda n: ("short_answer", {"question": f"{n}: {text}"}, {"accepted_answers": [n + 1000]}),
        lambda n: (
            "free_response",
            {"prompt": f"{n}: {text}"},
            {"rubric": {"type": "contains_any", "accepted_answers": [f"the {n}th harbour", f"harbour {n}"]}},
        ),
    )
    (directory / "manifest.yaml").write_text("id: bench\nversion: 1\n")
    with (directory / "tasks.jsonl").open("w") as file:
        for number in range(rows):
            family, public, private = makers[number % 3](number)
            row = {"id": f"t{number}", "family": family, "input": public, "eval": private}
            file.write(json.dumps(row) + "\n")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_pack(directory, rows)
        parse = f"import json; [json.loads(line) for line in open({str(directory / 'tasks.jsonl')!r})]"
        commands = {
            "json.loads of every line": [sys.executable, "-c", parse],
            "securebench validate": [sys.executable, "-m", "securebench", "validate", name, "--json"],
        }
        medians = {}
        for label, command in commands.items():
            times = []
            for _ in range(REPEATS):
                started = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                times.append(time.perf_counter() - started)
            medians[label] = statistics.median(times)
            print(f"{label:28} {medians[label]:6.2f} s median  ({min(times):.2f}–{max(times):.2f} s, n={REPEATS})")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        baseline, ours = medians.values()
        print(f"{rows} rows: {ours / baseline:.1f} times the baseline; peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
