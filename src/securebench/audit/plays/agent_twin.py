"""An agent on the twin of a pack, whose options stand in another order: what it has by heart is worth nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from securebench.audit.plays.agent import environment_of, look
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.verifiers.multiple_choice import judge_with_key, option_key

QUESTIONS = (
    ("Two and two?", ("3", "4", "5")),
    ("Three and four?", ("7", "8", "6")),
    ("Five and four?", ("1", "2", "9")),
)
RIGHT = ("4", "7", "9")
Order = Callable[[tuple[str, ...]], tuple[str, ...]]


def turned(choices: tuple[str, ...]) -> tuple[str, ...]:
    """The options of the twin: every one in another place."""
    return (*choices[1:], choices[0])


@dataclass(frozen=True, slots=True)
class PassTheTwin:
    """An agent that wants most of the twin's questions right. It is a program that finds the task in `task.json`."""

    program: str
    order: Order = turned

    async def on(self, ground: Ground) -> Seen:
        pack = load_benchmark_pack(*_write(ground.directory / "pack", self.order, environment_of(ground.root)))
        passed = 0
        for number, task in enumerate(compile_benchmark_pack(pack)):
            store = CandidateStore(ground.directory / f"store-{number}")
            printed = await look(task, self.program, ground.sandbox, store, pack.directory)
            row = pack[number].row
            passed += judge_with_key(option_key(row.input, row.eval), printed.splitlines()[0]).passed
        return Seen(End.REACHED if 2 * passed > len(QUESTIONS) else End.MISSED, f"{passed} of {len(QUESTIONS)} right")


def _write(directory: Path, order: Order, environment: dict[str, str]) -> tuple[Path, Path]:
    directory.mkdir()
    (manifest := directory / "manifest.yaml").write_text("id: sums\nversion: 1\n")
    rows = [
        {
            "id": f"sum-{number}",
            "family": "multiple_choice",
            "input": {"question": question, "choices": order(choices)},
            "eval": {"answer": right},
            "environment": environment,
        }
        for number, ((question, choices), right) in enumerate(zip(QUESTIONS, RIGHT, strict=True))
    ]
    (tasks := directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return manifest, tasks
