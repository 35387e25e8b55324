"""Find many texts in one, fast enough for megabytes of both.

Every needle is known by its first characters, read as one machine word. A text is read as machine words too, once at
every alignment, and only where such a word is that of a needle is anything compared. Case does not matter."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

_BLOCK = 1 << 18


def fold(text: str) -> str:
    """Lower case, one character for one and whatever stands beside it."""
    lower = text.lower() if "İ" not in text else "İ".join(part.lower() for part in text.split("İ"))
    return lower.replace("ς", "σ")


class Needles:
    """Texts to be found, all folded and of at least four characters."""

    def __init__(self, needles: Iterable[str]) -> None:
        self._needles = frozenset(needles)
        self._indexes = (
            _Index(8, "Q", [needle for needle in self._needles if len(needle) >= 8]),
            _Index(4, "I", [needle for needle in self._needles if len(needle) < 8]),
        )
        self.shortest = min(map(len, self._needles), default=sys.maxsize)
        self.longest = max(map(len, self._needles), default=0)

    def spans(self, text: str, final: bool = True) -> tuple[list[tuple[int, int]], int]:
        """Where needles stand in folded `text`, in order: every start once, with its longest needle.

        And how much of the text is decided: all of it, or, when more may follow, what stands before the first place
        where a needle may have begun."""
        decided = len(text) if final else max(0, len(text) - min(7, max(0, self.longest - 1)))
        found: list[tuple[int, int]] = []
        for start, lengths in self._candidates(text):
            if start >= decided:
                break
            if not final and start + lengths[0] > len(text):
                decided = start
                break
            for length in lengths:
                if text[start : start + length] in self._needles:
                    found.append((start, start + length))
                    break
        return found, decided

    def occurring(self, text: str) -> set[str]:
        """The needles that stand anywhere in folded `text`."""
        return {
            text[start : start + length]
            for start, lengths in self._candidates(text)
            for length in lengths
            if text[start : start + length] in self._needles
        }

    def _candidates(self, text: str) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Every place where needles may begin, in order, with their lengths, longest first."""
        data = text.encode("latin-1", "replace")  # one byte a character, the same on both sides
        large, small = self._indexes
        for base in range(0, len(data), _BLOCK):
            hits, more = large.hits(data, base), small.hits(data, base)
            if more:
                both = dict(more)
                both.update((start, bits | both.get(start, 0)) for start, bits in hits)
                hits = list(both.items())
            hits.sort()
            for start, bits in hits:
                yield start, _lengths(bits)


class _Index:
    """First words of needles, each with the set of their lengths as the bits of one number."""

    def __init__(self, width: int, code: Literal["I", "Q"], needles: list[str]) -> None:
        self._width, self._code = width, code
        self._lengths: dict[int, int] = {}
        heads = "".join([needle[:width] for needle in needles]).encode("latin-1", "replace")
        for word, needle in zip(memoryview(heads).cast(code), needles, strict=True):
            self._lengths[word] = self._lengths.get(word, 0) | (1 << len(needle))
        self._words = frozenset(self._lengths)  # twice as fast to ask as the dictionary

    def hits(self, data: bytes, base: int) -> list[tuple[int, int]]:
        """Places in one block of `data` where a needle's first word stands, with lengths; in no order."""
        found: list[tuple[int, int]] = []
        if not self._words:
            return found
        width, lengths = self._width, self._lengths
        block = memoryview(data)[base : base + _BLOCK + width - 1]
        for phase in range(width):
            end = len(block) - (len(block) - phase) % width
            if end <= phase:
                break
            read = block[phase:end].cast(self._code).tolist()
            if here := self._words.intersection(read):
                first = base + phase
                found += [(first + at * width, lengths[word]) for at, word in enumerate(read) if word in here]
        return found


@lru_cache(maxsize=4096)
def _lengths(bits: int) -> tuple[int, ...]:
    return tuple(length for length in range(bits.bit_length() - 1, 0, -1) if bits >> length & 1)
