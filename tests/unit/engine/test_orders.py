"""What goes to the engine's processes and comes back: bytes that say the same on both sides."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.engine.executors import wire
from securebench.engine.executors.base import Done, Order
from securebench.engine.executors.wire import Connection, Frame, decode_fault, encode_fault
from securebench.errors import (
    ConfigError,
    InfrastructureError,
    IntegrityError,
    PackError,
    SandboxUnavailable,
    SecureBenchError,
    StoreError,
)

REPEAT = {"phase": "verify", "fault": "gone", "waited_seconds": 0.0}


@given(
    st.builds(
        Order,
        row=st.integers(0, 2**40),
        attempt=st.integers(1, 2**40),
        lost=st.integers(0, 9),
        sample=st.none() | st.binary(),
        line=st.none() | st.integers(1, 2**40),
        repeats=st.lists(st.just(REPEAT), max_size=2).map(tuple),
        fault=st.none() | st.text(),
    )
)
def test_order_reads_back_whatever_the_sample_holds(order: Order) -> None:
    assert Order.decode(order.encode()) == order


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"row": 1, "attempt": 1, "more": 1}', b"\xff", b"null\nx"])
def test_what_is_no_order_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="not an order"):
        Order.decode(data)


@pytest.mark.parametrize("body", [b"", b"[1", b'{"a":1,"a":2'])
def test_what_is_no_body_of_a_record_is_refused(body: bytes) -> None:
    with pytest.raises(IntegrityError, match="not the body"):
        Done.decode(body)


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("c"),
        PackError("p"),
        IntegrityError("i"),
        StoreError("s"),
        InfrastructureError("f"),
        SandboxUnavailable("none", "Install it."),
    ],
)
def test_errors_keep_whose_fault_they_are(error: SecureBenchError) -> None:
    again = decode_fault(encode_fault(error))
    assert (type(again), str(again)) == (type(error), str(error))


@contextmanager
def pair() -> Iterator[tuple[Connection, Connection]]:
    one, other = socket.socketpair()
    with one, other:
        yield Connection(one), Connection(other)


def test_frames_of_several_writers_are_not_mixed() -> None:
    frames = [(wire.ORDER, number, os.urandom(number * 50_000)) for number in range(12)]
    got: list[Frame] = []

    async def main() -> None:
        with pair() as (ours, theirs):

            async def read() -> None:
                while (frame := await theirs.receive()) is not None:
                    got.append(frame)

            async with anyio.create_task_group() as reader:
                reader.start_soon(read)
                async with anyio.create_task_group() as writers:
                    for frame in frames:
                        writers.start_soon(ours.send, *frame)
                ours.close()

    anyio.run(main)
    assert sorted(got) == sorted(Frame(*frame) for frame in frames)


def test_frame_goes_out_whole_also_when_its_sender_is_cancelled() -> None:
    data = os.urandom(2_000_000)  # more than the socket holds
    got: list[Frame | None] = []

    async def main() -> None:
        with pair() as (ours, theirs):

            async def read_late() -> None:
                await anyio.sleep(0.1)
                got.extend([await theirs.receive(), await theirs.receive()])

            async with anyio.create_task_group() as group:
                group.start_soon(read_late)
                with anyio.move_on_after(0.02) as cut:
                    await ours.send(wire.ORDER, 1, data)
                assert cut.cancel_called
                await ours.send(wire.CANCEL, 1)

    anyio.run(main)
    assert got == [Frame(wire.ORDER, 1, data), Frame(wire.CANCEL, 1, b"")]


@pytest.mark.parametrize("data, end", [(b"\xff" * 100, False), (b"\x05\0\0\0", True)])
def test_nonsense_is_no_frame_and_half_a_frame_is_the_end(data: bytes, end: bool) -> None:
    async def main() -> Frame | None:
        ours, theirs = socket.socketpair()
        with theirs:
            ours.sendall(data)
            ours.close()
            return await Connection(theirs).receive()

    if end:
        assert anyio.run(main) is None
    else:
        with pytest.raises(IntegrityError, match="no frame"):
            anyio.run(main)
