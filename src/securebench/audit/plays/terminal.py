"""The real road of a terminal task: an agent's command works in a sandbox, everything in it is ended, the strict reader
takes over what is left, and the real verifier with a real checker judges that."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securebench.audit.suite.attack import End, Ground, Seen
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.dangerous_commands import VerificationPolicy
from securebench.errors import CandidateError, SecureBenchError
from securebench.families.registry import family
from securebench.harness_schema import CommandConfig
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.command import CommandAgent
from securebench.harnesses.outlets import Outlets
from securebench.harnesses.sandboxed import SandboxedProducer
from securebench.resources import Component
from securebench.sandboxes.base import ImageRoot, Root, Sandbox
from securebench.tasks import SecureBenchTask
from securebench.tester_config import SandboxSection
from securebench.verifiers.base import Status, Verification, VerificationResult
from securebench.verifiers.terminal_task import TerminalTaskVerifier

AGENT_SECONDS = 60.0
CHECKER_SECONDS = 60.0
Texts = tuple[tuple[str, str], ...]
"""Files by path."""


class BrokenAgent(SecureBenchError):
    """The program that plays the agent came to no good end by itself, so what it shows is worth nothing."""


@dataclass(frozen=True, slots=True)
class TerminalTask:
    """`checker` is a script, or a pytest module where `source` says so; `hidden` lies beside it, and `public` is what
    the agent finds in its working directory `/app`."""

    checker: str
    source: str = "script"
    hidden: Texts = ()
    public: Texts = ()
    assurance: str = "isolated"
    disk: str | None = None
    seconds: float = CHECKER_SECONDS

    @property
    def tests(self) -> dict[str, str]:
        return {"check.sh" if self.source == "script" else "test_it.py": self.checker, **dict(self.hidden)}

    @property
    def evaluation(self) -> dict[str, Any]:
        path, *others = self.tests
        checker = {"source": self.source, "path": path, "timeout_seconds": self.seconds, "assurance": self.assurance}
        return {"checker": checker, "test_files": [{"path": other} for other in others]}


@dataclass(frozen=True, slots=True)
class Solve:
    """A Python program plays the agent, and wants its workspace to pass."""

    task: TerminalTask
    agent: str

    async def on(self, ground: Ground) -> Seen:
        task, store = terminal_task(self.task, ground), CandidateStore(ground.directory / "store")
        production = await produce(task, self.agent, ground.sandbox, store)
        if production.candidate is None:
            return refused(production.failure)
        try:
            return judged(await verify(task, production.candidate, ground.sandbox, store))
        except CandidateError as error:
            return refused(error)


@dataclass(frozen=True, slots=True)
class Outlive:
    """The agent, and what it left for the checker to start, want a process called `marker` to outlive the verdict.
    Each play calls it something else: several may be played at once."""

    task: TerminalTask
    agent: str
    marker: str

    async def on(self, ground: Ground) -> Seen:
        marker = f"{self.marker}-{secrets.token_hex(8)}"
        seen = await Solve(self.task, self.agent.replace(self.marker, marker)).on(ground)
        if seen.end is not End.REACHED:
            return Seen(End.FAULT, f"what the agent left did not even do its work: {seen.detail}")
        alive = processes_named(marker)
        return Seen(End.REACHED if alive else End.MISSED, f"{len(alive)} of its processes live on")


def processes_named(marker: str) -> list[int]:
    """The processes of this host, also those inside sandboxes, whose first word is this."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and (place / "cmdline").read_bytes().startswith(marker.encode() + b"\0"):
                found.append(int(place.name))
        except OSError:
            continue  # it ended meanwhile
    return found


def terminal_task(task: TerminalTask, ground: Ground) -> SecureBenchTask:
    """The task as a pack on disk, loaded and compiled as every pack is."""
    environment: dict[str, Any] = {} if task.disk is None else {"resources": {"disk": task.disk}}
    if (image := image_of(ground.root)) is not None:
        environment["image"] = image
    pack = write_pack(ground.directory / "pack", task.tests, task.evaluation, dict(task.public), environment)
    return load_task(pack)


def image_of(root: Root) -> str | None:
    return root.reference if isinstance(root, ImageRoot) else None


def write_pack(
    directory: Path,
    tests: Mapping[str, str],
    evaluation: Mapping[str, Any],
    public: Mapping[str, str],
    environment: Mapping[str, Any],
) -> Path:
    """A pack with one terminal task whose working directory is `/app`."""
    for part, files in (("hidden", tests), ("assets", public)):
        (directory / part).mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            (place := directory / part / path).parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    row = {
        "id": "task",
        "family": "terminal_task",
        "input": {"instructions": "Do it."},
        "eval": dict(evaluation),
        "assets": [{"path": path} for path in public],
        "environment": {"workdir": "/app", **environment},
    }
    (directory / "manifest.yaml").write_text("id: terminal\nversion: 1\n", encoding="utf-8")
    (directory / "tasks.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return directory


def load_task(pack: Path) -> SecureBenchTask:
    [task] = compile_benchmark_pack(load_benchmark_pack(pack / "manifest.yaml", pack / "tasks.jsonl"))
    return task


async def produce(task: SecureBenchTask, agent: str, sandbox: Sandbox, store: CandidateStore) -> Production:
    """What the real `command` harness makes of the agent's program. Raises BrokenAgent."""
    config = CommandConfig(command=("python3", "-c", agent), timeout_seconds=AGENT_SECONDS)
    producer = SandboxedProducer(CommandAgent(config), {}, sandbox, SandboxSection(), Outlets())
    request = ProducerRequest(
        task_id=task.id,
        attempt=1,
        kind=family(task.task_type).candidate,
        payload=task.agent_payload(),
        view=task.view_for(Component.AGENT),
        environment=task.environment,
        store=store,
    )
    production = await producer.produce(request)
    if production.failure is not None and production.failure.reason.startswith("producer_"):
        raise BrokenAgent(f"{production.failure}: {production.stderr[-500:]}")
    return production


async def verify(
    task: SecureBenchTask,
    candidate: CandidateArtifact,
    sandbox: Sandbox,
    store: CandidateStore,
    policy: VerificationPolicy | None = None,
) -> VerificationResult:
    """The verdict of the real verifier."""
    verification = Verification(
        task_id=task.id,
        candidate=candidate,
        evaluator=task.view_for(Component.EVALUATOR),
        tests=task.view_for(Component.TEST_SANDBOX),
        worker=task.view_for(Component.WORKER),
        environment=task.environment,
        sandbox=sandbox,
        store=store,
        policy=policy or VerificationPolicy(),
    )
    return await TerminalTaskVerifier().verify(verification)


def judged(result: VerificationResult) -> Seen:
    reason = str(result.failure_reason or "")
    detail = f"{result.metadata.get('note', '')} {result.stderr[-300:]}".strip()
    if result.status is Status.ERROR:
        return Seen(End.FAULT, detail, reason)
    return Seen(End.REACHED if result.passed else End.MISSED, detail, reason)


def refused(error: CandidateError | None) -> Seen:
    """No candidate, or one that nothing is judged of."""
    return Seen(End.MISSED, str(error), str(error.reason) if error else "")
