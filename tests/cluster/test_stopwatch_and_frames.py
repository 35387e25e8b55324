"""Time that counts, and frames as they come."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.engine.executors import wire
from securebench.engine.executors.wire import (
    MAX_FRAME,
    Frame,
    Frames,
    FrameTooLarge,
    decode_fault,
    encode_fault,
    encode_frame,
)
from securebench.engine.stopwatch import Stopwatch, waiting
from securebench.errors import (
    ConfigError,
    InfrastructureError,
    IntegrityError,
    SandboxUnavailable,
    SecureBenchError,
    StoreError,
)


def test_waiting_for_a_place_does_not_count() -> None:
    async def run() -> tuple[float, bool]:
        watch = Stopwatch(3)
        with watch.running():
            await anyio.sleep(0.05)
            with waiting():
                await anyio.sleep(4)
            await anyio.sleep(0.05)
        return watch.seconds, watch.expired

    seconds, expired = anyio.run(run)
    assert not expired
    assert seconds < 3


def test_what_takes_longer_than_its_limit_is_ended() -> None:
    async def run() -> bool:
        watch = Stopwatch(0.1)
        with watch.running():
            with waiting():
                await anyio.sleep(0.1)
            await anyio.sleep(60)
        return watch.expired

    assert anyio.run(run)


def test_waiting_is_nobodys_where_no_watch_runs() -> None:
    async def run() -> None:
        with waiting():
            await anyio.sleep(0)

    anyio.run(run)


def test_attempts_side_by_side_have_watches_of_their_own() -> None:
    async def run() -> list[bool]:
        expired = [False, False]

        async def one(number: int) -> None:
            watch = Stopwatch(1)
            with watch.running():
                if number:
                    with waiting():
                        await anyio.sleep(2)
                else:
                    await anyio.sleep(2)
            expired[number] = watch.expired

        async with anyio.create_task_group() as group:
            group.start_soon(one, 0)
            group.start_soon(one, 1)
        return expired

    assert anyio.run(run) == [True, False]


_frames = st.builds(Frame, st.integers(0, 255), st.integers(0, 2**32 - 1), st.binary(max_size=200))


@given(st.lists(_frames, max_size=10), st.lists(st.integers(1, 50), min_size=1))
def test_frames_come_out_whole_however_they_are_cut(sent: list[Frame], sizes: list[int]) -> None:
    data = b"".join(encode_frame(*frame) for frame in sent)
    frames, came, at, turn = Frames(), [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        frames.feed(data[at : at + size])
        at, turn = at + size, turn + 1
        while (frame := frames.next()) is not None:
            came.append(frame)
    assert came == sent


def test_a_frame_longer_than_any_of_ours_is_refused() -> None:
    frames = Frames()
    frames.feed((MAX_FRAME + 1).to_bytes(4, "little") + b"\0" * 5)
    with pytest.raises(IntegrityError):
        frames.next()


def test_a_frame_that_would_be_refused_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_FRAME", 10)
    assert len(encode_frame(1, 1, b"x" * 10)) > 10
    with pytest.raises(FrameTooLarge):
        encode_frame(1, 1, b"x" * 11)


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("a"),
        IntegrityError("b"),
        InfrastructureError("c"),
        StoreError("d"),
        SandboxUnavailable("e", "do this"),
    ],
)
def test_a_fault_arrives_as_it_was(error: SecureBenchError) -> None:
    came = decode_fault(encode_fault(error))
    assert type(came) is type(error)
    assert str(came) == str(error)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'"x"', b'{"kind": "", "message": ""}'])
def test_a_fault_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        decode_fault(data)
