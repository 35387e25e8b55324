"""Digests: the same for the same value however it is written, different for anything else."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench._canonical import digest_bytes, digest_value

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters())
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=8,
)


def test_digest_of_bytes_names_its_algorithm() -> None:
    assert digest_bytes(b"x") == "sha256:" + hashlib.sha256(b"x").hexdigest()


def test_key_order_and_tuples_do_not_matter() -> None:
    assert digest_value({"a": 1, "b": (1, 2)}) == digest_value({"b": [1, 2], "a": 1})


def test_known_value_keeps_its_digest() -> None:
    assert digest_value({"b": [1, "ü"], "a": None}) == digest_bytes('{"a":null,"b":[1,"ü"]}'.encode())


@pytest.mark.parametrize(
    "first, second",
    [
        (1, "1"),
        (0, False),
        (None, "null"),
        ([], {}),
        ([1, 2], [2, 1]),
        (2**53, 2**53 + 1),
        (10**30, str(10**30)),
        (2**60, {"\0int": str(2**60)}),
        ("\ud800", "\ufffd"),
        (["\ud800"], ["\ud801", "x"][:1]),
        ("\ud800", {"\0str": "eda080"}),
        ({"\ud800": 1}, {"\ud801": 1}),
        ({"\ud800": 1}, {"\0str:eda080": 1}),
        ({"\0x": 1}, {"\0\0x": 1}),
        ("e\u0301", "\u00e9"),
    ],
)
def test_different_values_have_different_digests(first: Any, second: Any) -> None:
    assert digest_value(first) != digest_value(second)


@given(JSON)
def test_every_json_value_has_a_digest(value: Any) -> None:
    assert digest_value(value) == digest_value(value)
