"""The conformance suite of all backends, run in containers. What does not apply is named with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance.sandbox.box import Box
from tests.conformance.sandbox.suite import checks
from tests.docker.engine import AT_ONCE, Imaged
from tests.docker.reasons import NOT_IN_CONTAINERS
from tests.docker.shared import SharedBox, shared


@pytest.fixture(scope="module")
def _shared(sandbox: Imaged) -> Iterator[SharedBox]:
    with shared(sandbox, AT_ONCE) as made:
        yield made


@pytest.fixture
def box(_shared: SharedBox) -> Box:
    return _shared


globals().update(checks(NOT_IN_CONTAINERS, once=True))
