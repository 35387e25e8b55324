from __future__ import annotations

import os
import signal

import pytest

from securebench.sandboxes._outcome import Ending, Observed, decide, from_bubblewrap, from_wait_status
from securebench.sandboxes.base import Outcome


def _decide(**seen: object) -> tuple[str, int | None, int | None]:
    outcome, ending = decide(Observed(**seen))  # type: ignore[arg-type]
    return outcome, ending.exit_code, ending.signal


def test_our_own_kill_comes_first() -> None:
    seen = {
        "ending": Ending(exit_code=0),
        "killed": Outcome.TIMEOUT,
        "oom_kills": 1,
        "cpu_limit": 1.0,
        "cpu_seconds": 2.0,
    }
    assert _decide(**seen) == ("timeout", None, signal.SIGKILL)


def test_memory_comes_before_processor_time() -> None:
    assert _decide(ending=Ending(signal=9), oom_kills=1, cpu_limit=1.0, cpu_seconds=2.0) == ("oom", None, 9)


def test_memory_counts_even_if_only_a_child_died() -> None:
    assert _decide(ending=Ending(exit_code=0), oom_kills=1) == ("oom", None, None)


def test_processor_time_comes_before_the_exit_code() -> None:
    assert _decide(ending=Ending(exit_code=0), cpu_limit=1.0, cpu_seconds=1.0)[0] == "cpu_limit"
    assert _decide(ending=Ending(signal=signal.SIGXCPU)) == ("cpu_limit", None, signal.SIGXCPU)
    assert _decide(ending=Ending(exit_code=0), cpu_limit=1.0, cpu_seconds=0.9) == ("exited", 0, None)
    assert _decide(ending=Ending(exit_code=0), cpu_limit=1.0, cpu_seconds=None) == ("exited", 0, None)


def test_signal_and_exit_code() -> None:
    assert _decide(ending=Ending(signal=11)) == ("signalled", None, 11)
    assert _decide(ending=Ending(exit_code=3)) == ("exited", 3, None)


@pytest.mark.parametrize("code", [0, 1, 127, 128, 137, 255])
def test_wait_status_of_an_exit(code: int) -> None:
    assert from_wait_status(code << 8) == Ending(exit_code=code)


def test_wait_status_of_a_signal_with_and_without_core() -> None:
    assert from_wait_status(9) == Ending(signal=9)
    assert from_wait_status(11 | 0x80) == Ending(signal=11)
    assert os.WIFSIGNALED(11 | 0x80)


def test_bubblewraps_code_above_128_is_read_as_a_signal() -> None:
    assert from_bubblewrap(137) == Ending(signal=9)
    assert from_bubblewrap(128) == Ending(exit_code=128)
    assert from_bubblewrap(255) == Ending(exit_code=255)
