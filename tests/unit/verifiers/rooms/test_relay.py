"""The host between the rooms: whose fault it is when something does not come up, and the budgets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from tests.attacks.rooms.judging import Trial, bubblewrap, verdict

from securebench.errors import FailureReason, PackError, SandboxError, SandboxUnavailable
from securebench.sandboxes.base import MIB, Limits, SandboxSpec
from securebench.verifiers.code_completion import CodeCompletionVerifier
from securebench.verifiers.rooms.evaluate import judge
from securebench.verifiers.rooms.relay import Conversation, Meter, Rooms, converse

SPEC = SandboxSpec(limits=Limits(wall_seconds=60, memory=256 * MIB))
START: dict[str, Any] = {
    "style": "suite",
    "code": "for _ in range(50):\n    assert f('x' * 1000) == 'x' * 1000",
    "entry": "f",
    "public": [],
    "seed": "s",
    "shared": False,
    "pytest": False,
    "libraries": [],
}
SOURCE = "def f(x): return x"


def talk(
    start: dict[str, Any] = START,
    source: str = SOURCE,
    tests: SandboxSpec = SPEC,
    worker: SandboxSpec = SPEC,
    **meter: Any,
) -> Conversation:
    return anyio.run(converse, Rooms(bubblewrap(), tests, worker), start, source, Meter(**meter))


def test_a_conversation_counts_what_it_takes() -> None:
    seen = talk()
    assert judge(seen).passed
    assert seen.messages >= 100
    assert seen.bytes > 100_000
    assert len(seen.results) == 2


@pytest.mark.parametrize("limit", [{"messages": 20}, {"bytes": 5000}])
def test_a_budget_that_is_used_up_ends_it(limit: dict[str, int]) -> None:
    seen = talk(**limit)
    assert judge(seen).reason is FailureReason.PROTOCOL_VIOLATION
    assert seen.messages < 100


@pytest.mark.parametrize("room", ["tests", "worker"])
def test_an_image_without_python_is_the_packs_fault(room: str) -> None:
    with pytest.raises(PackError, match="python3"):
        talk(**{room: replace(SPEC, env={"PATH": "/nowhere"})})


@pytest.mark.parametrize("room", ["tests", "worker"])
def test_a_room_that_cannot_be_made_is_the_hosts_fault(room: str) -> None:
    with pytest.raises((SandboxError, SandboxUnavailable)):
        talk(**{room: replace(SPEC, capabilities=frozenset({"CAP_SYS_ADMIN"}))})


def test_tests_that_break_down_by_themselves_are_not_the_candidates_fault() -> None:
    with pytest.raises(SandboxError, match="test room"):
        talk({"style": "suite"})


def test_tests_that_break_down_on_what_the_candidate_returned_are() -> None:
    code = "big = f(10 ** 11)\nassert len(bytearray(big)) == 1"
    seen = talk(START | {"code": code})
    assert not judge(seen).passed


def test_tests_that_never_end_on_what_the_candidate_returned_are_too() -> None:
    seen = talk(START | {"code": "x = f(3)\nwhile x: pass\nassert x"}, total_seconds=3)
    assert judge(seen).reason is FailureReason.WORKER_TIMEOUT


def test_without_a_sandbox_nothing_is_run() -> None:
    verification = replace(Trial(SOURCE, "assert f(1) == 1").verification(bubblewrap()), sandbox=None)
    with pytest.raises(SandboxUnavailable):
        anyio.run(CodeCompletionVerifier().verify, verification)


def test_loading_code_for_ever_is_the_candidates_failure() -> None:
    tests = {"source": "inline", "code": "assert f(1) == 1", "timeout_seconds": 2}
    result = verdict("while True: pass", tests)
    assert result.failure_reason is FailureReason.WORKER_TIMEOUT


def test_time_used_up_once_candidate_code_has_run_is_never_the_hosts_fault() -> None:
    """Nothing of the candidate's has reached these tests, but it has had its part of the time."""
    seen = talk(START | {"code": "import time\ntime.sleep(30)\nassert True"}, total_seconds=1.5)
    assert judge(seen).reason is FailureReason.WORKER_TIMEOUT
