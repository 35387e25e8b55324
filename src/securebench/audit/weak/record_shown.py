"""A viewer that shows texts as they are."""

from __future__ import annotations

from dataclasses import dataclass

from securebench.audit.plays.run_shown import MARK, seen_in
from securebench.audit.suite.attack import Ground, Seen


@dataclass(frozen=True, slots=True)
class AsItIs:
    """Prints every line of the text on a line of its own."""

    text: str

    async def on(self, ground: Ground) -> Seen:  # noqa: ARG002 — the shape of a play
        return seen_in(f"task shown\n{MARK}{self.text}\n", wanted=False)
