"""The real Codex CLI and the real Claude Code CLI do tasks in the embedded sandbox, against a scripted model.

They reach nothing but the broker, hold nothing but a placeholder, and leave a record of what they did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.agents.agent_bench import CODE, HARNESSES, TERMINAL, AgentBench, need_tool
from tests.e2e.workbench import need_bubblewrap

from securebench.candidates.store import CandidateStore
from securebench.testing.model_server import KEY, Scene, Turn, mentions, model_server, run_command

WRITE_CODE = "printf 'def double(x):\\n    return x * 2\\n' > candidate.py"
WRITE_TEXT = "echo hello > greeting.txt"
HONEST = [
    Scene(mentions("twice x"), [Turn("I write it.", [run_command(WRITE_CODE)]), Turn("Done.")]),
    Scene(mentions("greeting.txt"), [Turn("I write it.", [run_command(WRITE_TEXT)]), Turn("Done.")]),
]
LAZY = [Turn("I did it.")]

# What a thief looks through: environment, its own and other processes, files, and the memory it can read.
SEARCH = """
{ env; cat /proc/*/environ /proc/*/cmdline /proc/*/maps 2>/dev/null; find / -xdev -type f -size -200k -newer /proc/1 2>/dev/null | head -c 200000;
  for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ 2>/dev/null; done;
  grep -ras 'sk-real' /workspace /tmp /securebench-home /etc /run /var 2>/dev/null | head -c 20000;
  python3 - <<'PY'
import os, re
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                where = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
                if where and int(where[2], 16) - int(where[1], 16) < 64 << 20:
                    try:
                        memory.seek(int(where[1], 16)); data = memory.read(int(where[2], 16) - int(where[1], 16))
                    except OSError: continue
                    for found in re.findall(rb"sk-[a-z]+-[A-Za-z0-9_-]{8,}", data): print(found.decode())
    except OSError as error: print(pid, error.strerror)
PY
} > loot.txt 2>&1
""".replace("{ env;", "{ env; ls -la /proc/*/fd 2>/dev/null;")


def loot_of(bench: AgentBench) -> bytes:
    """What the search wrote into the workspace that was the candidate."""
    (record,) = bench.records()
    store = CandidateStore(bench.output / "candidates")
    tree = store.load(record["candidate_workspace"])
    (loot,) = [store.read(entry.digest, 1 << 30) for entry in tree.files if str(entry.path) == "loot.txt"]
    return loot


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> str:
    need_bubblewrap()
    need_tool(request.param)
    return str(request.param)


def test_a_real_agent_does_a_code_task_and_a_terminal_task(harness: str, tmp_path: Path) -> None:
    bench = AgentBench(tmp_path).rows(CODE, TERMINAL)
    with model_server(LAZY, scenes=HONEST) as model:
        done = bench.start(HARNESSES[harness], model, "--show-agent-output")
        keys = {request.key for request in model.requests}
    assert done.code == 0, done.err
    records = {record["task_id"]: record for record in bench.records()}
    assert {name: record["verification_status"] for name, record in records.items()} == {
        "double": "passed",
        "greet": "passed",
    }, records
    assert keys == {KEY}, "the real key reached the model's server, and nothing else did"
    for record in records.values():
        assert record["usage"]["models"]["output_tokens"] >= 10
        assert record["digests"]["harness"].startswith("sha256:")
        assert record["producer_metadata"]["agent"]["integrity"]
        assert record["producer_metadata"]["reachable"] == ["broker"]
        told = json.loads(bench.evidence(record, "trajectory.json"))
        assert told["agent"]["name"] == harness
        assert [step["source"] for step in told["steps"]][:2] == ["user", "agent"]
        assert any(call for step in told["steps"] for call in step.get("tool_calls", ()))
        assert told["final_metrics"]["total_completion_tokens"] == record["usage"]["models"]["output_tokens"]
        exchanges = json.loads(bench.evidence(record, "egress.json"))["exchanges"]
        assert all(exchange["refused"] is None for exchange in exchanges if exchange["method"] == "POST"), exchanges
    everything = b"".join(path.read_bytes() for path in bench.output.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    trace = (bench.output / "agent-trace.log").read_text()
    assert {line.split(" │ ")[0] for line in trace.splitlines()} == {"double #1", "greet #1"}


def test_an_agent_that_only_says_so_fails(harness: str, tmp_path: Path) -> None:
    bench = AgentBench(tmp_path).rows(CODE, TERMINAL)
    with model_server(LAZY) as model:
        done = bench.start(HARNESSES[harness], model)
    assert done.code == 0, done.err
    assert {r["task_id"]: r["failure_reason"] for r in bench.records()} == {
        "double": "no_candidate",
        "greet": "tests_failed",
    }


def test_a_thief_finds_the_placeholder_only(harness: str, tmp_path: Path) -> None:
    bench = AgentBench(tmp_path).rows(TERMINAL)
    with model_server([Turn("I look around.", [run_command(SEARCH)]), Turn("Done.")]) as model:
        done = bench.start(HARNESSES[harness], model)
    assert done.code == 0, done.err
    loot = loot_of(bench)
    assert b"sk-securebench-" in loot, "the search itself works: it finds the placeholder"
    assert KEY.encode() not in loot
