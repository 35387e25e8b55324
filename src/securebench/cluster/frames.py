"""Kinds of frames between the head and a node. Frames about an attempt carry its number.

To the node: `SETUP` once; then `PRODUCE` or `VERIFY` begins an attempt, `GO` lets its agent start, `CANCEL` ends it.
Back: `READY` once with the node's report; then `STARTED` before an agent starts, `OUTPUT` and `READING` while it runs,
and one of `RESULT`, `CANCELLED` or `FAULT`. A `FAULT` with the number 0 is about the setup.
Both ways: `NEED` lists the contents that are missing, `PIECE` brings a part of them, an empty one is the last.
An agent that asks models: the node says `MODELS` and is told by what variables the agent reaches them, never a key.
Its connections come as `OPEN`, `BYTES`, `TAKEN`, `END` and `CLOSE` (streams.py), the head says `SPENT` when a budget is
used up, and once the agent has ended the node says `ACCOUNT` and is told what was asked and used. Where no model ever
answered it says `PROBE`, and is told what is wrong with the providers.
About the node itself, with the number 0: the head says `PING` and is answered with the same, and the node says `DRAIN`
when it wants no more work and would rather begin anew; then the head lets it end what it is at and closes the link.
After a `RESULT` the head always says what it needs, if only nothing; then the attempt is over."""

from __future__ import annotations

from typing import Protocol

from securebench.engine.executors.wire import Frame

SETUP, READY, PRODUCE, VERIFY, CANCEL, GO, STARTED, OUTPUT, READING, RESULT, CANCELLED, FAULT, NEED, PIECE = range(
    1, 15
)
MODELS, ACCOUNT, PROBE, SPENT, OPEN, BYTES, TAKEN, END, CLOSE = range(15, 24)
PING, DRAIN = 24, 25
ASIDE = frozenset({SPENT, OPEN, BYTES, TAKEN, END, CLOSE})  # taken at once, whatever else waits to be heard


class Link(Protocol):
    """A stream of frames to somebody. For one reader and any number of writers."""

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None:
        """Raises ConnectionError when the other end is gone, FrameTooLarge."""
        ...

    async def receive(self) -> Frame | None:
        """None when the other end is gone. Raises IntegrityError for what is no frame."""
        ...
