"""Texts of any length, kept as far as there is room: the beginning and the end, and how much is left out between."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clip:
    """A text, whole unless `left_out` says how many characters are missing between `start` and `end`."""

    start: str
    left_out: int = 0
    end: str = ""

    def __bool__(self) -> bool:
        return bool(self.start or self.left_out or self.end)

    def as_json(self) -> str | dict[str, str | int]:
        """The text itself where it is whole."""
        return {"start": self.start, "left_out": self.left_out, "end": self.end} if self.left_out else self.start


def clip(text: str, limit: int) -> Clip:
    """At most `limit` characters of it, a third of them from its end: that is where programs say what went wrong."""
    if len(text) <= limit:
        return Clip(text)
    tail = limit // 3
    return Clip(text[: limit - tail], len(text) - limit, text[len(text) - tail :])
