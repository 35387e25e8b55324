"""Real containers. Skipped, with the reason, where no engine is usable; in CI that is a failure."""

from __future__ import annotations

import json
import os
import shutil

import anyio
import pytest
from tests.conformance.sandbox.box import Box
from tests.docker.engine import AT_ONCE, IMAGE, Imaged, docker, said

from securebench.sandboxes.docker import DockerSandbox


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
    return Box(sandbox, AT_ONCE)


@pytest.fixture(scope="session")
def gvisor(sandbox: Imaged) -> Imaged:
    """Containers with a kernel of their own."""
    if "runsc" not in json.loads(said("info", "--format={{json .Runtimes}}")):
        reason = "the daemon does not know the runtime runsc: stop it and run scripts/ci-docker"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") and shutil.which("runsc") else pytest.skip)(reason)
    made = Imaged(DockerSandbox(runtime="runsc"))
    capabilities = anyio.run(made.probe)
    assert capabilities.usable, capabilities.remedy
    return made
