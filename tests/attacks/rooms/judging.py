"""A candidate through the real verifier in real sandboxes, in one line; many of them at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import anyio
import pytest

from securebench.candidates.artifact import CandidateArtifact
from securebench.environment import TaskEnvironment
from securebench.families.base import CandidateKind
from securebench.resources import Component, Resource, ResourceView, Visibility
from securebench.sandboxes.base import Sandbox
from securebench.sandboxes.select import make_sandbox
from securebench.verifiers.base import Verification, VerificationResult
from securebench.verifiers.code_completion import CodeCompletionVerifier

AT_ONCE = 3


@dataclass(frozen=True)
class Trial:
    """One candidate and the tests it meets."""

    source: str
    tests: Any
    entry: str | None = None
    prompt: str = "Do it."
    language: str = "python"
    more: Mapping[str, Any] = field(default_factory=dict)
    environment: TaskEnvironment = field(default_factory=TaskEnvironment)

    def verification(self, sandbox: Sandbox, seed: bytes = b"a secret") -> Verification:
        public = {"prompt": self.prompt, "language": self.language, **self.more}
        if self.entry is not None:
            public["entry_point"] = self.entry
        tests = {"source": "inline", "code": self.tests} if isinstance(self.tests, str) else self.tests
        return Verification(
            task_id="task",
            candidate=CandidateArtifact("task", CandidateKind.CODE, text=self.source),
            evaluator=view(Component.EVALUATOR, public),
            tests=view(Component.TEST_SANDBOX, public, {"tests": tests}),
            worker=view(Component.WORKER, public),
            environment=self.environment,
            sandbox=sandbox,
            seed=seed,
        )


def view(component: Component, public: Mapping[str, Any], private: Mapping[str, Any] | None = None) -> ResourceView:
    resources = [Resource(name, Visibility.PUBLIC, value) for name, value in public.items()]
    resources += [Resource(name, Visibility.EVALUATION_INPUTS, value) for name, value in (private or {}).items()]
    return ResourceView(component, tuple(resources))


@cache
def bubblewrap() -> Sandbox:
    """The embedded backend; where it is not usable the test is skipped with its words, or fails in CI."""
    sandbox = make_sandbox("bubblewrap")
    capabilities = anyio.run(sandbox.probe)
    if not capabilities.usable:
        reason = capabilities.remedy or "bubblewrap is not usable here"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    return sandbox


def verdict(source: str, tests: Any, entry: str | None = None, **how: Any) -> VerificationResult:
    """The verdict on one candidate."""
    return verdicts({"one": Trial(source, tests, entry, **how)})["one"]


def verdicts(trials: Mapping[str, Trial], sandbox: Sandbox | None = None) -> dict[str, VerificationResult]:
    """The verdicts on many, a few at a time."""
    backend = sandbox or bubblewrap()
    found: dict[str, VerificationResult] = {}

    async def judge(name: str, trial: Trial, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            found[name] = await CodeCompletionVerifier().verify(trial.verification(backend))

    async def main() -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as tasks:
            for name, trial in trials.items():
                tasks.start_soon(judge, name, trial, limiter)

    try:
        anyio.run(main)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return found
