"""A few conversations of a worker with nobody, before there is a candidate: a fork server has them, so that what every
worker does has been done often enough for the interpreter to be quick at it. Leaves nothing behind."""

from __future__ import annotations

import sys

from securebench.verifiers.rooms.codec import Opaque, encode
from securebench.verifiers.rooms.inside.worker import MODULE, Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ROUNDS = 12
CANDIDATE = '''from typing import List


def solve(items: List[float], limit: float = 0.5) -> bool:
    """Whether two of them are closer than that."""
    for index, item in enumerate(items):
        for other in items[index + 1:]:
            if isinstance(other, float) and abs(item - other) < limit:
                return True
    return False
'''


class Script:
    """In the place of a channel: what it was given is received, what is sent is heard by nobody."""

    def __init__(self, messages: list[bytes]) -> None:
        self.messages = messages

    def send(self, payload: bytes) -> None:
        """Nobody listens."""

    def receive(self) -> Any:
        return self.messages.pop(0) if self.messages else None


def main() -> None:
    call = [2, "call", Opaque("w", 0, "function"), [[1.5, 2, "three"], 0.5], {}]
    requests: list[Any] = [[0, "load", CANDIDATE], [1, "names", ["solve"]], call, call, call, call, call]
    shown = sys.stdout
    try:
        for _ in range(ROUNDS):
            Worker(Script([encode(request) for request in requests])).serve()  # type: ignore[arg-type]
    finally:
        sys.stdout = shown
        sys.modules.pop(MODULE, None)
