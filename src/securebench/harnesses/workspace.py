"""Workspaces for harnesses: built before the agent starts, taken over after everything it started is dead.

Reading and writing large trees happens in a worker thread; what it reports comes back to the loop's thread, and not
more often than someone can read it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import anyio.from_thread
import anyio.to_thread

from securebench._leftovers import staging_directory
from securebench.candidates.artifact import CandidateArtifact
from securebench.errors import CandidateError
from securebench.harnesses.base import ProducerRequest
from securebench.sandboxes.base import Sandbox, Session
from securebench.workspaces.building import WorkspaceRequest, build_workspace
from securebench.workspaces.path_policy import TASK_FILE
from securebench.workspaces.workspace import OnProgress, Workspace

_EVERY = 0.5


@asynccontextmanager
async def open_workspace(
    request: ProducerRequest, sandbox: Sandbox | None, task_file: PurePosixPath = TASK_FILE
) -> AsyncIterator[Workspace]:
    """The workspace of one attempt; its directory is gone afterwards, its pristine tree is in the store."""
    wanted = WorkspaceRequest(
        task_id=request.task_id,
        kind=request.kind,
        view=request.view,
        environment=request.environment,
        payload=request.payload,
        task_file=task_file,
    )
    with staging_directory() as staging:
        yield await build_workspace(wanted, staging, request.store, sandbox, _reporter(request))


async def take(
    workspace: Workspace, session: Session, request: ProducerRequest
) -> tuple[CandidateArtifact | None, CandidateError | None]:
    """The candidate in a stopped session's working directory, or why there is none, which may be that the session
    could not give it out. Raises StoreError, InfrastructureError."""
    try:
        root = session.scratch(request.environment.workdir)
        read = partial(workspace.take, root, on_progress=_reporter(request))
        return await anyio.to_thread.run_sync(read), None
    except CandidateError as error:
        return None, error


def extracted(candidate: CandidateArtifact | None) -> dict[str, Any]:
    """For the record: how the candidate was taken over, what was left out, which digests its trees are stored under."""
    return {"candidate": dict(candidate.metadata)} if candidate is not None else {}


def _reporter(request: ProducerRequest) -> OnProgress | None:
    """Passes on what a worker thread reports, at most every half second for each thing done."""
    listener = request.on_progress
    if listener is None:
        return None
    last: dict[str, float] = {}

    def report(doing: str, files: int, size: int) -> None:
        now = time.monotonic()
        if now - last.get(doing, now - _EVERY) >= _EVERY:
            last[doing] = now
            anyio.from_thread.run_sync(listener, doing, files, size)

    return report
