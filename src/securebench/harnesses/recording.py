"""What a program prints, kept as it arrives: it must not be lost when the program has to be ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from securebench.sandboxes.base import Output


@dataclass(slots=True)
class Stream:
    """The first bytes of one stream, and how many there were in all."""

    limit: int
    data: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self.data += data[: max(0, self.limit - len(self.data))]

    @property
    def output(self) -> Output:
        return Output(bytes(self.data), self.total)


class Recording:
    """Both streams of one program; every piece is also passed on to who wants to watch."""

    def __init__(self, watch: Callable[[str, bytes], None] | None, *, limit: int) -> None:
        self.stdout, self.stderr = Stream(limit), Stream(limit)
        self._watch = watch

    def take(self, stream: str, data: bytes) -> None:
        (self.stdout if stream == "stdout" else self.stderr).add(data)
        if self._watch is not None:
            self._watch(stream, data)
