"""Trials of a pack's rows that run code: doing nothing must fail, the reference must pass, everything wrong must fail.

A row whose trials come out otherwise is not worth trusting, whatever scores are computed on it."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from securebench.audit.pack.making import NOTE, Given, Maker, given_in, reference_of, references
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack
from securebench.candidates.artifact import CandidateArtifact
from securebench.engine.court import Court, open_court
from securebench.engine.preflight import task_roots
from securebench.errors import ConfigError, FailureReason, InfrastructureError, IntegrityError
from securebench.families.registry import FAMILIES
from securebench.records.redaction import Redactor
from securebench.resources import ResourceBundle
from securebench.sandboxes.base import ISOLATED
from securebench.sandboxes.select import select_sandbox
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Status

MUTANTS = "mutants"
NOTHING, REFERENCE, AUTHORS_MUTANT = "J01", "P20", "P22"
_REPEATS = 2
_SPARE, _TIMES = 5.0, 5.0
"""A wrong candidate may take so many seconds beyond so many times what the reference took."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate whose verdict is known before it is judged; `rule` is broken where it comes out otherwise.

    `about` is for the author: what was changed, say. `mutant` is its id where it was made from the reference."""

    name: str
    rule: str
    candidate: CandidateArtifact
    must_pass: bool = False
    about: str = ""
    mutant: str = ""


Further = Callable[[Maker], AsyncIterator[Entrant]]
"""Makes more entrants for a row that nothing does not pass, and whose reference passes where it has one."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How an entrant fared."""

    task_id: str
    name: str
    must_pass: bool
    outcome: str = ""  # passed, failed, pending or error
    message: str = ""
    rule: str = ""
    about: str = ""
    mutant: str = ""
    by_host: bool = False  # it could not be judged, and that is no fault of the row's

    @property
    def held(self) -> bool:
        return self.outcome == ("passed" if self.must_pass else "failed")


@dataclass(slots=True)
class TrialReport:
    """Every trial of a pack, and the rows that have no reference solution to try."""

    trials: list[Trial] = field(default_factory=list)
    without_reference: list[str] = field(default_factory=list)
    sandbox: str = ""  # where

    @property
    def broken(self) -> list[Trial]:
        return [trial for trial in self.trials if not trial.held]

    @property
    def ok(self) -> bool:
        return not self.broken

    def as_json(self) -> dict[str, Any]:
        return {
            "trials": len(self.trials),
            "broken_trials": [
                {"task_id": t.task_id, "trial": t.name, "seen": t.outcome, "message": t.message} for t in self.broken
            ],
            "rows_without_reference": self.without_reference,
        }


def runs_code(pack: BenchmarkPack) -> bool:
    return any(FAMILIES[entry.family].executes for entry in pack.entries)


async def try_pack(
    pack: BenchmarkPack,
    on_trial: Callable[[Trial], None],
    workers: int | None = None,
    *,
    backend: str = "auto",
    further: Further | None = None,
    on_row: Callable[[], None] = lambda: None,
) -> TrialReport:
    """Run every trial of every row that runs code. Raises SandboxUnavailable where this host cannot."""
    indexes = [number for number, entry in enumerate(pack.entries) if FAMILIES[entry.family].executes]
    roots = task_roots(pack.entries[number].image for number in indexes)
    selection = await select_sandbox(backend, ISOLATED, roots)
    report = TrialReport(sandbox=selection.sandbox.name)
    at_once = workers or len(os.sched_getaffinity(0))
    rows, places = anyio.CapacityLimiter(2 * at_once), anyio.CapacityLimiter(at_once)
    async with open_court(selection.sandbox, None, secrets.token_bytes(32)) as court:

        async def one(task: SecureBenchTask) -> None:
            def ended(trial: Trial) -> None:
                report.trials.append(trial)
                on_trial(trial)

            async with rows:
                maker = Maker(task, court.sandbox or selection.sandbox, court.store)
                await _Row(task, maker, court, places, ended).run(further)
                on_row()

        async with anyio.create_task_group() as group:
            for task in compile_benchmark_pack(pack, indexes=indexes):
                if not references(task):
                    report.without_reference.append(task.id)
                group.start_soon(one, task)
    report.trials.sort(key=lambda trial: (trial.task_id, trial.name))
    return report


@dataclass(frozen=True)
class _Row:
    """The trials of one row."""

    task: SecureBenchTask
    maker: Maker
    court: Court
    places: anyio.CapacityLimiter
    ended: Callable[[Trial], None]

    async def run(self, further: Further | None) -> None:
        trusted, slowest = True, 0.0
        for name, rule, given in _declared(self.task):
            try:
                entrant = Entrant(name, rule, await self.maker.of(given), must_pass=rule == REFERENCE)
            except (InfrastructureError, ConfigError, IntegrityError) as error:
                trial, seconds = self._error(name, rule, error), 0.0
                self.ended(trial)
            else:
                trial, seconds = await self._try(self.task, entrant)
            trusted &= trial.held or rule == AUTHORS_MUTANT
            slowest = max(slowest, seconds if entrant_passed(trial) else 0.0)
        if further is None or not trusted:
            return
        hurried = _hurried(self.task, _SPARE + _TIMES * slowest)
        try:
            async with anyio.create_task_group() as group:
                async for entrant in further(self.maker):
                    group.start_soon(self._try, hurried, entrant)
        except* (InfrastructureError, ConfigError, IntegrityError) as errors:
            self.ended(self._error("making candidates", NOTHING, errors.exceptions[0]))

    async def _try(self, task: SecureBenchTask, entrant: Entrant) -> tuple[Trial, float]:
        by_host = False
        async with self.places:
            began = anyio.current_time()
            try:
                outcome, message = await self._judged_again(task, entrant.candidate)
            except (InfrastructureError, ConfigError, IntegrityError) as error:
                outcome, message = str(Status.ERROR), str(error)
                by_host = isinstance(error, InfrastructureError)
            seconds = anyio.current_time() - began
        redact = Redactor(task.resources.secrets(), task.resources.public())
        trial = Trial(
            task.id,
            entrant.name,
            entrant.must_pass,
            outcome,
            redact.text(message),
            entrant.rule,
            entrant.about,
            entrant.mutant,
            by_host,
        )
        self.ended(trial)
        return trial, seconds

    async def _judged_again(self, task: SecureBenchTask, candidate: CandidateArtifact) -> tuple[str, str]:
        """The verdict; what the host failed at is tried again, a bounded number of times."""
        for _ in range(_REPEATS):
            with suppress(InfrastructureError):
                return await self._judged(task, candidate)
        return await self._judged(task, candidate)

    async def _judged(self, task: SecureBenchTask, candidate: CandidateArtifact) -> tuple[str, str]:
        judged = await self.court.judged(task, candidate)
        note = str((judged.metadata or {}).get("note", ""))
        message = judged.message or note or judged.stderr[-400:]
        if made := candidate.metadata.get(NOTE):
            message = f"{message}; {made}" if message else str(made)
        if judged.failure_reason is FailureReason.INTERNAL_ERROR:  # a failure of ours must not look like a refusal
            return str(Status.ERROR), message
        return str(judged.status), message

    def _error(self, name: str, rule: str, error: BaseException) -> Trial:
        redact = Redactor(self.task.resources.secrets(), self.task.resources.public())
        by_host = isinstance(error, InfrastructureError)
        message = redact.text(str(error))
        return Trial(self.task.id, name, rule == REFERENCE, str(Status.ERROR), message, rule, by_host=by_host)


def entrant_passed(trial: Trial) -> bool:
    return trial.outcome == str(Status.PASSED)


def _declared(task: SecureBenchTask) -> list[tuple[str, str, Given]]:
    """Doing nothing; the reference solutions; the author's own mutants."""
    found: list[tuple[str, str, Given]] = [("base", NOTHING, None)]
    found += [(resource.name, REFERENCE, reference_of(task, resource)) for resource in references(task)]
    for resource in task.resources.resources:
        if resource.name == MUTANTS and resource.value:
            found += [(f"mutant {n}", AUTHORS_MUTANT, given) for n, given in enumerate(given_in(resource), 1)]
    return found


def _hurried(task: SecureBenchTask, seconds: float) -> SecureBenchTask:
    """The same task with less time for each verdict: a candidate that waits for ever is as wrong sooner."""
    environment = task.environment
    least = min(seconds, environment.timeout_seconds or seconds)
    resources = []
    for resource in task.resources.resources:
        value = resource.value
        if resource.name in ("tests", "checker") and isinstance(value, dict) and value.get("timeout_seconds"):
            value["timeout_seconds"] = min(seconds, value["timeout_seconds"])
            resource = replace(resource, _value=value)  # noqa: PLW2901
        resources.append(resource)
    return replace(
        task,
        environment=replace(environment, timeout_seconds=least),
        resources=ResourceBundle(tuple(resources)),
    )
