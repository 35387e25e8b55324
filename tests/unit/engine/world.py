"""Lanes and attempts of a small run without a command line: a pack, a store and whatever producer and sandbox a test
brings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from securebench.benchmark_compiler import CompiledTasks, compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.engine.admission import Memory
from securebench.engine.attempt import Attempt, AttemptContext
from securebench.engine.court import Court
from securebench.engine.executors.local import LocalExecutor
from securebench.engine.lanes import Lanes, Todo, order_for
from securebench.harnesses.base import HarnessProducer
from securebench.progress import ProgressEvent
from securebench.records.record import Identity
from securebench.records.store import RecordStore
from securebench.records.summary import RunPlan, Tally
from securebench.sandboxes.base import Sandbox

START = "sha256:" + "0" * 64


def compiled(directory: Path, rows: list[dict[str, Any]]) -> CompiledTasks:
    (directory / "manifest.yaml").write_text("id: engine\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return compile_benchmark_pack(load_benchmark_pack(directory / "manifest.yaml", directory / "tasks.jsonl"))


@dataclass
class World:
    """Everything an attempt needs, and the events it reported."""

    directory: Path
    rows: list[dict[str, Any]]
    producer: HarnessProducer
    sandbox: Sandbox | None = None
    events: list[ProgressEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tasks = compiled(self.directory, self.rows)
        self.output = self.directory / "out"
        candidates = CandidateStore(self.output / "candidates")
        court = Court(self.sandbox, CandidateStore(self.directory / "private", candidates), b"seed")
        identity = Identity("run", "sha256:pack", "sha256:config", "test")
        self.context = AttemptContext(identity, self.producer, self.events.append, candidates, court)

    def attempt(self, number: int = 0) -> Attempt:
        return Attempt(self.context, self.tasks[number], 1)

    @contextmanager
    def lanes(self, producers: int, verifiers: int, memory: int) -> Iterator[Lanes]:
        count = len(self.rows)
        with RecordStore(self.output) as store:
            store.begin(START)
            yield Lanes(
                executor=LocalExecutor(self.context, self.tasks, Memory(memory), producers, verifiers),
                store=store,
                tally=Tally(RunPlan("run", self.output, "engine", "test", count, None)),
                statuses=Counter(),
                faults={},
                todo=iter([Todo(number, 1) for number in range(count)]),
                order=partial(order_for, self.tasks),
                progress=self.events.append,
            )

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.output / "candidates.jsonl").read_bytes().splitlines()]
