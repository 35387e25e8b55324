"""Both ends of the room protocol under bytes and values nobody thought of."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from securebench.verifiers.rooms.codec import CodecError, Opaque, Thrown, ThrownType, decode, encode, frame
from securebench.verifiers.rooms.inside.pipe import Pipe
from securebench.verifiers.rooms.inside.remote import Link, Remote, WorkerLost
from securebench.verifiers.rooms.inside.worker import Worker

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
)
HASHABLE = SCALARS.filter(lambda value: value == value)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(HASHABLE, inner, max_size=5)
        | st.sets(HASHABLE, max_size=5)
        | st.frozensets(HASHABLE, max_size=5)
    ),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    """Equality that knows NaN and tells types apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    return bool(one == other)


@given(VALUES)
def test_every_plain_value_comes_back(value: Any) -> None:
    assert same(decode(encode(value)), value)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    with contextlib.suppress(CodecError):
        value = decode(data)
        assert decode(encode(value)) is not object


@given(VALUES, st.data())
def test_damaged_bytes_are_a_value_or_an_error(value: Any, data: st.DataObject) -> None:
    good = bytearray(encode([1, "value", value, None, ""]))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CodecError):
        decode(bytes(good))


PROTOCOL = st.recursive(
    SCALARS
    | st.builds(
        Opaque,
        st.sampled_from(["w", "t", "x"]),
        st.integers(0, 5),
        st.sampled_from(["call", "object", "class", "iterator", "?"]),
    )
    | st.builds(Thrown, st.lists(st.text(max_size=5), min_size=1, max_size=3).map(tuple), st.text(max_size=5))
    | st.builds(ThrownType, st.lists(st.text(max_size=5), min_size=1, max_size=3).map(tuple))
    | st.sampled_from(["value", "raise", "back", "call", "get", "next"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=15,
)


@settings(max_examples=150)
@given(st.one_of(PROTOCOL, st.lists(PROTOCOL, max_size=4).map(lambda rest: [1, *rest])))
def test_the_tests_side_takes_any_answer_as_a_value_or_a_loss(answer: Any) -> None:
    """Whatever a worker says, a request ends with plain data, an exception made here, or the loss of the worker."""
    theirs, ours = os.pipe()
    nothing, other = os.pipe()
    try:
        os.write(ours, frame(b"W" + encode(answer)))
        os.close(ours)
        link = Link(Pipe(theirs, other), {"hidden_tests"})
        arguments = [lambda: 5, [1, 2]]
        outcome = "value"
        try:
            value = link.request("call", None, arguments, {})
        except WorkerLost:
            outcome = "lost"
        except Exception:  # noqa: BLE001 — whatever the worker says it raised
            outcome = "raise"
        if outcome == "lost":
            assert link.lost is not None
        else:
            assert answer[:2] == [1, outcome]
        if outcome == "value":
            assert (
                isinstance(value, Remote)
                or value is None
                or type(value).__module__ in {"builtins", "candidate"}
                or callable(value)
            )
    finally:
        for descriptor in (theirs, nothing, other):
            os.close(descriptor)


@settings(max_examples=150)
@given(
    st.lists(PROTOCOL, min_size=1, max_size=4),
    st.sampled_from(["get", "call", "next", "names", "entry", "set", "special"]),
)
def test_the_workers_side_answers_any_request(rest: list[Any], operation: str) -> None:
    """A request that makes no sense is answered with an exception, not with the end of the worker."""
    reading, writing = os.pipe()
    stdout = sys.stdout
    worker = Worker(Pipe(-1, writing))
    try:
        worker.perform([5, operation, *rest])
        answer = decode(Pipe(reading, -1).receive() or b"")
    finally:
        sys.stdout = stdout
        os.close(reading)
        os.close(writing)
    assert answer[0] == 5
    assert answer[1] in ("value", "raise")
