"""The same rooms in containers: an honest candidate passes, cheats of every kind do not."""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest
from tests.attacks.rooms.cheats import ASSERTS, CHEATS, HONEST, ON_THE_WIRE
from tests.attacks.rooms.judging import Trial, verdicts
from tests.docker.engine import IMAGE, Imaged, docker

from securebench.verifiers.base import Status

SOME = [
    "os._exit in call",
    "always equal int",
    "sprays descriptors",
    "reads the test file",
    "reads its parent",
    "answers twice",
    "forks and answers twice",
    "answers late",
    "kills everything",
]
if os.environ.get("SECUREBENCH_ALL_ON_DOCKER"):  # a second to three for each
    SOME = [*CHEATS, *ON_THE_WIRE]


@pytest.fixture(scope="module")
def judged() -> dict[str, Any]:
    sandbox = Imaged()
    capabilities = anyio.run(sandbox.probe)
    reason = "" if capabilities.usable else capabilities.remedy or "docker is not usable here"
    if capabilities.usable and docker("image", "inspect", IMAGE).returncode:
        reason = f"image {IMAGE} is missing: run scripts/ci-docker"
    if reason:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    cheats = CHEATS | ON_THE_WIRE
    trials = {
        name: Trial(
            cheats[name].source,
            {"source": "inline", "code": cheats[name].tests, "timeout_seconds": cheats[name].seconds},
            "sq",
        )
        for name in SOME
    }
    trials["honest"] = Trial(HONEST, ASSERTS, "sq")
    trials["honest program"] = Trial(
        "print(int(input()) ** 2)",
        {
            "source": "io",
            "run": ["python3", "candidate.py"],
            "cases": [{"stdin": "3\n", "stdout": "9\n"}],
            "timeout_seconds": 60,
        },
    )
    return verdicts(trials, sandbox)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["honest", "honest program"])
def test_an_honest_candidate_passes(judged: dict[str, Any], name: str) -> None:
    result = judged[name]
    assert result.passed, (result.failure_reason, dict(result.metadata))


@pytest.mark.parametrize("name", SOME)
def test_a_cheat_scores_nothing(judged: dict[str, Any], name: str) -> None:
    result = judged[name]
    assert (result.status, result.score) == (Status.FAILED, 0.0), dict(result.metadata)
