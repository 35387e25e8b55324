"""What the scripted model says: turns, tool calls, faults, and scripts that choose among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from securebench.testing.model_server.asked import Asked

SHELL = "$shell"
"""The name of a tool call that goes to whichever shell tool a request offers."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, by the name the client gave it."""

    name: str
    arguments: Mapping[str, Any]


def run_command(command: str) -> ToolCall:
    """Run a shell command with the tool that the client offers for it, whatever that is called."""
    return ToolCall(SHELL, {"command": command})


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one try: an error status, a connection that ends before or amid the reply."""

    status: int | None = None
    retry_after: str | None = None
    drop: bool = False  # before a byte of the reply
    cut_after: int | None = None  # events of a stream, or bytes of a plain reply, and then the connection ends
    echo: bool = False  # the error repeats the headers, credentials included
    message: str = "scripted fault"


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the model. `usage` is (input, of those cached, output) in tokens; None leaves it out."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    usage: tuple[int, int, int] | None = (10, 0, 5)
    delay: float = 0.0  # seconds before the first byte
    pace: float = 0.0  # seconds before each event of a stream
    status: int = 200
    raw: bytes | None = None  # the whole body in the place of a well-formed one
    content_type: str = "application/json"  # of `raw`
    finish: str | None = None  # "length", "refusal" or "content_filter" where the model did not just stop
    model: str | None = None  # the name it says it has; the one asked for unless told
    chunks: int = 4  # deltas the text comes in
    faults: Sequence[Fault] = field(default=())  # one per try, before the turn is played


Script = Sequence[Turn] | Callable[["Asked"], Turn]
"""Turns in order, or a function from the request to its turn."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A script for the requests that `when` accepts."""

    when: Callable[[Asked], bool]
    script: Script


OVER = Turn("The script is over.")
BACKGROUND = Turn('{"title": "Task", "isNewTopic": false}')
"""What requests without tools get beside a script that calls tools: Claude Code asks such things on its own."""


def turn_for(asked: Asked, scenes: Sequence[Scene], script: Script) -> Turn:
    """The turn this request is at: as many turns of the model as it holds are over."""
    chosen = next((scene.script for scene in scenes if scene.when(asked)), script)
    if callable(chosen):
        return chosen(asked)
    if not asked.tools and any(turn.tool_calls for turn in chosen):
        return BACKGROUND
    return chosen[asked.turn] if asked.turn < len(chosen) else OVER


def mentions(text: str) -> Callable[[Asked], bool]:
    """Whether the request holds that text anywhere, for `Scene.when`."""
    return lambda asked: text in asked.text
