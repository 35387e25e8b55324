"""The conformance suite of all backends, run in warm rooms. What does not apply is named with the reason."""

from __future__ import annotations

from inspect import signature

import pytest
from tests.conformance.sandbox import test_listeners, test_sessions
from tests.conformance.sandbox.box import Box
from tests.conformance.sandbox.conftest import PLAIN, usable
from tests.conformance.sandbox.suite import checks
from tests.conformance.sandbox.through_python import ThroughPython

from securebench.sandboxes._warm.pool import Pool
from securebench.sandboxes.base import Scratch

_COLD = "sandboxes with scratch directories, listeners or a network are not warm"
_FIRST = "it is the first process of its namespace, to which the kernel delivers no signal it sends itself; see docs"
_ADAPTED = "the command that is refused, or its other channels, never reach a warm room: `ThroughPython` packs them up"
NOT_WARM: dict[str, str] = {
    **{
        name: _COLD
        for module in (test_listeners, test_sessions)
        for name, check in vars(module).items()
        if name.startswith("test_") and "box" in signature(check).parameters
    },
    "test_signal_is_faithful": _FIRST,
    "test_end_of_the_command_ends_the_stream[kill -9 $$]": _FIRST,
    "test_refused_command_gives_its_channels_up": _ADAPTED,
    "test_impossible_command_is_refused": _ADAPTED,
    "test_channels_arrive_under_their_numbers": "programs with other channels do not begin warm",
}


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Box:
    usable(PLAIN)
    monkeypatch.setattr(Pool, "is_worth_it", lambda *_: True)  # else warm from the second time on, where it has mounts
    return Box(ThroughPython())


def _warm(value: object) -> bool:
    return not (isinstance(value, tuple) and any(isinstance(one, Scratch) for one in value))


globals().update(checks(NOT_WARM, concerns=_warm))
