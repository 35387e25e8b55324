"""The `command` harness: a fixed command in a fresh sandbox, its output or one file as the candidate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.extraction import artifact_for, text_from_file, text_from_stdout
from securebench.errors import CandidateError, ConfigError, FailureReason, ProducerError
from securebench.families.base import CandidateKind
from securebench.harness_schema import CommandConfig
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.workspace import extracted, open_workspace, take
from securebench.sandboxes.base import (
    Command,
    HostRoot,
    ImageRoot,
    Limits,
    Outcome,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Scratch,
    Session,
)
from securebench.tester_config import SandboxSection
from securebench.workspaces.workspace import Workspace

DEFAULT_TIMEOUT = 300.0
DEFAULT_DISK = 256 * 2**20
_ENDED = {
    Outcome.TIMEOUT: (FailureReason.PRODUCER_TIMEOUT, "the command ran out of time"),
    Outcome.OUTPUT_LIMIT: (FailureReason.PRODUCER_OUTPUT_LIMIT, "the command wrote more output than allowed"),
    Outcome.OUT_OF_MEMORY: (FailureReason.PRODUCER_MEMORY_LIMIT, "the command used more memory than allowed"),
    Outcome.CPU_LIMIT: (FailureReason.PRODUCER_TIMEOUT, "the command used more processor time than allowed"),
    Outcome.SIGNALLED: (FailureReason.PRODUCER_FAILED, "the command was ended by a signal"),
}


class CommandHarnessProducer:
    """Runs `harness.config.command` where the task's public files are, and nothing else is."""

    def __init__(self, config: CommandConfig, env: Mapping[str, str], sandbox: Sandbox, limits: SandboxSection) -> None:
        self.config = config
        self.env = dict(env)
        self.sandbox = sandbox
        self.limits = limits
        if config.allowed_domains:
            raise ConfigError("harness.config.allowed_domains needs the egress proxy, which this version does not have")

    async def produce(self, request: ProducerRequest) -> Production:
        task_file = PurePosixPath(self.config.task_file)
        async with (
            open_workspace(request, self.sandbox, task_file) as workspace,
            self.sandbox.open(self._spec(request, workspace)) as session,
        ):
            command = self._command(request)
            if request.on_command is not None:
                request.on_command(command.argv)
            result = await session.run(command)
            await session.stop()
            candidate, failure = await self._extract(request, session, result, workspace)
        return Production(
            candidate=candidate,
            failure=_failure(result) or failure,
            stdout=result.stdout.data.decode("utf-8", "replace"),
            stderr=result.stderr.data.decode("utf-8", "replace"),
            metadata=_metadata(result, self.sandbox.name) | extracted(candidate),
        )

    def _spec(self, request: ProducerRequest, workspace: Workspace) -> SandboxSpec:
        environment, limits = request.environment, self.limits
        timeouts = [t for t in (environment.timeout_seconds, self.config.timeout_seconds) if t is not None]
        defaults = Limits()
        disk = environment.disk or _size(limits.disk) or DEFAULT_DISK + workspace.size
        return SandboxSpec(
            root=ImageRoot(environment.image) if environment.image else HostRoot(),
            mounts=(Scratch(environment.workdir, disk, workspace.seed),),
            env=self.env,
            cwd=environment.workdir,
            limits=Limits(
                wall_seconds=min(timeouts, default=DEFAULT_TIMEOUT),
                memory=environment.memory or _size(limits.memory) or defaults.memory,
                cpus=environment.cpus or limits.cpus,
                pids=environment.pids or limits.pids or defaults.pids,
            ),
        )

    def _command(self, request: ProducerRequest) -> Command:
        command = self.config.command
        argv = ("sh", "-lc", command) if isinstance(command, str) else command
        return Command(argv, on_output=request.on_output)

    async def _extract(
        self, request: ProducerRequest, session: Session, result: SandboxResult, workspace: Workspace
    ) -> tuple[CandidateArtifact | None, CandidateError | None]:
        """A workspace is taken whole, a patch as what changed, unless a file is declared; all else is text."""
        path = self.config.artifact_path
        if request.kind is CandidateKind.WORKSPACE or (request.kind is CandidateKind.PATCH and path is None):
            return await take(workspace, session, request)
        try:
            if path is None:
                text = text_from_stdout(result.stdout.data, result.stdout.truncated)
            else:
                text = text_from_file(session.scratch(request.environment.workdir), PurePosixPath(path))
        except CandidateError as error:
            return None, error
        return artifact_for(request.task_id, request.kind, text, "stdout" if path is None else "file"), None


def _size(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None


def _failure(result: SandboxResult) -> ProducerError | None:
    """Whether the agent did its part. Its exit code can only count against it."""
    if result.outcome in _ENDED:
        return ProducerError(*_ENDED[result.outcome])
    if result.exit_code != 0:
        return ProducerError(FailureReason.PRODUCER_FAILED, f"the command ended with exit code {result.exit_code}")
    return None


def _metadata(result: SandboxResult, backend: str) -> dict[str, Any]:
    return {
        "harness": "command",
        "sandbox": backend,
        "outcome": str(result.outcome),
        "exit_code": result.exit_code,
        "signal": result.signal,
        "stdout_bytes": result.stdout.total,
        "stderr_bytes": result.stderr.total,
        "wall_seconds": round(result.usage.wall_seconds, 4),
        "cpu_seconds": result.usage.cpu_seconds,
        "peak_memory": result.usage.peak_memory,
        "guarantees": sorted(result.guarantees),
        "fingerprint": dict(result.fingerprint),
    }
