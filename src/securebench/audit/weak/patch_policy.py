"""Policies over changes that are too trusting."""

from __future__ import annotations

import time
from configparser import ConfigParser
from configparser import Error as UnreadableIni
from dataclasses import dataclass

from anyio import to_thread

from securebench.audit.plays.patch import ChangeOf, Links
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.candidates.tree import Delta

_RUNNERS = ("tool:pytest", "pytest")


@dataclass(frozen=True, slots=True)
class OneReader:
    """Allows what makes no difference to the one reader of such files that it knows."""

    change: ChangeOf

    async def on(self, _: Ground) -> Seen:
        same = _section(self.change.before) == _section(self.change.after)
        return Seen(End.REACHED if same else End.MISSED, "the runner's section is the same to one reader")


def _section(text: str) -> dict[str, str] | None:
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except UnreadableIni:
        return None
    return next((dict(parser[name]) for name in _RUNNERS if name in parser), {})


@dataclass(frozen=True, slots=True)
class EveryLink:
    """Follows every link to its end."""

    links: Links

    async def on(self, _: Ground) -> Seen:
        return await to_thread.run_sync(self.links.timed, self._follow)

    def _follow(self, delta: Delta) -> None:
        targets = {entry.path: (entry.target or "").split("/") for entry in delta.added}
        began = time.thread_time()
        for entry in delta.added:
            place = [entry.path]
            for _ in range(40):
                place = targets.get(place[0], []) + place[1:]
            if time.thread_time() - began > self.links.seconds:  # long enough to see
                return
