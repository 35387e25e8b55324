"""Faults of the host are tried again where that cannot change what is measured, a bounded number of times, and each
repeat is in the record. The faults are scripted, the sandboxes are real."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.e2e.workbench import need_bubblewrap
from tests.unit.engine.world import World

from securebench.engine import attempt as attempt_module
from securebench.harness_schema import CommandConfig
from securebench.harnesses.command import CommandAgent
from securebench.harnesses.outlets import Outlets
from securebench.harnesses.sandboxed import SandboxedProducer
from securebench.sandboxes.bubblewrap import BubblewrapSandbox
from securebench.tester_config import SandboxSection
from securebench.testing.faulty_sandbox import FaultySandbox

ROW = {
    "id": "add",
    "family": "code_completion",
    "input": {"prompt": "Write add(a, b).", "language": "python", "entry_point": "add"},
    "eval": {"tests": {"source": "cases", "cases": [{"args": [1, 2], "expected": 3}]}},
}
CODE = "echo 'def add(a, b): return a + b'"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    need_bubblewrap()
    monkeypatch.setattr(attempt_module, "_WAITS", (0.01, 0.02))


def _record(tmp_path: Path, producing: FaultySandbox, verifying: FaultySandbox, command: str = CODE) -> dict[str, Any]:
    agent = CommandAgent(CommandConfig(command=command))
    producer = SandboxedProducer(agent, {}, producing, SandboxSection(), Outlets(None, frozenset()))
    world = World(tmp_path, [ROW], producer, verifying)

    async def main() -> dict[str, Any]:
        attempt = world.attempt()
        await attempt.produce()
        await attempt.verify()
        return dict((await attempt.record()).record)

    return anyio.run(main)


def _sandbox(*, opens: Collection[int] = (), runs: Collection[int] = ()) -> FaultySandbox:
    return FaultySandbox(BubblewrapSandbox(), opens=opens, runs=runs)


def test_without_faults_nothing_is_repeated(tmp_path: Path) -> None:
    record = _record(tmp_path, _sandbox(), _sandbox())
    assert (record["verification_status"], record["repeats"]) == ("passed", [])


@pytest.mark.parametrize("faults", [1, 2])
def test_a_sandbox_that_does_not_open_is_opened_again_before_the_agent_starts(tmp_path: Path, faults: int) -> None:
    record = _record(tmp_path, _sandbox(opens=range(1, faults + 1)), _sandbox())
    assert record["verification_status"] == "passed"
    assert [repeat["phase"] for repeat in record["repeats"]] == ["produce"] * faults
    assert "scripted fault: sandbox 1 does not open" in record["repeats"][0]["fault"]
    assert record["repeats"][0]["waited_seconds"] == 0.01


def test_a_host_that_goes_on_failing_is_an_error_after_bounded_repeats(tmp_path: Path) -> None:
    sandbox = _sandbox(opens=range(1, 100))
    record = _record(tmp_path, sandbox, _sandbox())
    assert (record["verification_status"], record["passed"], record["failure_reason"]) == ("error", None, None)
    assert len(record["repeats"]) == attempt_module.REPEATS
    assert sandbox.opened == attempt_module.REPEATS + 1


def test_an_agent_that_has_started_is_not_started_again(tmp_path: Path) -> None:
    sandbox = _sandbox(runs={1})
    record = _record(tmp_path, sandbox, _sandbox())
    assert (record["verification_status"], record["passed"]) == ("error", None)
    assert "command 1 is lost" in record["failure_message"]
    assert (record["repeats"], sandbox.ran) == ([], 1)


@pytest.mark.parametrize("kind", ["opens", "runs"])
def test_verifying_is_repeated_on_the_same_candidate(tmp_path: Path, kind: str) -> None:
    """The agent gives another answer each time; there is one candidate all the same."""
    producing, verifying = _sandbox(), _sandbox(**{kind: {1}})  # type: ignore[arg-type]
    record = _record(tmp_path, producing, verifying, f"{CODE}; head -c 8 /dev/urandom | od -An -tx8 | sed 's/^/#/'")
    assert record["verification_status"] == "passed", record["failure_message"]
    assert [repeat["phase"] for repeat in record["repeats"]] == ["verify"]
    assert producing.ran == 1


def test_a_verifier_whose_host_goes_on_failing_gives_no_verdict(tmp_path: Path) -> None:
    record = _record(tmp_path, _sandbox(), _sandbox(opens=range(1, 100)))
    assert (record["verification_status"], record["passed"], record["score"]) == ("error", None, None)
    assert [repeat["phase"] for repeat in record["repeats"]] == ["verify"] * attempt_module.REPEATS
    assert record["candidate_text"], "what was produced is kept"


def test_what_the_candidate_did_is_never_tried_again(tmp_path: Path) -> None:
    sandbox = _sandbox()
    record = _record(tmp_path, sandbox, _sandbox(), "exit 3")
    assert (record["verification_status"], record["failure_reason"]) == ("failed", "producer_failed")
    assert (record["repeats"], sandbox.ran) == ([], 1)
