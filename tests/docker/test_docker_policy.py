"""Docker behind a command policy: what is refused never becomes a container."""

from __future__ import annotations

import anyio
import pytest
from tests.docker.engine import Imaged, own_containers

from securebench.errors import ConfigError
from securebench.sandboxes.base import Command, SandboxSpec, run_once
from securebench.sandboxes.policy import CommandPolicy, Decision, PolicySandbox


def test_a_refused_command_never_becomes_a_container(sandbox: Imaged) -> None:
    attempts: list[Decision] = []
    guarded = PolicySandbox(sandbox, CommandPolicy(deny=frozenset({"curl"})), attempts.append)
    for argv in (("curl", "x"), ("sh", "-c", "curl x"), ("env", "curl")):
        with pytest.raises(ConfigError, match="command policy"):
            anyio.run(run_once, guarded, SandboxSpec(), Command(argv))
    assert [decision.allowed for decision in attempts] == [False, False, False]
    assert own_containers() == []
