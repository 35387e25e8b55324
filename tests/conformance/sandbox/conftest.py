"""The backends this suite runs against. A new backend adds a line to `select.BACKENDS` and nothing here."""

from __future__ import annotations

import os
from functools import cache

import anyio
import pytest
from tests.conformance.sandbox.box import Box

from securebench.sandboxes.base import Sandbox
from securebench.sandboxes.select import BACKENDS, make_sandbox


@cache
def _backend(name: str) -> Sandbox:
    return make_sandbox(name)


@pytest.fixture(params=sorted(BACKENDS))
def box(request: pytest.FixtureRequest) -> Box:
    """Every usable backend in turn; one that is not usable skips with its own words, or fails in CI."""
    sandbox = _backend(request.param)
    capabilities = anyio.run(sandbox.probe)
    if not capabilities.usable:
        reason = f"{request.param}: {capabilities.remedy or 'not usable here'}"
        if os.environ.get("SECUREBENCH_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return Box(sandbox)


@pytest.fixture
def bubblewrap(box: Box) -> Box:
    """For checks of how bubblewrap is used, which other backends do otherwise."""
    if box.sandbox.name != "bubblewrap":
        pytest.skip("about bubblewrap only")
    return box
