"""Zeros for which no disk is used. An agent can have gigabytes of them for nothing, so nobody else may pay for them."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK = 4096
_ZEROS = bytes(BLOCK)


def runs(data: bytes) -> Iterator[bytes | int]:
    """The same bytes in order; whole blocks of zeros as their length."""
    kept, zeros = 0, 0  # data[kept:place - zeros] is to be given, and so many zeros after it
    place = 0
    for place in range(0, len(data) - BLOCK + 1, BLOCK):
        if data.startswith(_ZEROS, place):
            if not zeros and place > kept:
                yield data[kept:place]
            zeros += BLOCK
        elif zeros:
            yield zeros
            kept, zeros = place, 0
    if zeros:
        yield zeros
        kept = place + BLOCK
    if kept < len(data):
        yield data[kept:]
