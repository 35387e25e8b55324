"""The conformance suite in containers that were made before they were asked for: it must change nothing."""

from __future__ import annotations

import pytest
from tests.conformance.sandbox.box import Box, Primed
from tests.conformance.sandbox.suite import checks
from tests.docker.engine import AT_ONCE, Imaged
from tests.docker.reasons import NOT_IN_CONTAINERS


@pytest.fixture
def box(sandbox: Imaged) -> Box:
    return Box(Primed(sandbox), AT_ONCE)


globals().update(checks(NOT_IN_CONTAINERS, once=True))
