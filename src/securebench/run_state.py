"""What every display of a run under way shows, kept from its events alone. Pure but for the clock, an argument."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from securebench.progress import Event, ProgressEvent

Key = tuple[str, int]

_PHASES = {
    Event.PRODUCER_START: "producing",
    Event.PRODUCER_DONE: "waiting",
    Event.VERIFIER_START: "verifying",
    Event.VERIFIER_DONE: "recording",
}
_RECENT = 50  # attempts that the rate is taken from
_SHORTEST = 1e-9  # seconds that say anything of it; a journal can name any time


@dataclass(slots=True)
class Running:
    """One attempt under way."""

    since: float
    phase: str = "producing"


class RunState:
    """Counts and attempts under way. O(1) per event, memory for what runs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.planned = self.done = self.before = 0
        self.by_status: Counter[str] = Counter()
        self.running: dict[Key, Running] = {}  # in the order they began: the longest first
        self.tokens = 0
        self.cost: float | None = None
        self._finished: deque[float] = deque([clock()], maxlen=_RECENT + 1)

    def see(self, event: ProgressEvent) -> None:
        data, key = event.data, (event.task_id or "", event.attempt or 0)
        if event.event is Event.RUN_START:
            self.planned, self.before = data["planned"], data["done_before"]
            self.done = self.before
            self.running.clear()
            self.by_status.pop("error", None)  # of an earlier session: run again, and not among those done before
            self._finished.clear()  # what went before was preparation
            self._finished.append(self._clock())
        elif event.event is Event.TASK_START:
            self.running[key] = Running(self._clock(), data.get("phase", "producing"))
        elif event.event in _PHASES:
            if key in self.running:
                self.running[key].phase = _PHASES[event.event]
        elif event.event is Event.TASK_DONE:
            self._end(key, event)

    def _end(self, key: Key, event: ProgressEvent) -> None:
        self.running.pop(key, None)
        self.done += 1
        self.by_status[event.data["status"]] += 1
        self.tokens += event.data.get("tokens") or 0
        if (cost := event.data.get("cost_usd")) is not None:
            self.cost = (self.cost or 0.0) + cost
        self._finished.append(self._clock())

    def rate(self) -> float | None:
        """Attempts a second, over the last few."""
        finishes = list(self._finished)
        if not finishes:
            return None
        number, span = len(finishes) - 1, self._clock() - finishes[0]
        finished = self.done - self.before
        return min(number, finished) / span if finished and span > _SHORTEST else None

    def left(self) -> float | None:
        """Seconds until all is done, if it goes on so."""
        rate = self.rate()
        return (self.planned - self.done) / rate if rate and self.done < self.planned else None

    def phases(self) -> Counter[str]:
        return Counter(one.phase for _, one in self.longest(len(self.running)))

    def longest(self, number: int) -> list[tuple[Key, Running]]:
        """The attempts that run longest. May be asked by another thread than the one that sees events."""
        return list(self.running.items())[:number]

    def now(self) -> float:
        return self._clock()
