"""Code before the real verifier: tests in one room, the candidate in another, both on the ground's backend."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from securebench.audit.suite.attack import End, Ground, Seen
from securebench.candidates.artifact import CandidateArtifact
from securebench.environment import TaskEnvironment
from securebench.families.base import CandidateKind
from securebench.resources import Component, Resource, ResourceView, Visibility
from securebench.sandboxes.base import MIB, ImageRoot
from securebench.verifiers.base import Status, Verification, VerificationResult
from securebench.verifiers.code_completion import CodeCompletionVerifier

SECONDS = 30.0
SECRET = b"decides orders and generated cases"


@dataclass(frozen=True, slots=True)
class CodeTask:
    """A row: `tests` are those of its `eval`, as JSON."""

    tests: str
    entry: str | None = "sq"
    reference: str | None = None

    def verification(self, source: str, ground: Ground, seed: bytes) -> Verification:
        public: dict[str, Any] = {"prompt": "Write it.", "language": "python"}
        if self.entry is not None:
            public["entry_point"] = self.entry
        image = ground.root.reference if isinstance(ground.root, ImageRoot) else None
        return Verification(
            task_id="task",
            candidate=CandidateArtifact("task", CandidateKind.CODE, text=source),
            evaluator=_view(Component.EVALUATOR, public, Visibility.HIDDEN, {"reference_solution": self.reference}),
            tests=_view(
                Component.TEST_SANDBOX, public, Visibility.EVALUATION_INPUTS, {"tests": json.loads(self.tests)}
            ),
            worker=_view(Component.WORKER, public),
            environment=TaskEnvironment(image=image, memory=256 * MIB),
            sandbox=ground.sandbox,
            seed=seed,
        )


def inline(code: str, seconds: float = SECONDS) -> CodeTask:
    """Tests as people write them."""
    return CodeTask(json.dumps({"source": "inline", "code": code, "timeout_seconds": seconds}))


def cases(*given: tuple[Sequence[Any], Any], generate: dict[str, Any] | None = None, reference: str = "") -> CodeTask:
    """Calls with what must come out; a string that begins with `=` is a predicate."""
    made = [{"args": list(args), **_wanted(value)} for args, value in given]
    tests = {"source": "cases", "cases": made, "timeout_seconds": SECONDS}
    if generate is not None:
        tests["generate"] = generate
    return CodeTask(json.dumps(tests), reference=reference or None)


def programs(*given: tuple[str, str]) -> CodeTask:
    """A program, judged on what it prints for each input."""
    made = [{"stdin": stdin, "stdout": stdout} for stdin, stdout in given]
    tests = {"source": "io", "run": ["python3", "candidate.py"], "cases": made, "timeout_seconds": SECONDS}
    return CodeTask(json.dumps(tests), entry=None)


@dataclass(frozen=True, slots=True)
class Completes:
    """A candidate that wants to pass."""

    task: CodeTask
    source: str
    seed: bytes = SECRET

    async def on(self, ground: Ground) -> Seen:
        return judged(await verdict(self, ground))


@dataclass(frozen=True, slots=True)
class Tells:
    """A candidate that wants a text it is called with to be in what a verdict says, plainly or spelled otherwise."""

    play: Completes
    text: str

    async def on(self, ground: Ground) -> Seen:
        result = await verdict(self.play, ground)
        said = repr((dict(result.metadata), result.stdout, result.stderr, dict(result.usage), result.controls))
        if found := [spelling for spelling in spellings(self.text) if spelling.lower() in said.lower()]:
            return Seen(End.REACHED, f"the verdict says {found[0]}")
        return Seen(End.MISSED, f"nothing of it in {len(said)} characters")


async def verdict(play: Completes, ground: Ground) -> VerificationResult:
    return await CodeCompletionVerifier().verify(play.task.verification(play.source, ground, play.seed))


def judged(result: VerificationResult) -> Seen:
    reason, detail = str(result.failure_reason or ""), str(result.metadata.get("rule", ""))
    if result.status is Status.ERROR:
        return Seen(End.FAULT, detail, reason)
    return Seen(End.REACHED if result.passed else End.MISSED, detail, reason)


def spellings(text: str) -> tuple[str, ...]:
    return text, text.encode().hex(), text[::-1]


def _wanted(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.startswith("="):
        return {"predicate": value[1:].strip()}
    return {"expected": value}


def _view(
    component: Component,
    public: dict[str, Any],
    lane: Visibility = Visibility.PUBLIC,
    more: dict[str, Any] | None = None,
) -> ResourceView:
    resources = [Resource(name, Visibility.PUBLIC, value) for name, value in public.items()]
    resources += [Resource(name, lane, value) for name, value in (more or {}).items() if value is not None]
    return ResourceView(component, tuple(resources))
