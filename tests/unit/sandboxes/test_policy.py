"""The command policy decides by executable name, and every attempt is on record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from securebench.errors import ConfigError
from securebench.sandboxes.base import Command, SandboxSpec, run_once
from securebench.sandboxes.host import HostSandbox
from securebench.sandboxes.policy import CommandPolicy, Decision, PolicySandbox

ANYTHING = SandboxSpec(require=frozenset())

DECISIONS = [
    # policy, argv, allowed
    (CommandPolicy(), ("ls", "-l"), True),
    (CommandPolicy(deny=frozenset({"curl"})), ("curl", "x"), False),
    (CommandPolicy(deny=frozenset({"curl"})), ("/usr/bin/curl", "x"), False),
    (CommandPolicy(deny=frozenset({"curl"})), ("/usr/../bin/curl",), False),
    (CommandPolicy(deny=frozenset({"curl"})), ("env", "curl"), False),
    (CommandPolicy(deny=frozenset({"curl"})), ("timeout", "5", "curl"), False),
    (CommandPolicy(deny=frozenset({"curl"})), ("sh", "-c", "curl x"), False),
    (CommandPolicy(deny=frozenset({"curl"})), ("bash", "-lc", "curl x"), False),
    (CommandPolicy(deny=frozenset({"curl"})), ("bash", "script.sh"), True),
    (CommandPolicy(deny=frozenset({"curl"})), ("curly",), True),
    (CommandPolicy(allow=frozenset({"python3"})), ("python3", "-c", "1"), True),
    (CommandPolicy(allow=frozenset({"python3"})), ("python",), False),
    (CommandPolicy(allow=frozenset({"python3", "env"})), ("env", "python3"), True),
    (CommandPolicy(allow=frozenset({"bash"})), ("bash", "-c", "ls"), False),
    (CommandPolicy(allow=frozenset({"ls"}), deny=frozenset({"ls"})), ("ls",), False),
    (CommandPolicy(), (), False),
    (CommandPolicy(), ("",), False),
    (CommandPolicy(), ("/",), False),
]


@pytest.mark.parametrize("policy, argv, allowed", DECISIONS)
def test_a_command_is_decided_by_its_executable(policy: CommandPolicy, argv: tuple[str, ...], allowed: bool) -> None:
    assert policy.decide(argv).allowed is allowed


def test_a_refused_command_never_reaches_the_backend_and_is_on_record() -> None:
    reached: list[Command] = []
    attempts: list[Decision] = []

    class Recorder(HostSandbox):
        @asynccontextmanager
        async def _open(self, spec: SandboxSpec) -> AsyncIterator[object]:
            async with super()._open(spec) as session:
                run = session.run

                async def recording(command: Command) -> object:
                    reached.append(command)
                    return await run(command)

                session.run = recording
                yield session

    sandbox = PolicySandbox(Recorder(), CommandPolicy(deny=frozenset({"touch"})), attempts.append)
    with pytest.raises(ConfigError, match="touch"):
        anyio.run(run_once, sandbox, ANYTHING, Command(("touch", "/tmp/x")))
    assert reached == []
    anyio.run(run_once, sandbox, ANYTHING, Command(("true",)))
    assert [(decision.executable, decision.allowed) for decision in attempts] == [("touch", False), ("true", True)]
    assert len(reached) == 1
