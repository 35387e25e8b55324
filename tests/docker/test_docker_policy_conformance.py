"""The conformance suite in containers behind a command policy that allows everything: it must change nothing. What is
tried are commands and sessions, which pass through it; the walls are the backend's own, and beneath it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance.sandbox import test_channels, test_lifecycle, test_limits, test_sessions, test_streams
from tests.conformance.sandbox.box import Box, under_policy
from tests.conformance.sandbox.suite import checks
from tests.docker.engine import AT_ONCE, Imaged
from tests.docker.reasons import NOT_IN_CONTAINERS
from tests.docker.shared import SharedBox, shared


@pytest.fixture(scope="module")
def _shared(sandbox: Imaged) -> Iterator[SharedBox]:
    with shared(under_policy(sandbox), AT_ONCE) as made:
        yield made


@pytest.fixture
def box(_shared: SharedBox) -> Box:
    return _shared


COMMANDS = (test_channels, test_lifecycle, test_limits, test_sessions, test_streams)
globals().update(checks(NOT_IN_CONTAINERS, once=True, of=COMMANDS))
