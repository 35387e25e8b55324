"""Zeros cost nothing, wherever they come from."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from securebench.candidates.holes import BLOCK, runs
from securebench.candidates.store import CandidateStore

_parts = st.sampled_from(
    [bytes(BLOCK), b"x" * BLOCK, bytes(BLOCK - 1), b"x", bytes(3 * BLOCK), bytes(BLOCK - 1) + b"x"]
)


@given(st.lists(_parts, max_size=8))
def test_runs_are_the_same_bytes(parts: list[bytes]) -> None:
    data = b"".join(parts)
    found = list(runs(data))
    assert b"".join(bytes(run) if isinstance(run, int) else run for run in found) == data
    assert all(found)


def test_whole_blocks_of_zeros_are_numbers() -> None:
    assert list(runs(bytes(3 * BLOCK))) == [3 * BLOCK]
    assert list(runs(b"a" * BLOCK + bytes(2 * BLOCK) + b"bc")) == [b"a" * BLOCK, 2 * BLOCK, b"bc"]


def test_zeros_that_come_in_pieces_take_no_disk(tmp_path: Path) -> None:
    store = CandidateStore(tmp_path)
    pieces = [bytes(2**20)] * 8 + [b"end"] + [bytes(2**20)]
    with store.batch() as batch:
        digest = batch.put_pieces(iter(pieces))
    (stored,) = (path for path in (tmp_path / "blobs").rglob("*") if path.is_file())
    assert stored.stat().st_size == 9 * 2**20 + 3
    assert os.stat(stored).st_blocks * 512 < 2**20
    assert store.read(digest, 2**30) == b"".join(pieces)
