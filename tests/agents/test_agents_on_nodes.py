"""The real agents on nodes of a cluster: their models are asked from the head, whose key stays there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.agents.agent_bench import CODE, HARNESSES, AgentBench, need_tool
from tests.agents.test_real_agents import WRITE_CODE, check_record
from tests.e2e.workbench import need_bubblewrap, securebench

from securebench.testing.model_server import KEY, Scene, Turn, mentions, model_server, run_command

SCENES = [Scene(mentions("twice x"), [Turn("I write it.", [run_command(WRITE_CODE)]), Turn("Done.")])]


@pytest.mark.slow
@pytest.mark.parametrize("harness", ["codex"])  # Claude Code goes the same way, and a start of Ray takes seconds
def test_a_real_agent_on_a_node_asks_models_through_the_head(harness: str, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    need_bubblewrap()
    need_tool(harness)
    bench = AgentBench(tmp_path).rows(CODE)
    with model_server([Turn("What?")], scenes=SCENES) as model:
        done = bench.start(HARNESSES[harness], model, "--executor", "ray", sandbox={"backend": "bubblewrap"})
        keys = {request.key for request in model.requests}
    assert done.code == 0, done.err
    (record,) = bench.records()
    assert record["verification_status"] == "passed", record
    assert set(record["nodes"]) == {"produce", "verify"}
    assert keys == {KEY}, "the real key reached the model's server, and nothing else did"
    check_record(bench, harness, "bubblewrap", record)
    tools = json.loads((bench.output / "plan.json").read_text())["harness"]["tools"]
    assert [label.split()[0] for label in tools] == [harness]
    assert securebench("verify", bench.output).code == 0
