"""What a session cannot give out is the candidate's failure, told with everything else about the attempt."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio

from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree
from securebench.errors import CandidateError, FailureReason
from securebench.families.base import CandidateKind
from securebench.harnesses.workspace import take
from securebench.workspaces.workspace import Workspace


class Overfull:
    """A stopped session whose scratch exceeds what its backend takes over."""

    def scratch(self, target: str) -> int:
        raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, f"{target} has too many files")


def test_directory_that_cannot_be_given_out_is_the_candidates_failure(tmp_path: Path) -> None:
    workspace = Workspace("t", CandidateKind.WORKSPACE, tmp_path, 0, CandidateStore(tmp_path / "store"), Tree())
    request = SimpleNamespace(environment=SimpleNamespace(workdir="/work"), on_progress=None)

    async def main() -> tuple[Any, CandidateError | None]:
        return await take(workspace, cast("Any", Overfull()), cast("Any", request))

    candidate, failure = anyio.run(main)
    assert candidate is None
    assert failure is not None
    assert failure.reason is FailureReason.CANDIDATE_TOO_LARGE
