"""The conformance suite in containers with a kernel of their own. What gVisor does otherwise is named with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance.sandbox.box import Box
from tests.conformance.sandbox.suite import checks
from tests.docker.engine import AT_ONCE, Imaged
from tests.docker.reasons import NOT_IN_CONTAINERS, NOT_IN_GVISOR
from tests.docker.shared import SharedBox, shared


@pytest.fixture(scope="module")
def _shared(gvisor: Imaged) -> Iterator[SharedBox]:
    with shared(gvisor, AT_ONCE) as made:
        yield made


@pytest.fixture
def box(_shared: SharedBox) -> Box:
    return _shared


globals().update(checks(NOT_IN_CONTAINERS, NOT_IN_GVISOR, once=True))
