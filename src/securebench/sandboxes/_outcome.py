"""How a command ended, decided from what was observed outside. Pure.

Our own kill comes first, because everything after it is a consequence; then what the kernel did on our orders
(memory, processor time); then a signal; its own exit code last, because only that one is its own word.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from securebench.sandboxes.base import Outcome

_SIGNALS = signal.valid_signals()


@dataclass(frozen=True, slots=True)
class Ending:
    """What the parent of the command saw: an exit code or a signal; neither when it was killed with its sandbox."""

    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that bears on the outcome."""

    ending: Ending
    killed: Outcome | None = None
    oom_kills: int = 0
    cpu_limit: float | None = None
    cpu_seconds: float | None = None


def from_wait_status(status: int) -> Ending:
    """A true wait status, as our own launcher sees it."""
    number = status & 0x7F
    return Ending(signal=number) if number else Ending(exit_code=status >> 8 & 0xFF)


def from_bubblewrap(code: int) -> Ending:
    """Bubblewrap's exit code, where 128 + n stands both for signal n and for that exit code; read as the signal."""
    number = code - 128
    return Ending(signal=number) if number in _SIGNALS else Ending(exit_code=code)


def decide(seen: Observed) -> tuple[Outcome, Ending]:
    """The outcome and what is reported with it. An exit code is reported only if the command ended by itself."""
    ending = seen.ending
    if seen.killed is not None:
        return seen.killed, Ending(signal=signal.SIGKILL)
    if seen.oom_kills:
        return Outcome.OUT_OF_MEMORY, Ending(signal=ending.signal)
    over = seen.cpu_limit is not None and seen.cpu_seconds is not None and seen.cpu_seconds >= seen.cpu_limit
    if over or ending.signal == signal.SIGXCPU:
        return Outcome.CPU_LIMIT, Ending(signal=ending.signal)
    if ending.signal is not None:
        return Outcome.SIGNALLED, ending
    return Outcome.EXITED, ending
