"""What holds for all tests: how long an example may take is no property of ours, and CI tries the same ones each time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "securebench",
    deadline=None,
    derandomize="SECUREBENCH_CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("securebench")

# A shell that puts a command into the background has it ignore Ctrl-C, and so would everything that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_WHOLE_SYSTEMS = ("agents", "browser", "cluster", "crash", "docker", "e2e", "unit/sandboxes", "unit/cli")
_ATTACKED = (
    *("cheat", "conformance", "demo", "escape", "forge", "full_audit", "hidden", "hostile", "inert"),
    *("leak", "liars", "public_answers", "verifiers", "walls"),
)
"""What is in the names of those among them in which somebody attacks."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In CI, a test of many processes that failed beside everything else on a busy machine is tried once more, and
    listed as a rerun. An attack is not: one that won once has won."""
    if "SECUREBENCH_CI" not in os.environ:
        return
    systems = [Path(__file__).parent / name for name in _WHOLE_SYSTEMS]
    for item in items:
        name = f"{item.path.stem}::{item.name}"
        if any(map(item.path.is_relative_to, systems)) and not any(word in name for word in _ATTACKED):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=2))
