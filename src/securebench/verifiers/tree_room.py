"""Room for a candidate's tree: where it is laid out, and where its code runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import CancelScope, to_thread

from securebench._leftovers import staging_directory
from securebench.candidates.tree import Tree
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError, FailureReason
from securebench.sandboxes.base import MIB

DEFAULT_DISK = 1024 * MIB
_BLOCK = 4096


def disk_for(tree: Tree, environment: TaskEnvironment) -> int:
    """The size of the writable directory it is put into. Raises CandidateError where it does not fit: holes take no
    room where an agent works, and filling a disk here must not look like the host's fault."""
    size = environment.disk or DEFAULT_DISK
    needed = tree.total_bytes + _BLOCK * (len(tree.entries) + 1)
    if needed > size:
        raise CandidateError(
            FailureReason.CANDIDATE_TOO_LARGE, f"the files need {needed} bytes where they run, and there are {size}"
        )
    return size


@asynccontextmanager
async def staging() -> AsyncIterator[Path]:
    """A directory of ours for as long as the block lasts. It is removed in a thread: a tree of ten thousand files takes
    seconds, in which other tasks of the run go on."""
    directory = staging_directory()
    path = directory.__enter__()
    try:
        yield path
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(directory.__exit__, None, None, None)
