"""What the driver saw, in the order in which it saw it. Turned into a verdict on the host, not here."""

from __future__ import annotations

import builtins
import time

from securebench.verifiers.rooms.inside.remote import CandidateBroken, Link, StaleRemote, WorkerLost

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any, Callable

_OURS = ("OpaqueValue", "CannotCross")
MAX_WORKERS = 12  # of one suite; tests are dealt out to them


class PackBroken(Exception):
    """The tests themselves cannot be run; nothing of the candidate's has to do with it."""


class Said:
    """What a test says itself, where it does not simply raise or return."""

    def __init__(self, outcome: str, why: str) -> None:
        self.outcome, self.why = outcome, why


class Recorder:
    """The tests that were planned, and the outcome of each."""

    def __init__(self, link: Link, shared: bool) -> None:
        self.link, self.shared = link, shared
        self.planned = 0
        self.done = 0
        self.outcomes: list[list[Any]] = []

    def plan(self, count: int) -> None:
        self.planned = count

    def turn(self) -> None:
        """Before each test: another worker where its group begins, or where the last one was lost."""
        size = -(-self.planned // MAX_WORKERS)
        begins = not self.shared and self.done > 0 and self.done % size == 0
        self.done += 1
        if begins or self.link.lost is not None:
            self.link.fresh()

    def add(self, index: int, outcome: str, why: str, seconds: float) -> None:
        """One outcome. Whatever the test itself concluded, a lost worker or a swallowed assertion is no pass, also one
        that was swallowed since the last outcome."""
        if outcome == "passed" and self.link.lost is not None:
            outcome, why = "failed", "worker lost"
        elif outcome == "passed" and self.link.asserted:
            outcome, why = "failed", "assertion in a call-back"
        self.link.asserted = False
        self.outcomes.append([index, outcome, why[:100], seconds])

    def spoil(self) -> None:
        """Something outside of every test failed: one is planned that never comes."""
        self.planned = max(self.planned, 1) + 1

    def run(self, index: int, test: Callable[[], Any]) -> None:
        """Run one test to its outcome. Raises StaleRemote only."""
        began = time.monotonic()
        try:
            self.turn()
            result = test()
            outcome, why = (result.outcome, result.why) if type(result) is Said else ("passed", "")
        except StaleRemote:
            raise
        except BaseException as error:
            outcome, why = "failed", reason(error)
        self.add(index, outcome, why, time.monotonic() - began)


def reason(error: BaseException) -> str:
    if isinstance(error, WorkerLost):
        return "worker lost"
    if isinstance(error, CandidateBroken):
        return "does not load"
    if isinstance(error, AssertionError):
        return "wrong"
    name = type(error).__name__  # any other name could spell out what the candidate was called with
    return "raised " + (name if hasattr(builtins, name) or name in _OURS else "an error of its own")
