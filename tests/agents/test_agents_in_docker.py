"""The same agents in containers, from an image that holds nothing of them."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from tests.agents.agent_bench import CODE, HARNESSES, TERMINAL, AgentBench, need_tool
from tests.agents.test_real_agents import HONEST, LAZY, SEARCH, loot_of
from tests.docker.engine import IMAGE, docker
from tests.e2e.workbench import need_bubblewrap

from securebench.sandboxes.docker import DockerSandbox
from securebench.testing.model_server import KEY, Scene, Turn, mentions, model_server, run_command


@pytest.fixture(scope="module", autouse=True)
def _needs_docker() -> None:
    need_bubblewrap()
    usable = anyio.run(DockerSandbox().probe).usable
    if not usable or docker("image", "inspect", IMAGE).returncode:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(
            "Docker with its test image: scripts/ci-docker"
        )


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_real_agent_does_a_code_task_and_a_terminal_task_in_a_container(harness: str, tmp_path: Path) -> None:
    need_tool(harness)
    bench = AgentBench(tmp_path).rows(CODE, TERMINAL, image=IMAGE)
    with model_server(LAZY, scenes=HONEST) as model:
        done = bench.start(HARNESSES[harness], model, sandbox={"backend": "docker"})
        keys = {request.key for request in model.requests}
    assert done.code == 0, done.err
    records = bench.records()
    assert {record["task_id"]: record["verification_status"] for record in records} == {
        "double": "passed",
        "greet": "passed",
    }, [(record["failure_message"], record["producer_stdout"], record["producer_stderr"]) for record in records]
    assert keys == {KEY}
    assert {record["producer_metadata"]["sandbox"] for record in records} == {"docker"}


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_thief_in_a_container_finds_the_placeholder_only(harness: str, tmp_path: Path) -> None:
    need_tool(harness)
    bench = AgentBench(tmp_path).rows(TERMINAL, image=IMAGE)
    thief = Scene(mentions("greeting.txt"), [Turn("I look around.", [run_command(SEARCH)]), Turn("Done.")])
    with model_server(LAZY, scenes=[thief]) as model:
        done = bench.start(HARNESSES[harness], model, sandbox={"backend": "docker"})
    assert done.code == 0, done.err
    loot = loot_of(bench)
    assert b"sk-securebench-" in loot, "the search itself works: it finds the placeholder"
    assert KEY.encode() not in loot
