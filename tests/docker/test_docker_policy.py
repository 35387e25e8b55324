"""Docker behind a command policy: what is allowed behaves as without it, what is refused never becomes a container."""

from __future__ import annotations

import anyio
import pytest
from tests.conformance.sandbox.box import Box, text, under_policy
from tests.docker.engine import Imaged, own_containers

from securebench.errors import ConfigError
from securebench.sandboxes.base import Command, Limits, Outcome, SandboxSpec, Scratch, run_once
from securebench.sandboxes.policy import CommandPolicy, Decision, PolicySandbox


def test_allowed_commands_behave_as_without_a_policy(sandbox: Imaged) -> None:
    box = Box(under_policy(sandbox))
    assert text(box.sh("echo hello")) == "hello"
    assert box.sh("exit 3").exit_code == 3
    assert box.run("sleep", "60", limits=Limits(wall_seconds=1)).outcome is Outcome.TIMEOUT


def test_a_session_keeps_its_scratch_under_a_policy(sandbox: Imaged) -> None:
    async def main() -> bytes:
        async with under_policy(sandbox).open(SandboxSpec(mounts=(Scratch("/work"),), cwd="/work")) as session:
            await session.run(Command(("/bin/sh", "-c", "echo kept > file")))
            return (await session.run(Command(("cat", "file")))).stdout.data

    assert anyio.run(main) == b"kept\n"


def test_a_refused_command_never_becomes_a_container(sandbox: Imaged) -> None:
    attempts: list[Decision] = []
    guarded = PolicySandbox(sandbox, CommandPolicy(deny=frozenset({"curl"})), attempts.append)
    for argv in (("curl", "x"), ("sh", "-c", "curl x"), ("env", "curl")):
        with pytest.raises(ConfigError, match="command policy"):
            anyio.run(run_once, guarded, SandboxSpec(), Command(argv))
    assert [decision.allowed for decision in attempts] == [False, False, False]
    assert own_containers() == []
