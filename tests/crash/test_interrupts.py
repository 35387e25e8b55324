"""A run that is asked to stop: once, twice, by either signal, while agents work and a verdict is on its way."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.crash.world import NOTHING, KilledRun, check_chain, leftovers_soon
from tests.e2e.workbench import need_bubblewrap

from securebench.records.seal import open_statement

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
SLOW = "import time\ndef f(x):\n    time.sleep({seconds})\n    return x\n"
AGENT = """import json, time
say = json.load(open("task.json"))["metadata"]
time.sleep(say["sleep"])
print(say["code"])
"""


def _row(name: str, agent_seconds: float, verifier_seconds: float) -> dict[str, Any]:
    """An agent that takes so long, and a candidate whose judging takes so long."""
    public = {"prompt": "Write f(x).", "language": "python", "entry_point": "f"}
    tests = {"source": "cases", "cases": [{"args": [1], "expected": 1}]}
    say = {"sleep": agent_seconds, "code": SLOW.format(seconds=verifier_seconds)}
    return {"id": name, "family": "code_completion", "input": public, "eval": {"tests": tests}, "metadata": say}


def _run(tmp_path: Path, agent_seconds: float, verifier_seconds: float) -> KilledRun:
    need_bubblewrap()
    rows = [_row("quick", 0, verifier_seconds), *(_row(f"slow{n}", agent_seconds, 0) for n in range(5))]
    return KilledRun(tmp_path / "run", rows, 1, ["/usr/bin/python3", "-c", AGENT])


def _verifying(run: KilledRun) -> subprocess.Popen[bytes]:
    """An engine that judges the first candidate while agents work on the others."""
    engine = run.start(workers=3)
    deadline = time.monotonic() + 120
    while not run.events("verifier_start") or len(run.events("agent_started")) < 3:
        assert engine.poll() is None, run.said()
        assert time.monotonic() < deadline, run.said()
        time.sleep(0.02)
    time.sleep(0.3)
    return engine


@SIGNALS
def test_once_ends_agents_and_finishes_what_is_being_verified(tmp_path: Path, number: signal.Signals) -> None:
    run = _run(tmp_path, 12, 4)
    engine = _verifying(run)
    engine.send_signal(number)
    assert engine.wait(120) == 130, run.said()
    assert any("once more to stop now" in notice for notice in run.notices())
    [record] = check_chain(run.output, run.records())
    assert (record["task_id"], record["passed"]) == ("quick", True)
    statement = open_statement((run.output / "seal.json").read_bytes(), "seal.json")
    assert (statement.predicate.status, statement.predicate.chain.records) == ("interrupted", 1)
    assert statement.predicate.seed.value is None
    assert json.loads((run.output / "summary.json").read_text())["interrupted"]
    assert leftovers_soon(run.pids, run.temporary) == NOTHING
    run.check_kept()
    assert run.finish() == 0, run.said()
    run.check_kept()
    assert sorted(record["task_id"] for record in check_chain(run.output, run.records())) == sorted(
        row["id"] for row in run.rows
    )
    assert open_statement((run.output / "seal.json").read_bytes(), "seal.json").predicate.status == "complete"


@SIGNALS
def test_twice_ends_everything_at_once(tmp_path: Path, number: signal.Signals) -> None:
    run = _run(tmp_path, 120, 25)
    engine = _verifying(run)
    engine.send_signal(number)
    time.sleep(0.5)
    assert engine.poll() is None, "the first request must wait for what is being verified"
    asked = time.monotonic()
    engine.send_signal(number)
    assert engine.wait(120) == 130, run.said()
    assert time.monotonic() - asked < 20  # what is being verified takes 25
    assert "Traceback" not in run.log.read_text()
    assert check_chain(run.output, run.records()) == []
    statement = open_statement((run.output / "seal.json").read_bytes(), "seal.json")
    assert (statement.predicate.status, statement.predicate.chain.records) == ("interrupted", 0)
    assert leftovers_soon(run.pids, run.temporary) == NOTHING


@SIGNALS
@pytest.mark.parametrize("delay", [0.15, 0.4, 0.7, 1.0])
def test_before_the_first_attempt_nothing_is_left_and_resuming_works(
    tmp_path: Path, number: signal.Signals, delay: float
) -> None:
    run = _run(tmp_path, 0, 0)
    engine = run.start(workers=3)
    time.sleep(delay)
    engine.send_signal(number)
    code = engine.wait(60)
    said = run.log.read_text()
    if "Traceback" in said:  # Python was still starting, and says so in its own words
        assert run.stage() == "loading", said
        assert "src/securebench/" not in said, said
    else:
        assert code in {130, -number} or (code == 0 and run.stage() == "sealed"), said  # a fast host was faster
    assert run.finish() == 0, run.said()
    assert len(check_chain(run.output, run.records())) == len(run.rows)
    assert leftovers_soon(run.pids, run.temporary) == NOTHING
