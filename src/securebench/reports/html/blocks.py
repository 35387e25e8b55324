"""Data inside a page that its script unpacks when somebody looks: JSON, compressed, in base64.

A block of data is no script and no markup: its letters are those of base64. All blocks of a page together keep within
a budget; what is told of an attempt is cut further until they do, and says so."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from securebench import _json
from securebench.reports.details import Bounds

TASKS_BYTES = 14 * 2**20  # base64 of all details of a page; the table and the figures come on top
_ATTEMPTS = 48  # that share a block
_ROOMY = 0.35  # of its share: the next block may try to tell more
LEVELS = (
    Bounds(64 * 1024, 400, 500),
    Bounds(16 * 1024, 150, 300),
    Bounds(4 * 1024, 50, 100),
    Bounds(1024, 12, 40),
    Bounds(400, 0, 12),
    Bounds(120, 0, 4),
    Bounds(0, 0, 0),
)
"""From generous to nothing but headings."""

Telling = Callable[[int, Bounds], Any]
"""All that is told of the task with that number, within bounds, as JSON."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """`texts` are the blocks; task `n` is in block `n // size`, at place `n % size`."""

    size: int
    texts: tuple[str, ...]


def pack(value: Any) -> str:
    """A JSON value as it stands in a page."""
    return base64.b64encode(zlib.compress(_json.dumps(value).encode(), 6)).decode("ascii")


def unpack(text: str) -> Any:
    """What `pack` packed, for tests and for who wants to read a page without a browser. Raises ValueError."""
    return _json.loads(zlib.decompress(base64.b64decode(text, validate=True)))


def packed_tasks(tasks: int, attempts: int, tell: Telling, budget: int = TASKS_BYTES) -> Blocks:
    """The details of all tasks, in blocks of a few dozen attempts."""
    size = max(1, _ATTEMPTS // max(1, attempts))
    return Blocks(size, tuple(_fitted(tasks, size, tell, budget)))


def _fitted(tasks: int, size: int, tell: Telling, budget: int) -> Iterator[str]:
    """Each block gets an equal share of what is left, so that long ones use what short ones did not."""
    level, roomy = 0, False
    for start in range(0, tasks, size):
        share = budget / ((tasks - start + size - 1) // size)
        level -= roomy
        numbers = range(start, min(tasks, start + size))
        block = _block(numbers, tell, LEVELS[level])
        while len(block) > share and level < len(LEVELS) - 1:
            level += 1
            block = _block(numbers, tell, LEVELS[level])
        budget -= len(block)
        roomy = level > 0 and len(block) < share * _ROOMY
        yield block


def _block(numbers: Sequence[int], tell: Telling, bounds: Bounds) -> str:
    return pack([tell(number, bounds) for number in numbers])
