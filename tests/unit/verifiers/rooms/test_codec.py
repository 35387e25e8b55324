"""The codec: what goes in comes out, and nothing else gets through."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from securebench.verifiers.rooms.codec import (
    MAX_DEPTH,
    MAX_FRAME,
    MAX_INTEGER,
    CodecError,
    Frames,
    Opaque,
    Thrown,
    ThrownType,
    decode,
    encode,
    frame,
)

VALUES = [
    None, True, False, Ellipsis, NotImplemented, 0, -1, 10**500, -(10**500), 1.5, -0.0, float("inf"), 1 + 2j, "", "ü",
    "\ud800", b"", b"\0\xff", bytearray(b"x"), [], [1, [2]], (), (1, "a"), set(), {1, 2}, frozenset({1}), {},
    {"b": 1, "a": [2], 3: None}, range(3), range(10, 0, -2), int, dict, ValueError, type, object,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    back = decode(encode(value))
    assert type(back) is type(value)
    assert repr(back) == repr(value) or back == value


def test_nan_order_and_sign_survive() -> None:
    assert math.isnan(decode(encode(float("nan"))))
    assert math.copysign(1, decode(encode(-0.0))) == -1
    assert list(decode(encode({"z": 1, "a": 2}))) == ["z", "a"]


class _Int(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__

    def to_bytes(self, *a: Any, **k: Any) -> bytes:
        return b"lies"

    def bit_length(self) -> int:
        return 0


class _Str(str):
    def encode(self, *a: Any, **k: Any) -> bytes:
        return b"lies"

    def __str__(self) -> str:
        return "lies"


class _List(list[int]):
    def __iter__(self) -> Any:
        return iter([9])

    def __len__(self) -> int:
        return 9

    def __getitem__(self, key: Any) -> Any:
        return [9]


class _Dict(dict[str, int]):
    def items(self) -> Any:
        return [("lies", 1)]

    def __len__(self) -> int:
        return 9


class _Float(float):
    def __float__(self) -> float:
        return 9.0


@pytest.mark.parametrize(
    ("lying", "truth"), [(_Int(3), 3), (_Str("a"), "a"), (_List([1]), [1]), (_Dict(a=1), {"a": 1}), (_Float(2), 2.0)]
)
def test_a_subclass_crosses_as_what_it_is_made_of(lying: Any, truth: Any) -> None:
    back = decode(encode(lying))
    assert type(back) is type(truth)
    assert back == truth


def test_what_is_not_plain_does_not_cross_by_itself() -> None:
    for value in (object(), lambda: 1, (x for x in []), [object()], {"a": object()}):
        with pytest.raises(CodecError):
            encode(value)
    assert decode(encode([object()], keep=lambda _: Opaque("w", 7, "object", ("T",))))[0].key() == (
        "w",
        7,
        "object",
        ("T",),
    )


def test_exceptions_are_names_and_plain_arguments() -> None:
    thrown = decode(encode(Thrown(("E", "Exception"), "why", (1, "a"))))
    assert thrown.key() == (("E", "Exception"), "why", (1, "a"))
    assert decode(encode(ThrownType(("E", "Exception")))).names == ("E", "Exception")


def test_limits_hold_when_writing() -> None:
    deep: Any = []
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    itself: list[Any] = []
    itself.append(itself)
    for value in (deep, itself, 1 << (8 * MAX_INTEGER + 1), "x" * (MAX_FRAME + 1), [0] * 1_000_001):
        with pytest.raises(CodecError):
            encode(value)


def _length(number: int) -> bytes:
    return struct.pack(">I", number)


HOSTILE = {
    "nothing": b"",
    "unknown kind": b"?",
    "left over": b"NN",
    "text cut short": b"S" + _length(5) + b"abc",
    "text that is no UTF-8": b"S" + _length(1) + b"\xff",
    "a length without end": b"S" + b"\xff" * 4,
    "a list without end": b"L" + b"\xff" * 4,
    "more items than bytes": b"L" + _length(1000) + b"N",
    "an empty integer": b"I" + _length(0),
    "an integer without end": b"I" + _length(MAX_INTEGER + 1) + b"\1" * (MAX_INTEGER + 1),
    "nested without end": (b"L" + _length(1)) * 5000 + b"N",
    "a list in a set": b"E" + _length(1) + b"L" + _length(0),
    "a member twice": b"E" + _length(2) + b"TT",
    "one and true": b"E" + _length(2) + b"T" + b"I" + _length(1) + b"\1",
    "a key twice": b"M" + _length(2) + b"NTNF",
    "a dict as a key": b"M" + _length(1) + b"M" + _length(0) + b"N",
    "a range without a step": b"G" + (b"I" + _length(1) + b"\0") * 3,
    "a type that is none": b"Y" + b"S" + _length(4) + b"open",
    "a type of another module": b"Y" + b"S" + _length(2) + b"os",
    "an exception without a name": b"X" + b"U" + _length(0) + b"S" + _length(0) + b"N",
    "an object of half": b"O" + b"S" + _length(1) + b"w",
    "a frame too large": b"B" + _length(MAX_FRAME) + b"x" * MAX_FRAME,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused(name: str) -> None:
    with pytest.raises(CodecError):
        decode(HOSTILE[name])


def test_frames_are_cut_wherever_the_bytes_are() -> None:
    stream = frame(b"one") + frame(b"") + frame(b"three")
    frames, found = Frames(), []
    for index in range(len(stream)):
        frames.add(stream[index : index + 1])
        while (message := frames.next()) is not None:
            found.append(message)
    assert found == [b"one", b"", b"three"]
    assert not frames.buffer


def test_a_frame_too_long_is_refused_before_it_arrives() -> None:
    frames = Frames(limit=10)
    frames.add(b"\0\0")
    with pytest.raises(CodecError):
        frames.add(b"\0\x0b")
    with pytest.raises(CodecError):
        frame(b"x" * (MAX_FRAME + 1))
