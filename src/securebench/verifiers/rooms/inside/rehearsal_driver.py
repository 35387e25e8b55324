"""A few suites before there are tests, as `rehearsal_worker` for the other room. Leaves nothing behind."""

from __future__ import annotations

import sys

from securebench.verifiers.rooms.codec import Opaque, decode, encode
from securebench.verifiers.rooms.inside.driver import drive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ROUNDS = 10
PROMPT = (
    'from typing import List\n\n\ndef solve(items: List[float], limit: float = 0.5) -> bool:\n    """Two of them?"""\n'
)
TESTS = """METADATA = {"author": "nobody"}


def check(candidate):
    assert candidate([1.0, 2.0, 3.9, 4.0], 0.3) == True
    assert candidate([1.0, 2.0, 5.9, 4.0], 0.95) == True
    assert candidate([1.0, 2, "three"]) == True, "mixed"
"""
START = {
    "style": "suite", "code": TESTS, "entry": "solve", "public": [PROMPT], "seed": "", "shared": False, "pytest": False,
    "libraries": [],
}  # fmt: skip


class Agreeable:
    """In the place of a channel: a worker whose function is always true."""

    def __init__(self) -> None:
        self.answer = b""

    def send(self, payload: bytes) -> None:
        number, value = 0, None  # loaded
        if payload[:1] == b"W":
            number, operation, *_ = decode(payload[1:])
            function = Opaque("w", 0, "function", ("function",))
            value = {"names": {"solve": function}, "entry": function}.get(operation, True)
        self.answer = b"W" + encode([number, "value", value, None, ""])

    def receive(self) -> Any:
        return self.answer


def main() -> None:
    modules, finders, shown = set(sys.modules), list(sys.meta_path), sys.stdout
    try:
        for _ in range(ROUNDS):
            encode(["report", drive(dict(START), Agreeable())])  # type: ignore[arg-type]
    finally:
        sys.stdout, sys.meta_path[:] = shown, finders
        for name in set(sys.modules) - modules:
            del sys.modules[name]
