"""The codec: what goes in comes out, and nothing else gets through."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from securebench.verifiers.rooms import codec
from securebench.verifiers.rooms.codec import (
    MAX_DEPTH,
    MAX_FRAME,
    MAX_INTEGER,
    CodecError,
    Frames,
    Opaque,
    Thrown,
    ThrownType,
    class_names,
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
    for value in (object(), lambda: 1, (x for x in []), [object()], {"a": object()}, _Int):
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
    assert decode(encode(Thrown(("E",), "why"))).key() == (("E",), "why", None)
    assert decode(encode(ThrownType(("E", "Exception")))).names == ("E", "Exception")


def test_a_class_is_its_names_and_no_more_of_them_than_fit() -> None:
    assert class_names(_Int) == ("_Int", "int", "object")
    cls: type = object
    for _ in range(30):
        cls = type("x" * 300, (cls,), {})
    assert class_names(cls) == ("x" * 200,) * 20


@pytest.fixture
def deep_stack() -> Iterator[None]:
    """So that depth ends by our limit and not by the interpreter's."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(before)


def _tuples(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = (value,)
    return value


@pytest.mark.parametrize(
    "outer",
    [
        lambda inner: [inner],
        lambda inner: {inner: 1},
        lambda inner: {1: inner},
        lambda inner: Thrown(("E",), "", inner),
    ],
    ids=["in a list", "in a key", "in a value", "in an exception"],
)
def test_depth_ends_at_the_same_level_when_writing_and_when_reading(
    outer: Any, monkeypatch: pytest.MonkeyPatch, deep_stack: None
) -> None:
    decode(encode(outer(_tuples(MAX_DEPTH - 1))))
    with pytest.raises(CodecError):
        encode(outer(_tuples(MAX_DEPTH)))
    monkeypatch.setattr(codec, "MAX_DEPTH", MAX_DEPTH + 1)
    data = encode(outer(_tuples(MAX_DEPTH)))
    monkeypatch.undo()
    with pytest.raises(CodecError):
        decode(data)


def test_what_is_kept_counts_as_a_level(deep_stack: None) -> None:
    encode([object()], keep=lambda _: _tuples(MAX_DEPTH - 2))
    with pytest.raises(CodecError):
        encode([object()], keep=lambda _: _tuples(MAX_DEPTH - 1))


@pytest.mark.parametrize("value", [[[0] * 4, (0,) * 4], [{1: 0, 2: 0}, {1, 2}, [0] * 3], [[], [], *[0] * 8]])
def test_items_are_counted_over_the_whole_message(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_ITEMS", 10)
    data = encode(value)
    assert decode(data) == value
    monkeypatch.setattr(codec, "MAX_ITEMS", 9)
    with pytest.raises(CodecError):
        encode(value)
    with pytest.raises(CodecError):
        decode(data)


def test_a_frame_may_be_exactly_as_large_as_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_FRAME", 100)
    largest = encode("x" * 95)
    assert len(largest) == 100
    assert decode(largest) == "x" * 95
    assert frame(largest) == _length(100) + largest
    frames = Frames(limit=100)
    frames.add(frame(largest))
    assert frames.next() == largest
    for too_large in ("x" * 96, ["x" * 50, "x" * 50]):
        with pytest.raises(CodecError):
            encode(too_large)


@pytest.mark.parametrize("bits", [8 * MAX_INTEGER - 2, 7, 8, 15, 16])
def test_integers_take_as_many_bytes_as_they_need(bits: int) -> None:
    data = encode(1 << bits)
    assert decode(data) == 1 << bits
    assert len(data) == 5 + bits // 8 + 1 + (bits % 8 == 7)
    with pytest.raises(CodecError):
        encode(1 << (8 * MAX_INTEGER - 1))


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
    "an exception class without a name": b"Q" + b"U" + _length(0),
    "an exception whose arguments are a list": b"X"
    + b"U"
    + _length(1)
    + b"S"
    + _length(0)
    + b"S"
    + _length(0)
    + b"L"
    + _length(0),
    "a name that is no text": b"Q" + b"U" + _length(1) + b"N",
    "a range of texts": b"G" + (b"S" + _length(1) + b"1") * 3,
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


def test_messages_that_arrive_together_are_told_apart() -> None:
    frames = Frames()
    frames.add(frame(b"one") + frame(b"two") + b"\0")
    assert [frames.next(), frames.next(), frames.next()] == [b"one", b"two", None]
    assert frames.buffer == b"\0"


def test_a_frame_too_long_is_refused_before_it_arrives() -> None:
    frames = Frames(limit=10)
    frames.add(b"\0\0")
    with pytest.raises(CodecError):
        frames.add(b"\0\x0b")
    with pytest.raises(CodecError):
        frame(b"x" * (MAX_FRAME + 1))
