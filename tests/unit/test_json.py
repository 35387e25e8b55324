"""Strict JSON in, one line of JSON out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from securebench import _json


@pytest.mark.parametrize(
    "text", ["null", "true", "0", "-1.5e3", '"x"', "[]", "{}", ' {"a": [1, {"b": null}]} ', '"\\ud800"']
)
def test_strict_json_reads_as_the_standard_library_does(text: str) -> None:
    assert _json.loads(text) == json.loads(text)
    assert _json.loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "not JSON: Expecting value"),
        ("{'a': 1}", "not JSON"),
        ('{"a": 1,}', "not JSON"),
        ("[1, 2", "not JSON"),
        ("1 2", "Extra data"),
        ('"a\nb"', "control character"),
        ('{"a": 1, "a": 1}', "duplicate key 'a'"),
        ('[{"x": {"b": 1, "c": 2, "b": 3}}]', "duplicate key 'b'"),
        ('{"a": 1, "\\u0061": 2}', "duplicate key 'a'"),
        ("NaN", "NaN is not allowed"),
        ("[Infinity]", "Infinity is not allowed"),
        ('{"a": -Infinity}', "-Infinity is not allowed"),
        ("1e999", "out of range"),
        ("-1e999", "out of range"),
        ("1" * 5000, "5000 digits"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("\ufeff{}", "byte order mark"),
    ],
)
def test_anything_else_is_a_json_error(text: str, words: str) -> None:
    with pytest.raises(_json.JsonError, match=words):
        _json.loads(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"question": "x"', "column 17"),
        ('{"question": "x"\n', "column 17"),
        ('{"question": "x" \r\n\n', "column 17"),
        ('{\n "a": 1,\n}', "line 3 column 1"),
        ('{\n "a": x}\n', "line 2 column 7"),
        ("\n", "column 1"),
    ],
)
def test_place_of_an_error_is_within_what_is_written(text: str, place: str) -> None:
    with pytest.raises(_json.JsonError, match=f"at {place}$"):
        _json.loads(text)


@pytest.mark.parametrize("data", [b"\xff", b'"\xc3"', b'"\xed\xa0\x80"', "{}".encode("utf-16")])
def test_bytes_that_are_not_utf8_are_a_json_error(data: bytes) -> None:
    with pytest.raises(_json.JsonError, match="not UTF-8: byte 0x"):
        _json.loads(data)


@pytest.mark.parametrize("value", ["a\nb", "\u2028\u2029\x85", "\ud800", "\x00\x1b\x7f", "\r\n\x0b\x0c\x1c", "ü€😀"])
def test_any_text_stays_on_one_line_and_reads_back(value: str) -> None:
    line = _json.dumps({value: value})
    assert line.splitlines() == [line]
    assert _json.loads(line.encode("utf-8")) == {value: value}


def test_readable_text_stays_readable() -> None:
    assert _json.dumps({"b": "ü", "a": [1, True]}) == '{"b":"ü","a":[1,true]}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_number_that_is_not_finite_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        _json.dumps(value)


def test_longest_allowed_integer_reads_and_writes() -> None:
    assert _json.loads(_json.dumps(10**3999)) == 10**3999
