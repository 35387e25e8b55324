"""A model's reply as a candidate: the one reading of it, whoever asked the model. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.extraction import artifact_for, text_from_stdout
from securebench.errors import CandidateError, FailureReason
from securebench.families.base import CandidateKind
from securebench.harnesses.code_answer import code_answer, patch_answer


def reply_candidate(task_id: str, kind: CandidateKind, reply: str, public: Mapping[str, Any]) -> CandidateArtifact:
    """The text, program or patch that a reply is, given the task's public fields. Raises CandidateError."""
    text = text_from_stdout(reply.encode("utf-8", "surrogatepass"), truncated=False)
    if not text.strip():
        raise CandidateError(FailureReason.NO_ANSWER, "the model's reply holds no text")
    if kind is CandidateKind.CODE:
        code = code_answer(text, public)
        artifact = artifact_for(task_id, kind, code.text, code.source)
        return replace(artifact, metadata={**artifact.metadata, "joined": str(code.joined)})
    if kind is CandidateKind.PATCH:
        return artifact_for(task_id, kind, *patch_answer(text))
    return artifact_for(task_id, kind, text, "whole")
