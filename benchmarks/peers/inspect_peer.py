"""Inspect AI with the same tasks: its sandbox executes each program, a mock model gives the reference solution.

    python inspect_peer.py PROBLEMS COUNT local|docker [COMPOSE]

Prints one JSON line. What is measured is the evaluation as a user runs it, from `eval` to its log."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
from inspect_ai.solver import solver
from inspect_ai.util import sandbox


@scorer(metrics=[accuracy()])
def executes():
    async def score(state, _target):
        program = state.metadata["program"]
        result = await sandbox().exec(["python3", "-c", program], timeout=30)
        return Score(value=CORRECT if result.success else INCORRECT)

    return score


@solver
def nothing():
    async def solve(state, _generate):
        return state

    return solve


def main() -> None:
    problems, count, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with gzip.open(problems, "rt") as lines:
        rows = [json.loads(line) for line in lines][:count]
    samples = []
    for row in rows:
        program = f"{row['prompt']}{row['canonical_solution']}\n{row['test']}\ncheck({row['entry_point']})\n"
        samples.append(Sample(input=row["prompt"], target="passes", metadata={"program": program}))
    where = "local" if kind == "local" else ("docker", sys.argv[4])
    task = Task(dataset=MemoryDataset(samples), solver=nothing(), scorer=executes(), sandbox=where)
    with tempfile.TemporaryDirectory() as logs:
        began = time.perf_counter()
        (log,) = eval(task, model="mockllm/model", display="none", log_dir=logs)
        seconds = time.perf_counter() - began
    passed = round(log.results.scores[0].metrics["accuracy"].value * len(rows))
    print(json.dumps({"seconds": seconds, "count": len(rows), "passed": passed}))


if __name__ == "__main__":
    main()
