"""Whole runs in which one task is played by somebody hostile, and the next one by somebody honest."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from securebench.audit.plays.repository import Changes, Files
from securebench.audit.plays.repository_tasks import Repository
from securebench.audit.plays.run_engine import Bench, Carried, carry_out, question
from securebench.audit.suite.attack import End, Ground, Play, Seen
from securebench.errors import InfrastructureError
from securebench.evidence.verify import verify_run
from securebench.records.store import MAX_LINE
from securebench.records.summary import TesterRunSummary
from securebench.testing.faulty_sandbox import FaultySandbox
from securebench.verifiers.base import Status

HOSTILE, HONEST = "hostile", "honest"


def bench(row: str, program: str, files: tuple[tuple[str, str], ...] = (), artifact: str | None = None) -> Bench:
    """The hostile task is played by this Python program; behind it comes a question that gets its answer."""
    agent = f"""
import json
if json.load(open("task.json"))["task_id"] == {HONEST!r}:
    answer = "Answer: 42"
    {"print(answer)" if artifact is None else f"open({artifact!r}, 'w').write(answer)"}
else:
    exec({program!r}, {{"__name__": "__main__"}})
"""
    return Bench((row, question(HONEST)), agent, files, artifact=artifact)


def candidate(text: str) -> str:
    """An agent that hands this text in."""
    return f"print({text!r})"


@dataclass(frozen=True, slots=True)
class Attempted:
    """Who plays the hostile task wants a pass, or not to be counted, or to be asked once more, or the next task to
    suffer, or the records to be worth nothing."""

    bench: Bench
    longest_record: int = MAX_LINE

    async def on(self, ground: Ground) -> Seen:
        carried = await carry_out(ground, self.bench, longest_record=self.longest_record)
        return judged(carried)


def judged(carried: Carried) -> Seen:
    """What came of the hostile task in a whole run."""
    names = sorted(record["task_id"] for record in carried.records)
    if names != sorted((HOSTILE, HONEST)):
        return Seen(End.REACHED, f"there are records of {', '.join(names)}")
    record, after = carried.record(HOSTILE), carried.record(HONEST)
    if problem := _problem(carried, record, after):
        return Seen(End.REACHED, problem)
    reason, detail = str(record["failure_reason"] or ""), record["failure_message"][:300]
    if record["verification_status"] == Status.ERROR or reason == "internal_error":
        return Seen(End.FAULT, f"the framework failed: {detail}", reason)
    if record["passed"]:
        return Seen(End.REACHED, "it passed")
    return Seen(End.MISSED, detail, reason)


def _problem(carried: Carried, record: dict[str, Any], after: dict[str, Any]) -> str:
    summary, counted = carried.summary, record["passed"] is not None
    if not after["passed"]:
        return f"the next task did not pass: {after['failure_reason']} {after['failure_message'][:300]}"
    if any(times != 1 for times in carried.starts.values()) or record["repeats"]:
        return f"it was tried again: {dict(carried.starts)}, {record['repeats']}"
    if counted and (summary.planned, summary.verified) != (2, 2):
        return f"{summary.verified} of {summary.planned} were counted"
    checked = verify_run(carried.directory, {})
    return "" if checked.ok else f"the run does not verify: {checked.errors[0]}"


@dataclass(frozen=True, slots=True)
class Reported:
    """Who plays the hostile task wants a number or a word of its own in the deciding fields of its record."""

    bench: Bench
    claims: tuple[str, ...]  # fields of a record in which nothing of the program's may be
    words: tuple[str, ...]

    async def on(self, ground: Ground) -> Seen:
        carried = await carry_out(ground, self.bench)
        record = carried.record(HOSTILE)
        said = json.dumps([record[name] for name in self.claims]) + json.dumps(_counted(carried.summary))
        if found := [word for word in self.words if word in said]:
            return Seen(End.REACHED, f"{found[0]} is in what counts")
        return judged(carried)


def _counted(summary: TesterRunSummary) -> dict[str, Any]:
    left_out = {"output_dir", "output_path"}
    return {name: value for name, value in summary.as_json().items() if name not in left_out}


@dataclass(frozen=True, slots=True)
class EveryStepFails:
    """Whoever plays wants the host's own failure at any step to count as success: each sandbox that does not open, each
    command that is lost, one after the other."""

    play: Play
    commands: bool = True

    async def on(self, ground: Ground) -> Seen:
        counted = FaultySandbox(ground.sandbox)
        seen = await self.play.on(replace(ground, sandbox=counted))
        if seen.end is not End.MISSED:
            return seen
        faults: list[dict[str, tuple[int]]] = [{"opens": (number + 1,)} for number in range(counted.opened)]
        faults += [{"runs": (number + 1,)} for number in range(counted.ran if self.commands else 0)]
        for number, fault in enumerate(faults):
            (directory := ground.directory / str(number)).mkdir()
            faulty = replace(ground, sandbox=FaultySandbox(ground.sandbox, **fault), directory=directory)
            with suppress(InfrastructureError):  # nobody's verdict
                if (seen := await self.play.on(faulty)).end is End.REACHED:
                    return Seen(End.REACHED, f"with {fault} it passed: {seen.detail}")
        return Seen(End.MISSED, f"{len(faults)} faults", seen.reason)


@dataclass(frozen=True, slots=True)
class Unseen:
    """Changes to a repository whose task no verifier has seen yet, and which therefore takes every step."""

    repository: Repository
    changes: Changes

    async def on(self, ground: Ground) -> Seen:
        return await Files(replace(self.repository), self.changes).on(ground)
