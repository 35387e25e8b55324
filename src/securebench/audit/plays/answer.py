"""Answers before the real verifier of their family: a row of a pack on disk, loaded, compiled and judged as always."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securebench import _json
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.errors import InfrastructureError
from securebench.families.registry import family
from securebench.resources import Component
from securebench.sandboxes.base import ImageRoot
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Status, Verification, VerificationResult
from securebench.verifiers.judge.panel import Panel
from securebench.verifiers.registry import verifier_for_task_type

MARKER = "securebench_answer_was_executed"
"""A module that comes to be where an answer of ours is executed."""
MOST_CPU_SECONDS = 2.0
"""A text that keeps its grader busy for longer has reached what it wanted."""


@dataclass(frozen=True, slots=True)
class Question:
    """A row of a pack: its family, and `input` and `eval` as JSON."""

    family: str
    public: str
    private: str


def question(family_name: str, public: dict[str, Any], private: dict[str, Any]) -> Question:
    return Question(family_name, _json.dumps(public), _json.dumps(private))


@dataclass(frozen=True, slots=True)
class AnyPasses:
    """Wants one of these texts to pass, to be executed, or to keep the grader busy."""

    question: Question
    texts: tuple[str, ...]

    async def on(self, ground: Ground) -> Seen:
        task = compiled(self.question, ground)
        reasons: set[str] = set()
        for text in self.texts:
            seen = await tried(task, text, ground)
            if seen.end is not End.MISSED:
                return seen
            reasons.add(seen.reason)
        return Seen(End.MISSED, f"{len(self.texts)} texts: {', '.join(sorted(reasons))}", ", ".join(sorted(reasons)))


@dataclass(frozen=True, slots=True)
class EachPasses:
    """The honest twin: right answers in various spellings, all of which must pass."""

    question: Question
    texts: tuple[str, ...]

    async def on(self, ground: Ground) -> Seen:
        task = compiled(self.question, ground)
        for text in self.texts:
            if (seen := await tried(task, text, ground)).end is not End.REACHED:
                return Seen(seen.end, f"{shown(text)}: {seen.detail}", seen.reason)
        return Seen(End.REACHED, f"{len(self.texts)} texts passed")


def compiled(row: Question, ground: Ground) -> SecureBenchTask:
    """The row as the only one of a pack. Raises PackError where no pack could hold it."""
    directory = ground.directory / "pack"
    write_rows(directory, (row,), ground)
    [task] = compile_benchmark_pack(load_benchmark_pack(directory / "manifest.yaml", directory / "tasks.jsonl"))
    return task


def write_rows(directory: Path, rows: tuple[Question, ...], ground: Ground) -> None:
    directory.mkdir(exist_ok=True)
    lines = []
    for number, row in enumerate(rows):
        made: dict[str, Any] = {"id": f"task-{number}", "family": row.family}
        made |= {"input": _json.loads(row.public), "eval": _json.loads(row.private)}
        made["environment"] = {"workdir": "/app"} if row.family == "terminal_task" else {}
        if isinstance(ground.root, ImageRoot) and family(row.family).executes:
            made["environment"]["image"] = ground.root.reference
        lines.append(_json.dumps(made) + "\n")
    (directory / "manifest.yaml").write_text("id: answers\nversion: 1\n", encoding="utf-8")
    (directory / "tasks.jsonl").write_text("".join(lines), encoding="utf-8")


async def tried(task: SecureBenchTask, text: str, ground: Ground, judge: Panel | None = None) -> Seen:
    """What the real verifier makes of one text. Reached if it passes, was executed, or kept this thread busy, which
    tells something only where no other play has a share in it: not of what waits for a sandbox."""
    began = time.thread_time()
    result = await verify(task, text, ground, judge)
    busy = time.thread_time() - began
    if MARKER in sys.modules:
        del sys.modules[MARKER]
        return Seen(End.REACHED, f"{shown(text)} was executed")
    if busy > MOST_CPU_SECONDS and not family(task.task_type).executes:
        return Seen(End.REACHED, f"{shown(text)} took {busy:.1f} s of processor time")
    reason = str(result.failure_reason or "")
    if result.passed:
        return Seen(End.REACHED, f"{shown(text)} passed")
    return Seen(End.MISSED if result.status is Status.FAILED else End.FAULT, f"{shown(text)}: {result.status}", reason)


async def verify(task: SecureBenchTask, text: str, ground: Ground, judge: Panel | None) -> VerificationResult:
    verifier = verifier_for_task_type(task.task_type)
    if verifier is None:
        raise InfrastructureError(f"{task.task_type} has no verifier")
    candidate = CandidateArtifact(task.id, family(task.task_type).candidate, text=text)
    return await verifier.verify(
        Verification(
            task_id=task.id,
            candidate=candidate,
            evaluator=task.view_for(Component.EVALUATOR),
            tests=task.view_for(Component.TEST_SANDBOX),
            worker=task.view_for(Component.WORKER),
            environment=task.environment,
            sandbox=ground.sandbox,
            store=CandidateStore(ground.directory / "store"),
            judge=judge,
            seed=b"played",
        )
    )


def shown(text: str) -> str:
    """The text in a line of ASCII, cut short."""
    line = ascii(text)
    return line if len(line) <= 80 else f"{line[:80]}… ({len(text)} characters)"
