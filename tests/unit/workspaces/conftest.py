"""Workspaces built from real packs, without a sandbox: tests play the agent in the seed directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from tests.packs import Row, tasks, write_pack

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.families.registry import family
from securebench.resources import Component
from securebench.workspaces.building import WorkspaceRequest, build_workspace
from securebench.workspaces.workspace import Workspace

Build = Callable[..., Workspace]


@pytest.fixture
def store(tmp_path: Path) -> CandidateStore:
    return CandidateStore(tmp_path / "store")


@pytest.fixture
def build(tmp_path: Path, store: CandidateStore) -> Build:
    """`build(row, files)`: the workspace of a row in a pack with these files."""
    count = 0

    def make(
        row: Row, files: dict[str, str | bytes] | None = None, pack: Path | None = None, **changes: Any
    ) -> Workspace:
        nonlocal count
        count += 1
        pack = pack or write_pack(tmp_path / f"pack{count}", [row], files=files or {"hidden/x": "x"})
        task = tasks(pack)[0]
        request = WorkspaceRequest(
            task.id,
            family(task.task_type).candidate,
            task.view_for(Component.AGENT),
            task.environment,
            task.agent_payload(),
            **changes,
        )
        (staging := tmp_path / f"staging{count}").mkdir()
        return asyncio.run(build_workspace(request, staging, store))

    return make


def take(workspace: Workspace) -> CandidateArtifact:
    """What an agent that worked in the seed directory produced."""
    root = os.open(workspace.seed, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return workspace.take(root)
    finally:
        os.close(root)


def repo_row(repo: str = "repo", **more: Any) -> Row:
    return {
        "id": "patch-1",
        "family": "repo_patch",
        "input": {"repo": repo, "base_commit": "x", "instructions": "Fix it."},
        "eval": {"tests": {"source": "command", "command": ["true"]}},
        "assets": [{"path": repo}],
    } | more


def terminal_row(**more: Any) -> Row:
    return {
        "id": "terminal-1",
        "family": "terminal_task",
        "input": {"instructions": "Do it."},
        "eval": {"checker": {"source": "script", "path": "x"}},
    } | more


TASK_FILE = PurePosixPath("task.json")
