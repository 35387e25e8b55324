"""Attempts by task and number, as small as they can be kept: a bit each."""

from __future__ import annotations

from collections.abc import Iterable

Key = tuple[str, int]
"""Task id and attempt, counted from 1."""


class AttemptSet:
    """Which attempts something is true of."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._bits: dict[str, bytearray] = {}
        self._count = 0
        for key in keys:
            self.add(key)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: Key) -> bool:
        task, attempt = key
        bits = self._bits.get(task, b"")
        return attempt >> 3 < len(bits) and bool(bits[attempt >> 3] & 1 << (attempt & 7))

    def add(self, key: Key) -> None:
        if key in self:
            return
        task, attempt = key
        bits = self._bits.setdefault(task, bytearray())
        bits.extend(bytes(max(0, (attempt >> 3) + 1 - len(bits))))
        bits[attempt >> 3] |= 1 << (attempt & 7)
        self._count += 1
