"""One turn for one request, before it is put into the words of an API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from securebench.testing.model_server.asked import Api, Asked
from securebench.testing.model_server.shells import translated
from securebench.testing.model_server.turns import ToolCall, Turn

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """A turn for one request, its tool calls translated and numbered."""

    asked: Asked
    turn: Turn

    @property
    def model(self) -> str:
        return self.turn.model or self.asked.model

    @property
    def calls(self) -> list[tuple[str, ToolCall]]:
        prefix = "toolu" if self.asked.api is Api.MESSAGES else "call"
        return [
            (f"{prefix}_turn{self.asked.turn}_{number}", translated(call, self.asked))
            for number, call in enumerate(self.turn.tool_calls)
        ]


def pieces(text: str, count: int) -> Iterator[str]:
    """The text in `count` deltas, or as many as it has characters."""
    size = max(1, -(-len(text) // max(1, count)))
    return (text[start : start + size] for start in range(0, len(text), size))
