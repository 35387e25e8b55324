"""The backends this suite runs against on the host's programs. Backends that need an image run it from
`tests/docker`, which gives its own `box`."""

from __future__ import annotations

import os
from functools import cache

import anyio
import pytest
from tests.conformance.sandbox.box import Box, under_policy

from securebench.sandboxes.base import Sandbox
from securebench.sandboxes.select import make_sandbox

PLAIN, UNDER_POLICY = "bubblewrap", "bubblewrap under a policy"


@cache
def _backend(name: str) -> Sandbox:
    made = make_sandbox("bubblewrap")
    return made if name == PLAIN else under_policy(made)


def _box(name: str) -> Box:
    """A usable backend; one that is not usable skips with its own words, or fails in CI."""
    sandbox = _backend(name)
    capabilities = anyio.run(sandbox.probe)
    if not capabilities.usable:
        reason = f"{name}: {capabilities.remedy or 'not usable here'}"
        if os.environ.get("SECUREBENCH_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return Box(sandbox)


@pytest.fixture(params=[PLAIN, UNDER_POLICY])
def box(request: pytest.FixtureRequest) -> Box:
    """Every backend in turn."""
    return _box(request.param)


@pytest.fixture
def bubblewrap() -> Box:
    """For checks of how bubblewrap is used, which other backends do otherwise."""
    return _box(PLAIN)
