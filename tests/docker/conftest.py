"""Real containers. Skipped, with the reason, where no engine is usable; in CI that is a failure."""

from __future__ import annotations

import os

import anyio
import pytest
from tests.conformance.sandbox.box import Box
from tests.docker.engine import IMAGE, Imaged, docker


@pytest.fixture(scope="session")
def sandbox() -> Imaged:
    made = Imaged()
    capabilities = anyio.run(made.probe)
    reason = "" if capabilities.usable else capabilities.remedy or "docker is not usable here"
    if capabilities.usable and docker("image", "inspect", IMAGE).returncode:
        reason = f"image {IMAGE} is missing: run scripts/ci-docker"
    if reason:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    return made


@pytest.fixture
def box(sandbox: Imaged) -> Box:
    """What the conformance suite runs its checks in."""
    return Box(sandbox)
