"""`CandidateArtifact`: the bounded, content-addressed thing a verifier judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from securebench._canonical import digest_bytes
from securebench.candidates.captured import Captured
from securebench.candidates.tree import Delta
from securebench.families.base import CandidateKind


class ForTask(Protocol):
    """What a candidate has to know of its task."""

    @property
    def id(self) -> str: ...

    @property
    def candidate_kind(self) -> str: ...


_FILLED = {
    CandidateKind.TEXT: {"text"},
    CandidateKind.CODE: {"text"},
    CandidateKind.PATCH: {"patch", "delta"},
    CandidateKind.WORKSPACE: {"workspace"},
}


@dataclass(frozen=True, slots=True)
class CandidateArtifact:
    """One candidate. Filled is `text` for text and code; `patch`, or `delta` with its rendering as `patch`, for
    patches; `workspace`, the digest of a stored tree, for workspaces."""

    task_id: str
    kind: CandidateKind
    text: str | None = None
    patch: str | None = None
    workspace: str | None = None
    delta: Delta | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    workspace_bytes: int = 0

    @classmethod
    def for_task(
        cls,
        task: ForTask,
        *,
        text: str | None = None,
        patch: str | None = None,
        workspace: Captured | None = None,
        delta: Delta | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> CandidateArtifact:
        """The candidate of a task. Raises ValueError when what is given is not what its family collects."""
        kind = CandidateKind(task.candidate_kind)
        given = {"text": text, "patch": patch, "workspace": workspace, "delta": delta}
        filled = {name for name, value in given.items() if value is not None}
        if not filled or not filled <= _FILLED[kind]:
            raise ValueError(f"a candidate of kind {kind} cannot be made of {', '.join(sorted(filled)) or 'nothing'}")
        return cls(
            task_id=task.id,
            kind=kind,
            text=text,
            patch=patch,
            workspace=None if workspace is None else workspace.tree.digest,
            delta=delta,
            metadata=MappingProxyType(dict(metadata or {})),
            workspace_bytes=0 if workspace is None else workspace.tree.total_bytes,
        )

    @property
    def content(self) -> str:
        """The one representation that is filled, as text; of a delta, its rendering."""
        return next(part for part in (self.text, self.patch, self.workspace, "") if part is not None)

    @property
    def digest(self) -> str:
        """Of what is judged: a delta and not its rendering, a tree and not its name."""
        if self.delta is not None:
            return self.delta.digest
        return self.workspace or digest_bytes(self.content.encode("utf-8", "surrogatepass"))

    @property
    def size(self) -> int:
        """Bytes of content."""
        if self.delta is not None:
            return self.delta.size
        if self.workspace is not None:
            return self.workspace_bytes
        return len(self.content.encode("utf-8", "surrogatepass"))
