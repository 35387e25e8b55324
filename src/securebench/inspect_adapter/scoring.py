"""A scorer of Inspect that asks SecureBench's court. The model's reply is read as the chat harness reads one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState

from securebench.benchmark_compiler import compile_benchmark_row
from securebench.benchmark_pack import find_pack, load_benchmark_pack
from securebench.candidates.artifact import CandidateArtifact
from securebench.errors import CandidateError, ConfigError
from securebench.families.base import CandidateKind
from securebench.harnesses.replies import reply_candidate
from securebench.inspect_adapter.graders import Wish, graded
from securebench.verifiers.base import Status, VerificationResult


@scorer(metrics=[accuracy(), stderr()])
def pack_scorer(pack: str | Path, config: str | Path | None = None, processes: int | None = None) -> Scorer:
    """Judges the reply to a task of `pack` with the pack's own verifier: 1 passed, 0 did not. `config` is a tester
    YAML, for its verification policy, sandbox and judge; `processes` judge, as many as there are cores unless said.

    Raises ConfigError here for a pack that does not load. A score raises what is nobody's failure: ConfigError,
    InfrastructureError."""
    loaded = load_benchmark_pack(*find_pack(Path(pack)))
    wish = Wish(processes, None if config is None else Path(config))
    rows = {entry.id: index for index, entry in enumerate(loaded.entries)}

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 — what is right is not in the sample
        name = str(state.sample_id)
        if name not in rows:
            raise ConfigError(f"the pack has no task {name[:100]!r}; is the data set that of this pack?")
        task = compile_benchmark_row(loaded, loaded[rows[name]])
        kind, public = CandidateKind(task.candidate_kind), task.agent_payload()["input"]
        try:
            candidate = reply_candidate(name, kind, state.output.completion, public)
        except CandidateError as error:
            said = {"status": str(Status.FAILED), "failure_reason": str(error.reason), "assurance": None}
            return Score(value=0.0, explanation=str(error), metadata=said)
        return _score(await graded(loaded, wish, name, _as_sample(candidate)), candidate)

    return score


def _as_sample(candidate: CandidateArtifact) -> dict[str, str]:
    """As it would stand in a samples file: what was read from the reply is judged as it is."""
    if candidate.patch is not None:
        return {"model_patch": candidate.patch}
    return {"solution": candidate.text or ""}


def _score(result: VerificationResult, candidate: CandidateArtifact) -> Score:
    reason = None if result.failure_reason is None else str(result.failure_reason)
    told: dict[str, Any] = {
        "status": str(result.status),
        "failure_reason": reason,
        "assurance": None if result.assurance is None else str(result.assurance),
        "controls": list(result.controls),
        "read_from": candidate.metadata.get("source"),
    }
    more = result.metadata.get("message") or result.metadata.get("note")
    words = "passed" if result.passed else f"{reason}: {more}" if more else reason
    return Score(value=result.score, explanation=words, metadata=told)
