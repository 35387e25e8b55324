"""Hostile programs run only where a sandbox can be made; CI provides one."""

from __future__ import annotations

import pytest
from tests.e2e.workbench import need_bubblewrap


@pytest.fixture(scope="session", autouse=True)
def bubblewrap() -> None:
    need_bubblewrap()
