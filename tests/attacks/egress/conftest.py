"""One small internet for each process that runs tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.attacks.egress.lab import Lab, LabUnavailable


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    directory = tmp_path_factory.mktemp("lab")
    directory.chmod(0o755)
    try:
        made = Lab(directory)
    except LabUnavailable as reason:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(str(reason))
    yield made
    made.close()
