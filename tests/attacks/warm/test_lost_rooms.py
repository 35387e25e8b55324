"""A room that the host takes away is nobody's verdict; one that a candidate brings down is the candidate's."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.attacks.warm.servers import do, in_warm_rooms
from tests.unit.engine.test_processes import SQUARE, soon
from tests.unit.grading.test_grader import RIGHT, write

from securebench.engine import attempt, court
from securebench.errors import SandboxError
from securebench.grading import Grader
from securebench.sandboxes._bubblewrap.cgroups import Counters, Group
from securebench.sandboxes._warm.server import Child, ForkServer
from securebench.sandboxes.base import Limits, Outcome, Sandbox, SandboxSpec
from securebench.sandboxes.warm import WarmSandbox, warmed
from securebench.verifiers.base import VerificationResult

SLEEPS = "    import time\n    time.sleep(5)\n    return x * x\n"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[WarmSandbox]:
    """The warm sandboxes of all courts that are opened."""
    found: list[WarmSandbox] = []

    @asynccontextmanager
    async def noted(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
        async with warmed(sandbox) as warm:
            if isinstance(warm, WarmSandbox):
                found.append(warm)
            yield warm

    monkeypatch.setattr(court, "warmed", noted)
    monkeypatch.setattr(attempt, "_WAITS", (0.01, 0.01))
    return found


def running(server: ForkServer) -> list[Child]:
    """Its rooms in which somebody runs."""
    return [child for child in server._living.values() if child not in server._ready]


def busy(sandbox: WarmSandbox, room: str) -> list[ForkServer]:
    """The fork servers of such rooms in which somebody runs."""
    return [
        server
        for server in sandbox.pool._keys
        if any(room in name for name, _ in server.program.modules) and running(server)
    ]


def kill(server: ForkServer) -> None:
    """As the host's out-of-memory killer does."""
    child = running(server)[0]
    status = Path(f"/proc/{child.pid}/status").read_text()
    os.kill(int(re.findall(r"PPid:\s+(\d+)", status)[0]), signal.SIGKILL)


@pytest.mark.parametrize("room", ["worker", "suite"])
def test_verdict_whose_fork_server_the_host_kills_is_judged_again(
    room: str, made: list[WarmSandbox], tmp_path: Path
) -> None:
    async def main() -> VerificationResult:
        async with Grader(write(tmp_path / "pack", SQUARE), processes=0) as grader:
            assert (await grader.grade("square", RIGHT)).passed
            results = []

            async def judge() -> None:
                results.append(await grader.grade("square", SLEEPS))

            async with anyio.create_task_group() as group:
                group.start_soon(judge)
                await soon(lambda: busy(made[-1], "worker") and busy(made[-1], room), 60)
                await anyio.sleep(0.5)
                kill(busy(made[-1], room)[0])
            return results[0]

    result = anyio.run(main)
    assert (result.passed, result.failure_reason) == (True, None)


SMALL = SandboxSpec(cwd="/tmp", limits=Limits(wall_seconds=120, memory=200 << 20, pids=32))


async def _ended_with_its_server(sandbox: WarmSandbox) -> Outcome | None:
    """How a command ended whose server was killed; None where that is the host's fault."""
    outcomes: list[Outcome | None] = []

    async def run() -> None:
        try:
            outcomes.append((await do(sandbox, "import time; time.sleep(100)", SMALL)).outcome)
        except SandboxError:
            outcomes.append(None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await soon(
            lambda: any(server.spec == SMALL and server.used and running(server) for server in sandbox.pool._keys)
        )
        await anyio.sleep(0.3)
        kill(next(server for server in sandbox.pool._keys if server.spec == SMALL and running(server)))
    return outcomes[0]


def test_server_that_falls_while_its_memory_is_used_up_is_no_way_to_another_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel counts how often there was none left: that a candidate can bring about, and nothing else."""
    assert in_warm_rooms(_ended_with_its_server) is None
    real, read = Group.counters, 0

    def starved(group: Group) -> Counters:
        nonlocal read
        read += 1
        return replace(real(group), at_limit=read)

    monkeypatch.setattr(Group, "counters", starved)
    assert in_warm_rooms(_ended_with_its_server) is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize(
    "candidate",
    [
        "    import os\n    os.kill(os.getpid(), 9)\n",
        "    import os\n    os.kill(-1, 9)\n    os.kill(1, 9)\n    os._exit(0)\n",
        "    import os\n    os.closerange(0, 100)\n    while True: pass\n",
        "    import ctypes\n    ctypes.string_at(0)\n",
        "    x = []\n    while True: x.append(bytearray(1 << 24))\n",
        "    import os\n    while True:\n        try: os.fork()\n        except OSError: os._exit(0)\n",
        "    import os, fcntl\n    k = []\n    while True:\n        try:\n            k.append(os.pipe()); fcntl.fcntl(k[-1][1], 1031, 1 << 20); os.write(k[-1][1], bytes(1 << 20))\n"
        "        except OSError:\n            if os.fork() == 0: k = []\n",
    ],
    ids=["kills itself", "kills all", "hangs up", "crashes", "memory", "processes", "the kernel's memory"],
)
def test_nothing_a_candidate_does_to_its_room_is_tried_again(
    candidate: str, made: list[WarmSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeated: list[str] = []
    real = attempt.Attempt.record

    async def record(self: attempt.Attempt) -> attempt.Done:
        repeated.extend(str(one) for one in self.repeats)
        return await real(self)

    monkeypatch.setattr(attempt.Attempt, "record", record)
    tests = {"source": "cases", "cases": [{"args": [3], "expected": 9}], "timeout_seconds": 10}
    row = {**SQUARE, "eval": {"tests": tests}}
    with Grader.sync(write(tmp_path / "pack", row), processes=0) as grader:
        assert grader.grade("square", RIGHT).passed
        result = grader.grade("square", candidate)
    assert made
    assert (result.status, repeated) == ("failed", [])
