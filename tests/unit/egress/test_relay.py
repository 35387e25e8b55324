"""A stream passes whole and in order, in few pieces, never waiting for more, never running far ahead."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import httpx2
import pytest

from securebench.egress.broker.relay import AHEAD, relay


class Sink:
    """Writes down what it is given, and when it is flushed."""

    def __init__(self, pause: float = 0.0) -> None:
        self.said: list[bytes | str] = []
        self._pause = pause

    async def take(self, data: bytes) -> None:
        self.said.append(data)
        await anyio.sleep(self._pause)

    async def flush(self) -> None:
        self.said.append("flush")


def test_what_is_there_together_goes_together_and_is_flushed_before_waiting() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"
        await anyio.sleep(0.05)
        yield b"c"

    async def main() -> list[bytes | str]:
        sink = Sink()
        await relay(source(), sink.take, sink.flush)
        return sink.said

    assert anyio.run(main) == [b"ab", "flush", b"c"]


def test_an_error_comes_after_what_was_read_before_it() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"a"
        raise httpx2.ReadError("gone")

    async def main() -> None:
        sink = Sink()
        with pytest.raises(httpx2.ReadError):
            await relay(source(), sink.take, sink.flush)
        assert sink.said == [b"a"]

    anyio.run(main)


def test_an_error_of_the_other_side_ends_the_reading() -> None:
    ended = []

    async def source() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"a"
                await anyio.sleep(0.001)
        finally:
            ended.append(True)

    async def refuse(data: bytes) -> None:
        raise BrokenPipeError

    async def main() -> None:
        with anyio.fail_after(30), pytest.raises(BrokenPipeError):
            await relay(source(), refuse, Sink().flush)

    anyio.run(main)
    assert ended == [True]


def test_reading_does_not_run_far_ahead_of_a_slow_reader() -> None:
    made = 0

    async def source() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(100):
            made += 65536
            yield b"x" * 65536

    async def main() -> None:
        taken = 0

        async def take(data: bytes) -> None:
            nonlocal taken
            taken += len(data)
            await anyio.sleep(0.001)
            assert made - taken <= AHEAD + 65536

        await relay(source(), take, Sink().flush)
        assert taken == 100 * 65536

    anyio.run(main)
