"""The producer of everything that runs in a sandbox: a fixed command, or an agent's command-line tool.

Before: the task's public files in a fresh sandbox, the ways out answered by us. After: everything dead, then what is
left is taken over as hostile bytes. Whatever ended the program, what it had produced by then is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from securebench._canonical import digest_value
from securebench._tasks import side_tasks
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.extraction import artifact_for, text_from_file, text_from_stdout
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError, FailureReason, InfrastructureError, ProducerError
from securebench.families.base import CandidateKind
from securebench.harnesses.agent import Agent, Invocation
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.evidence import gather
from securebench.harnesses.outlets import Outlet, Outlets
from securebench.harnesses.recording import Recording
from securebench.harnesses.workspace import extracted, open_workspace, take
from securebench.sandboxes.base import (
    Command,
    Limits,
    Outcome,
    Output,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Scratch,
    Session,
    root_of,
)
from securebench.tester_config import SandboxSection
from securebench.workspaces.workspace import Workspace

DEFAULT_TIMEOUT = 300.0
DEFAULT_DISK = 256 * 2**20
MAX_SHOWN = 64 * 1024
BUDGET_GRACE = 10.0
"""Seconds an agent has to come to its end by itself once no model answers it any more."""

_ENDED = {
    Outcome.TIMEOUT: (FailureReason.PRODUCER_TIMEOUT, "the command ran out of time"),
    Outcome.OUTPUT_LIMIT: (FailureReason.PRODUCER_OUTPUT_LIMIT, "the command wrote more output than allowed"),
    Outcome.OUT_OF_MEMORY: (FailureReason.PRODUCER_MEMORY_LIMIT, "the command used more memory than allowed"),
    Outcome.CPU_LIMIT: (FailureReason.PRODUCER_TIMEOUT, "the command used more processor time than allowed"),
    Outcome.SIGNALLED: (FailureReason.PRODUCER_FAILED, "the command was ended by a signal"),
}


@dataclass(frozen=True, slots=True)
class SandboxedProducer:
    """Runs an agent where the task's public files are, and nothing else is."""

    agent: Agent
    env: Mapping[str, str]
    sandbox: Sandbox
    limits: SandboxSection
    outlets: Outlets

    def memory(self, environment: TaskEnvironment) -> int:
        return environment.memory or _size(self.limits.memory) or self.agent.memory or Limits().memory

    async def produce(self, request: ProducerRequest) -> Production:
        if (spent := self.outlets.spent) is not None:
            return Production(None, _over_budget(spent), metadata={"harness": self.agent.name})
        async with self.outlets.open(request) as outlet:
            invocation = self.agent.invocation(request, outlet.models)
            async with (
                open_workspace(request, self.sandbox, self.agent.task_file) as workspace,
                self.sandbox.open(self._spec(request, workspace, invocation, outlet)) as session,
            ):
                if request.on_command is not None:
                    await request.on_command(invocation.argv)
                ended = await _run(session, outlet, invocation, request)
                await session.stop()
                candidate, failure = await _extract(request, session, ended, workspace, invocation)
            fault = await outlet.fault()
        # In a thread: an agent may print much, and others must not wait while it is read.
        evidence = await anyio.to_thread.run_sync(gather, request, self.agent, invocation, ended.stdout, outlet)
        return Production(
            candidate=candidate,
            failure=_failure(ended) or failure,
            fault=fault,
            stdout=_shown(ended.stdout, invocation),
            stderr=_shown(ended.stderr, invocation),
            metadata=self._metadata(request, ended, outlet) | extracted(candidate),
            usage=outlet.usage,
            evidence=evidence,
        )

    def _spec(
        self, request: ProducerRequest, workspace: Workspace, invocation: Invocation, outlet: Outlet
    ) -> SandboxSpec:
        environment, limits = request.environment, self.limits
        timeouts = [t for t in (environment.timeout_seconds, self.agent.timeout_seconds) if t is not None]
        defaults = Limits()
        disk = environment.disk or _size(limits.disk) or DEFAULT_DISK + workspace.size
        return SandboxSpec(
            root=root_of(environment.image),
            mounts=(Scratch(environment.workdir, disk, workspace.seed), *invocation.mounts),
            env={**outlet.proxy, **self.env, **outlet.models, **invocation.env},
            cwd=environment.workdir,
            network=outlet.network,
            listeners=outlet.listeners,
            limits=Limits(
                wall_seconds=min(timeouts, default=DEFAULT_TIMEOUT),
                memory=self.memory(environment),
                cpus=environment.cpus or limits.cpus,
                pids=environment.pids or limits.pids or defaults.pids,
                output=invocation.output,
            ),
        )

    def _metadata(self, request: ProducerRequest, ended: Ended, outlet: Outlet) -> dict[str, Any]:
        described = dict(self.agent.describe(request))
        shown = {
            "harness": self.agent.name,
            "sandbox": self.sandbox.name,
            "agent": described,
            "harness_digest": digest_value({"harness": self.agent.name, **described, "env": dict(self.env)}),
            "reachable": outlet.reachable,
            "stdout_bytes": ended.stdout.total,
            "stderr_bytes": ended.stderr.total,
        }
        if (result := ended.result) is None:
            return shown | {"outcome": str(FailureReason.BUDGET_EXHAUSTED)}
        return shown | {
            "outcome": str(result.outcome),
            "exit_code": result.exit_code,
            "signal": result.signal,
            "wall_seconds": round(result.usage.wall_seconds, 4),
            "cpu_seconds": result.usage.cpu_seconds,
            "peak_memory": result.usage.peak_memory,
            "guarantees": sorted(result.guarantees),
            "fingerprint": dict(result.fingerprint),
        }


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that is dead, and what it had printed. `result` is None for one we ended for its budget."""

    result: SandboxResult | None
    stdout: Output
    stderr: Output
    spent: str | None = None  # the budget that was used up when it ended


async def _run(session: Session, outlet: Outlet, invocation: Invocation, request: ProducerRequest) -> Ended:
    """Raises InfrastructureError when the command could not even be started."""
    recording = Recording(request.on_output, limit=invocation.output)
    result = None
    async with outlet.serving(session), side_tasks() as tasks:

        async def end_when_spent() -> None:
            await outlet.out_of_budget()
            await anyio.sleep(BUDGET_GRACE)
            tasks.cancel_scope.cancel()

        tasks.start_soon(end_when_spent)
        result = await session.run(Command(invocation.argv, invocation.stdin, on_output=recording.take))
    if result is None:
        return Ended(None, recording.stdout.output, recording.stderr.output, outlet.exhausted)
    if not result.started:
        said = result.stderr.data.decode("utf-8", "replace").strip()
        raise InfrastructureError(f"the harness could not be started: {said}")
    return Ended(result, result.stdout, result.stderr, outlet.exhausted)


async def _extract(
    request: ProducerRequest, session: Session, ended: Ended, workspace: Workspace, invocation: Invocation
) -> tuple[CandidateArtifact | None, CandidateError | None]:
    """A workspace is taken whole, a patch as what changed, unless a file is declared; all else is text."""
    path = invocation.artifact
    if request.kind is CandidateKind.WORKSPACE or (request.kind is CandidateKind.PATCH and path is None):
        return await take(workspace, session, request)
    try:
        if path is None:
            text = text_from_stdout(ended.stdout.data, ended.stdout.truncated)
        else:
            text = text_from_file(session.scratch(request.environment.workdir), path)
    except CandidateError as error:
        return None, error
    return artifact_for(request.task_id, request.kind, text, "stdout" if path is None else "file"), None


def _shown(output: Output, invocation: Invocation) -> str:
    """For the record, which stays small: what an agent's tool printed is in the evidence whole."""
    text = output.data.decode("utf-8", "replace")
    return text if invocation.prompt is None or len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} […cut]"


def _size(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None


def _over_budget(which: str) -> ProducerError:
    return ProducerError(FailureReason.BUDGET_EXHAUSTED, f"the budget is used up: {which}")


def _failure(ended: Ended) -> ProducerError | None:
    """Whether the agent did its part. Its exit code can only count against it."""
    result = ended.result
    if ended.spent is not None or result is None:
        return _over_budget(ended.spent or "")
    if result.outcome in _ENDED:
        return ProducerError(*_ENDED[result.outcome])
    if result.exit_code != 0:
        return ProducerError(FailureReason.PRODUCER_FAILED, f"the command ended with exit code {result.exit_code}")
    return None
