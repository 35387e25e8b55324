"""Classes F, G, H and I for candidates that are code: forging a verdict from inside the process that is judged.

Every cheat meets naive graders in a sandbox first and must fool those it names, so that it is known to be real. Then it
meets the two rooms, where it must score nothing, while the honest twin passes both."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from tests.attacks.rooms.cheats import ASSERTS, CHEATS, CLOSE, COMPUTED, GRADERS, HONEST, ON_THE_WIRE, WRONG, Cheat
from tests.attacks.rooms.judging import AT_ONCE, Trial, bubblewrap, verdicts
from tests.attacks.rooms.naive_graders import PROGRAM

from securebench.environment import TaskEnvironment
from securebench.errors import FailureReason
from securebench.sandboxes.base import MIB, Command, Guarantee, Limits, SandboxSpec, run_once
from securebench.verifiers.base import Assurance, Status
from securebench.verifiers.rooms.libraries import INSIDE, pytest_mounts

HONEST_TWIN, WRONG_TWIN = "the honest twin", "an honest mistake"


def _trial(cheat: Cheat) -> Trial:
    tests: Any = {"source": "inline", "code": cheat.tests, "timeout_seconds": cheat.seconds}
    return Trial(cheat.source, tests, "sq", environment=TaskEnvironment(memory=256 * MIB))


@pytest.fixture(scope="module")
def fooled() -> dict[str, set[str]]:
    """Which naive graders each candidate fools."""
    jobs = {name: (cheat, cheat.fools.split()) for name, cheat in CHEATS.items()}
    jobs |= {HONEST_TWIN: (Cheat(HONEST, ""), list(GRADERS)), WRONG_TWIN: (Cheat(WRONG, ""), list(GRADERS))}
    found: dict[str, set[str]] = {}
    sandbox = bubblewrap()
    spec = SandboxSpec(mounts=pytest_mounts(), limits=Limits(wall_seconds=120, memory=512 * MIB))

    async def grade(name: str, cheat: Cheat, graders: list[str], limiter: anyio.CapacityLimiter) -> None:
        job = {"source": cheat.source, "tests": cheat.tests, "graders": graders, "libraries": INSIDE}
        async with limiter:
            result = await run_once(
                sandbox, spec, Command(("/usr/bin/python3", "-I", "-c", PROGRAM), stdin=json.dumps(job).encode())
            )
        assert result.ok, (name, result.stderr.data)
        found[name] = set(json.loads(result.stdout.data))

    async def main() -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as tasks:
            for name, (cheat, graders) in jobs.items():
                tasks.start_soon(grade, name, cheat, graders, limiter)

    anyio.run(main)
    return found


@pytest.fixture(scope="module")
def judged() -> dict[str, Any]:
    """What the two rooms say of each."""
    trials = {name: _trial(cheat) for name, cheat in (CHEATS | ON_THE_WIRE).items()}
    for name, tests in {"asserts": ASSERTS, "close": CLOSE, "computed": COMPUTED}.items():
        trials[f"honest {name}"] = Trial(HONEST, tests, "sq")
    return verdicts(trials)


@pytest.mark.parametrize("name", CHEATS)
def test_positive_control_naive_graders_are_fooled(fooled: dict[str, set[str]], name: str) -> None:
    assert CHEATS[name].fools, "a cheat that fools nobody shows nothing"
    assert fooled[name] == set(CHEATS[name].fools.split())


def test_positive_control_naive_graders_know_right_from_wrong(fooled: dict[str, set[str]]) -> None:
    assert fooled[HONEST_TWIN] == set(GRADERS)
    assert fooled[WRONG_TWIN] == set()


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_scores_nothing(judged: dict[str, Any], name: str) -> None:
    result = judged[name]
    assert (result.status, result.passed, result.score) == (Status.FAILED, False, 0.0), dict(result.metadata)
    assert result.assurance is Assurance.ISOLATED
    assert result.failure_reason is not None
    if CHEATS[name].reason is not None:
        assert result.failure_reason is CHEATS[name].reason, dict(result.metadata)


@pytest.mark.parametrize("name", ON_THE_WIRE)
def test_an_attack_on_the_wire_is_the_candidates_failure(judged: dict[str, Any], name: str) -> None:
    result, reason = judged[name], ON_THE_WIRE[name].reason
    assert (result.status, result.score) == (Status.FAILED, 0.0), dict(result.metadata)
    if reason is FailureReason.WORKER_MEMORY_LIMIT and Guarantee.MEM_HARD not in _guarantees():
        reason = None
    if reason is not None:
        assert result.failure_reason is reason, dict(result.metadata)


@pytest.mark.parametrize("name", ["asserts", "close", "computed"])
def test_the_honest_twin_passes(judged: dict[str, Any], name: str) -> None:
    result = judged[f"honest {name}"]
    assert result.passed, (result.failure_reason, dict(result.metadata))


def test_there_are_enough_of_them() -> None:
    assert len(CHEATS) >= 30
    assert {grader for cheat in CHEATS.values() for grader in cheat.fools.split()} == set(GRADERS)


def _guarantees() -> frozenset[Guarantee]:
    return anyio.run(bubblewrap().probe).guarantees
