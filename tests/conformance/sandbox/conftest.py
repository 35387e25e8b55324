"""The backends this suite runs against on the host's programs. Backends that need an image run it from
`tests/docker`, which gives its own `box`."""

from __future__ import annotations

import os
from functools import cache

import anyio
import pytest
from tests.conformance.sandbox.box import Box, Primed, under_policy

from securebench.sandboxes.base import Sandbox
from securebench.sandboxes.select import make_sandbox

PLAIN, UNDER_POLICY, AHEAD = "bubblewrap", "bubblewrap under a policy", "bubblewrap prepared ahead"


@cache
def _backend(name: str) -> Sandbox:
    made = make_sandbox("bubblewrap")
    return {PLAIN: lambda: made, UNDER_POLICY: lambda: under_policy(made), AHEAD: lambda: Primed(made)}[name]()


def usable(name: str) -> Box:
    """A usable backend; one that is not usable skips with its own words, or fails in CI."""
    sandbox = _backend(name)
    capabilities = anyio.run(sandbox.probe)
    if not capabilities.usable:
        reason = f"{name}: {capabilities.remedy or 'not usable here'}"
        if os.environ.get("SECUREBENCH_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return Box(sandbox)


@pytest.fixture(params=[PLAIN, UNDER_POLICY, AHEAD])
def box(request: pytest.FixtureRequest) -> Box:
    """Every backend in turn."""
    return usable(request.param)


WAYS = ("fresh", "session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under a policy that allows everything, and prepared ahead, a check that is made for many values is made for the
    last one only, in each way of running: whatever differs from the backend that is checked for all of them is not in
    the values."""
    keys = {item: _wrapped(item) for item in items}
    last = {key: item for item, key in keys.items() if key}
    config.hook.pytest_deselected(items=[item for item, key in keys.items() if key and last[key] is not item])
    items[:] = [item for item, key in keys.items() if not key or last[key] is item]


def _wrapped(item: pytest.Item) -> tuple[object, ...]:
    """Which check it is, on which backend and in which way it is made; nothing for those on the plain backend."""
    given = getattr(item, "callspec", None)
    backend = None if given is None else given.params.get("box")
    if given is None or backend not in {UNDER_POLICY, AHEAD}:
        return ()
    return (backend, item.path, item.originalname, *(way for way in WAYS if way in given.id.split("-")))  # type: ignore[attr-defined]


@pytest.fixture
def bubblewrap() -> Box:
    """For checks of how bubblewrap is used, which other backends do otherwise."""
    return usable(PLAIN)
