"""Runs on a real Ray cluster through the real command line: as if they had been local, whoever is killed meanwhile.

One cluster for all of it: a head without processors, and three nodes that each test finds alive."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.ray_world import RayWorld, free_ports, need_ray, records, said
from tests.cluster.world import eventually
from tests.e2e.workbench import CLI, need_bubblewrap, securebench
from tests.unit.workspaces.git_cases import write_files

pytestmark = pytest.mark.slow

AGENT = """
case "$(cat task.json)" in
  *'Fix it.'*) echo "print('fixed')" > src/app.py ;;
  *'Do it.'*) echo done > done.txt ;;
  *'Write add'*) printf 'def add(a, b): return a + b' ;;
  *'Write wrong'*) printf 'def add(a, b): return a - b' ;;
  *) printf 42 ;;
esac
"""


def code(number: int, prompt: str = "Write add(a, b).") -> dict[str, Any]:
    return {
        "id": f"c{number}",
        "family": "code_completion",
        "input": {"prompt": prompt, "language": "python", "entry_point": "add"},
        "eval": {"tests": {"source": "cases", "cases": [{"args": [1, 2], "expected": 3}]}},
    }


def text(number: int) -> dict[str, Any]:
    answer = 42 if number % 3 else 41
    return {
        "id": f"s{number}",
        "family": "short_answer",
        "input": {"question": "6 * 7?"},
        "eval": {"accepted_answers": [answer]},
    }


MIXED = [
    *(text(number) for number in range(82)),
    *(code(number, "Write wrong(a, b)." if number % 4 == 0 else "Write add(a, b).") for number in range(14)),
    *(
        {
            "id": f"p{number}",
            "family": "repo_patch",
            "input": {"repo": "repo", "base_commit": "x", "instructions": "Fix it."},
            "eval": {"tests": {"source": "command", "command": ["grep", "-rq", "fixed", "."]}},
            "assets": [{"path": "repo"}],
        }
        for number in range(2)
    ),
    *(
        {
            "id": f"w{number}",
            "family": "terminal_task",
            "input": {"instructions": "Do it."},
            "eval": {"checker": {"source": "script", "path": "check.sh"}},
        }
        for number in range(2)
    ),
]


def written(directory: Path, rows: list[dict[str, Any]], attempts: int, agent: str = AGENT, **sections: Any) -> Path:
    write_files(directory / "assets" / "repo", {"src/app.py": "print('broken')\n"})
    write_files(directory / "hidden", {"check.sh": 'grep -q done "$SECUREBENCH_WORKSPACE/done.txt"\n'})
    (directory / "manifest.yaml").write_text("id: ray\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tester = {
        "schema_version": "0.3",
        "run": {"id": "ray", "output_dir": "out", "attempts": attempts},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": {"command": agent}},
        **sections,
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    return directory


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayWorld]:
    need_bubblewrap()
    need_ray()
    made = RayWorld(roles={"n1": "produce", "n3": "verify"})
    try:
        made.start_head()
        yield made
    finally:
        made.end()


@pytest.fixture
def world(cluster: RayWorld) -> RayWorld:
    """Three nodes, whatever became of them in an earlier test."""
    cluster.require("n1", "n2", "n3")
    return cluster


def check_complete(directory: Path, total: int) -> list[dict[str, Any]]:
    """Every attempt once, apart from faults of the host that were tried again; nothing to object to."""
    found = [record for record in records(directory) if record["verification_status"] != "error"]
    times = Counter((record["task_id"], record["attempt"]) for record in found)
    assert len(times) == total
    assert set(times.values()) == {1}
    verified = securebench("verify", directory / "out", "--json")
    assert verified.code == 0, verified.out + verified.err
    return found


def leftovers(world: RayWorld) -> list[str]:
    left = [str(path) for path in world.base.glob("*/securebench-*")]
    return left + [line for line in world.processes().values() if "-m securebench" in line or "bwrap" in line]


def names(found: list[dict[str, Any]], *phases: str) -> set[str]:
    return {
        record["nodes"][phase]["node"]["name"]
        for record in found
        for phase in phases
        if phase in record.get("nodes", {})
    }


# -- as if it were local --------------------------------------------------------------------------------------------

MEASURED = {"previous", "timings", "nodes", "peak_memory", "bytes", "id", "time"}
"""What says when, where and how much it took; of the verifier also the bytes that measurements are part of, of the
audit of the walls which it was."""


def comparable(record: dict[str, Any]) -> Any:
    def without(value: dict[str, Any]) -> dict[str, Any]:
        return {name: item for name, item in value.items() if name not in MEASURED and not name.endswith("seconds")}

    return json.loads(json.dumps(record), object_hook=without)


def in_order(found: list[dict[str, Any]]) -> list[Any]:
    return [comparable(record) for record in sorted(found, key=lambda r: (r["task_id"], r["attempt"]))]


def test_500_attempts_are_recorded_as_they_are_locally(world: RayWorld, tmp_path: Path) -> None:
    directory = written(tmp_path, MIXED, 5)
    assert world.run(directory, "--executor", world.address) == 0, said(directory)
    far = check_complete(directory, 500)
    assert eventually(lambda: not leftovers(world)), leftovers(world)
    (directory / "out").rename(directory / "far")
    near_run = securebench("run", "--config", directory / "tester.yaml", "--json")
    assert near_run.code == 0, near_run.err
    for there, here in zip(in_order(far), in_order(records(directory)), strict=True):
        assert there == here
    passed = Counter(record["task_type"] for record in far if record["passed"])
    assert passed == {"short_answer": 270, "code_completion": 50, "repo_patch": 10, "terminal_task": 10}
    summaries = [json.loads((directory / name / "summary.json").read_text()) for name in ("far", "out")]
    assert comparable(summaries[0]) == comparable(summaries[1])
    executed = [record for record in far if record["task_type"] != "short_answer"]
    assert all(set(record["nodes"]) == {"produce", "verify"} for record in executed)
    assert len(names(far, "produce", "verify")) == 3, "every node had work"
    assert len(names(far, "produce")) == len(names(far, "verify")) == 2, "and only what its role is for"


# -- whoever is killed ----------------------------------------------------------------------------------------------

SLOW = AGENT + "sleep 0.1\n"
KILLED = {"node": "securebench.cluster.node", "worker": "ray::Pipe", "raylet": ""}


def test_whoever_is_killed_at_whatever_moment_every_attempt_is_recorded_once(world: RayWorld, tmp_path: Path) -> None:
    directory = written(tmp_path, [*MIXED[66:92], *MIXED[-4:]], 5, SLOW)
    draw, deadline = random.Random(7), time.monotonic() + 300
    kills = ["node", "worker", "raylet", "head", "worker"]
    draw.shuffle(kills)
    head = world.start_run(directory, "--executor", world.address)
    while time.monotonic() < deadline:
        time.sleep(draw.uniform(0.5, 1.5))
        if head.poll() is not None:
            if head.returncode == 0 and not kills:
                break
            world.require("n1", "n2", "n3")
            head = world.start_run(directory, "--executor", world.address, "--resume")
        elif kills and records(directory):
            killed = _kill(world, kills[0], head, draw)
            kills = kills[1:] if killed else kills
    assert head.poll() == 0, said(directory)
    assert kills == [], "there was time for all of it"
    check_complete(directory, 150)
    world.require("n1", "n2", "n3")
    for attempts in (1, 20, 60):  # a node cleans up when it takes part again, and not all do in a short run
        again = written(tmp_path / f"again-{attempts}", [code(1)], attempts, AGENT + "sleep 0.3\n")
        assert world.run(again, "--executor", world.address) == 0, said(again)
        if eventually(lambda: not leftovers(world), 5):
            return
    assert leftovers(world) == []


def _kill(world: RayWorld, what: str, head: subprocess.Popen[bytes], draw: random.Random) -> int:
    if what == "head":
        os.kill(head.pid, signal.SIGKILL)
        head.wait(60)
        return 1
    for name in draw.sample(["n1", "n2", "n3"], 3):
        if any(KILLED[what] in line for line in world.processes(name).values()):
            return world.kill(name, KILLED[what])
    return 0


def test_a_node_that_joins_gets_work_and_nodes_that_leave_do_not_end_the_run(world: RayWorld, tmp_path: Path) -> None:
    directory = written(tmp_path, MIXED[60:90], 4, SLOW)
    run = world.start_run(directory, "--executor", world.address)
    try:
        assert eventually(lambda: len(records(directory)) > 10, 120), said(directory)
        before = names(records(directory), "produce", "verify")
        world.start_node("n4")
        assert eventually(lambda: bool(names(records(directory), "produce", "verify") - before), 120), said(directory)
        left = sum(world.kill(name) for name in ("n1", "n2", "n3"))
        assert left > 3
        run.wait(240)
        found = records(directory)
        assert len(found) == 120, said(directory)
        errors = [record["failure_message"] for record in found if record["verification_status"] == "error"]
        assert len(errors) <= 4, "only what they had begun"
        assert all("was lost while it produced" in message for message in errors)
        assert names(found[-10:], "produce") <= names(found, "produce") - before
        json.loads((directory / "stdout").read_text())  # and nothing of Ray's own
    finally:
        world.kill("n4")


# -- which clusters -------------------------------------------------------------------------------------------------


def test_a_cluster_that_lets_in_whoever_asks_is_refused(tmp_path: Path) -> None:
    need_bubblewrap()
    need_ray()
    world = RayWorld(token=None)
    try:
        world.start_head()
        world.require("n1")
        directory = written(tmp_path, [code(1), text(1)], 1)
        world.variables = {"RAY_ADDRESS": world.address}
        for address in (world.address, "auto"):
            assert world.run(directory, "--executor", address) == 2
            assert "lets in whoever asks" in said(directory)
            assert "--unsafe" in said(directory)
            assert records(directory) == []
        assert world.run(directory, "--executor", world.address, "--unsafe") == 0, said(directory)
        assert {record["assurance"] for record in records(directory)} == {"unsafe"}
    finally:
        world.end()


@pytest.mark.parametrize("token", ["0" * 64, None], ids=["closed", "open"])
def test_a_cluster_behind_rays_client_is_used_as_any_other(tmp_path: Path, token: str | None) -> None:
    need_bubblewrap()
    need_ray("grpc")
    (port,) = free_ports(1)
    world = RayWorld(token=token)
    try:
        world.start_head(client=port)
        world.require("n1")
        directory = written(tmp_path, [code(1), text(1)], 2)
        done = world.run(directory, "--executor", f"ray://127.0.0.1:{port}")
        if token is None:
            assert done == 2
            assert "lets in whoever asks" in said(directory)
        else:
            assert done == 0, said(directory)
            assert len(check_complete(directory, 4)) == 4
            assert "Traceback" not in said(directory)
            assert eventually(lambda: not leftovers(world)), leftovers(world)
    finally:
        world.end()


def test_a_cluster_lets_nobody_in_without_its_token(world: RayWorld, tmp_path: Path) -> None:
    directory = written(tmp_path, [code(1)], 1)
    env = {name: value for name, value in world.env("stranger").items() if name != "RAY_AUTH_TOKEN"}
    (world.base / "stranger").mkdir(exist_ok=True)
    env["HOME"] = str(world.base / "stranger")  # where tokens may be kept
    argv = [*CLI, "run", "--config", str(directory / "tester.yaml"), "--executor", world.address]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode not in (0, 1), done.stderr
    assert "no Ray cluster answers" in done.stderr
    assert "RAY_AUTH_TOKEN" in done.stderr
    assert records(directory) == []


def test_a_cluster_of_this_machine_alone_listens_on_loopback_and_is_gone_afterwards(tmp_path: Path) -> None:
    need_bubblewrap()
    need_ray()
    world = RayWorld()
    try:
        directory = written(tmp_path, MIXED[80:90], 2)
        run = world.start_run(directory, "--executor", "ray")
        seen: set[str] = set()
        while run.poll() is None:
            seen |= world.listening("cli")
            time.sleep(0.1)
        assert run.returncode == 0, said(directory)
        assert len(check_complete(directory, 20)) == 20
        assert seen, "it listens at all"
        assert [address for address in seen if not LOOPBACK(address)] == []
        assert not any(address.endswith(f":{8265:04X}") for address in seen), "the dashboard"
        assert eventually(lambda: not world.processes()), world.processes()
        assert [path for path in (world.base / "cli").rglob("*") if path.is_file()] == []
        assert not leftovers(world)
    finally:
        world.end()


LOOPBACK: Callable[[str], bool] = lambda address: address.startswith(  # noqa: E731
    ("0100007F:", "00000000000000000000000001000000:", "0000000000000000FFFF00000100007F:")
)
