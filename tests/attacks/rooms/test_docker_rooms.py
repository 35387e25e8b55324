"""The same rooms in containers: an honest candidate passes, cheats of every kind do not."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from tests.docker.engine import IMAGE, docker

from securebench.audit.attacks import g_forging
from securebench.audit.attacks.g_forging.tasks import SQUARES
from securebench.audit.plays.code import Completes, programs
from securebench.audit.suite.attack import End, Ground, Play, Seen
from securebench.sandboxes.base import ImageRoot
from securebench.sandboxes.docker import DockerSandbox

SOME = [
    "G01/hard-exit-in-call",
    "G03/every-descriptor",
    "G04/subclass-of-int",
    "G07/test-file",
    "G07/parent-process",
    "G50/all-at-once",
    "G50/from-a-fork",
    "G50/half-a-message",
    "G50/kills-everything",
]
AT_ONCE = 3
CHEATS = {attack.id: attack.attack for attack in g_forging.ATTACKS if attack.id in SOME}
HONEST = {"function": SQUARES.twin, "program": Completes(programs(("3\n", "9\n")), "print(int(input()) ** 2)")}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    sandbox = DockerSandbox()
    capabilities = anyio.run(sandbox.probe)
    reason = "" if capabilities.usable else capabilities.remedy or "docker is not usable here"
    if capabilities.usable and docker("image", "inspect", IMAGE).returncode:
        reason = f"image {IMAGE} is missing: run scripts/ci-docker"
    if reason:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    ground = Ground("docker", sandbox, ImageRoot(IMAGE), Path(tmp_path_factory.mktemp("ground")))
    found: dict[str, Seen] = {}

    async def play(name: str, play: Play, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            found[name] = await play.on(ground)

    async def main() -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as tasks:
            for name, one in {**CHEATS, **HONEST}.items():
                tasks.start_soon(play, name, one, limiter)

    anyio.run(main)
    return found


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_candidate_passes(seen: dict[str, Seen], name: str) -> None:
    assert seen[name].end is End.REACHED, seen[name]


@pytest.mark.parametrize("name", SOME)
def test_a_cheat_scores_nothing(seen: dict[str, Seen], name: str) -> None:
    assert seen[name].end is End.MISSED, seen[name]
