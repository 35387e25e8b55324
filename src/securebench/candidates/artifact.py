"""`CandidateArtifact`: the bounded, content-addressed thing a verifier judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from securebench._canonical import digest_bytes
from securebench.families.base import CandidateKind


@dataclass(frozen=True, slots=True)
class CandidateArtifact:
    """One candidate. `text` holds text and code; the other kinds are filled by their extraction modes."""

    task_id: str
    kind: CandidateKind
    text: str | None = None
    patch: str | None = None
    workspace: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def content(self) -> str:
        """The one representation that is filled."""
        return next(part for part in (self.text, self.patch, self.workspace, "") if part is not None)

    @property
    def digest(self) -> str:
        return digest_bytes(self.content.encode("utf-8", "surrogatepass"))

    @property
    def size(self) -> int:
        return len(self.content.encode("utf-8", "surrogatepass"))
