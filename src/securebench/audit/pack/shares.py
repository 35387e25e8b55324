"""One pass over the rows of a pack, shared out over the cores where the pack is large."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from securebench._proc import Forked
from securebench.benchmark_pack import BenchmarkPack, load_benchmark_pack, sound_rows
from securebench.pack_schema import AnyRow

SHARED_BEYOND = 1024 * 1024  # bytes of tasks.jsonl from which sharing out pays
MAX_SHARES = 16


class Tally(Protocol):
    """Sees rows, one after the other, and adds up with what was seen elsewhere."""

    def see(self, row: AnyRow, line: int) -> None: ...

    def to_bytes(self) -> bytes: ...

    def add_bytes(self, data: bytes) -> None:
        """Take in what `to_bytes` of another one gave."""
        ...


T = TypeVar("T", bound=Tally)


def load_with(manifest: Path, tasks: Path, new: Callable[[], T]) -> tuple[BenchmarkPack, T]:
    """Load a pack and let a tally see every sound row. Raises PackError as `load_benchmark_pack` does."""
    shares = _shares(tasks)
    helpers = [Forked(partial(_share, manifest, tasks, new, shares, number)) for number in range(1, shares)]
    own = new()

    def see(row: AnyRow, line: int) -> None:
        if _owner(line, shares) == 0:
            own.see(row, line)

    try:
        pack = load_benchmark_pack(manifest, tasks, on_row=see)
    finally:
        answers = [helper.result() for helper in helpers]
    for answer in answers:
        own.add_bytes(answer)
    return pack, own


def _shares(tasks: Path) -> int:
    large = tasks.is_file() and tasks.stat().st_size > SHARED_BEYOND
    return min(len(os.sched_getaffinity(0)), MAX_SHARES) if large else 1


def _owner(line: int, shares: int) -> int:
    """Who looks at a line: 0 is the process that also loads the whole pack, so it gets less, or nothing, of the rest.

    Loading costs half as much as the controls; of three units for each other process it keeps what evens that out."""
    own = max(0, 4 - shares)
    unit = line % (own + 3 * (shares - 1))
    return 0 if unit < own else 1 + (unit - own) // 3


def _share(manifest: Path, tasks: Path, new: Callable[[], Tally], shares: int, number: int) -> bytes:
    tally = new()
    for row, line in sound_rows(manifest, tasks, lambda line: _owner(line, shares) == number):
        tally.see(row, line)
    return tally.to_bytes()
