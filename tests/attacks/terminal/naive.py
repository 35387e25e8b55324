"""The grader that shares a container with the agent: tests copied in, run where the agent left off, exit code believed."""

from __future__ import annotations

from pathlib import Path

import anyio
from tests.attacks.terminal.cheats import Cheat
from tests.attacks.terminal.judging import lay
from tests.attacks.terminal.tasks import TerminalTask

from securebench.sandboxes.base import Command, Limits, Sandbox, SandboxSpec, Scratch, run_once
from securebench.verifiers.rooms.libraries import INSIDE, pytest_mounts


def naive_grade(sandbox: Sandbox, task: TerminalTask, cheat: Cheat, staging: Path) -> bool:
    """In a sandbox all the same: the cheats are real."""
    lay(staging, cheat.workspace)
    lay(staging, task.tests)
    command = "export PATH=/app/bin:$PATH; cd /app; python3 -m pytest -q tests/test_outputs.py"
    spec = SandboxSpec(
        mounts=(Scratch("/app", seed=staging), Scratch("/logs"), *pytest_mounts()),
        env={"PYTHONPATH": f"/app:{INSIDE}", "PATH": "/usr/bin:/bin", "HOME": "/app", "LANG": "C.UTF-8"},
        cwd="/app",
        limits=Limits(wall_seconds=60),
    )
    return anyio.run(run_once, sandbox, spec, Command(("/bin/sh", "-c", command))).ok
