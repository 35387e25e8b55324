"""Strict JSON: no duplicate keys, no NaN or Infinity, no number that overflows, no surprise while parsing."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAX_DIGITS = 4000  # CPython refuses to parse longer integers; say so before it does


class JsonError(ValueError):
    """Text that is not strict JSON. The message repeats keys, never values."""


class Incomplete(JsonError):
    """Text that ends before its document does."""


def loads(text: str | bytes) -> Json:
    """Parse one strict JSON document. Raises JsonError, whatever the input."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise JsonError(f"not UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start}") from None
    if text.startswith("\ufeff"):
        raise JsonError("begins with a byte order mark; save the file as plain UTF-8")
    try:
        value: Json = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON: {error.msg} at {_place(text, error.pos)}") from None
    except RecursionError:
        raise JsonError("nested too deeply") from None
    return value


def decode(text: str, start: int, *, nan_is_null: bool = False) -> tuple[Json, int]:
    """The strict document that begins at `start`, and where it ends; what follows is not looked at. With `nan_is_null`
    the constants that JSON lacks and other tools write are null. Raises Incomplete where more text may end it."""
    try:
        return (_LENIENT if nan_is_null else _DECODER).raw_decode(text, start)
    except json.JSONDecodeError as error:
        cut = error.msg.startswith("Unterminated string") or error.pos >= len(text) - _LONGEST_WORD
        raise (Incomplete if cut else JsonError)(f"not JSON: {error.msg}") from None
    except RecursionError:
        raise JsonError("nested too deeply") from None


def dumps(value: Any) -> str:
    """One line of JSON with stable key order as given, readable Unicode, and no NaN or Infinity.

    Lone surrogates are escaped, so the text always encodes to UTF-8."""
    text = _ENCODER.encode(value)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(value)
    # JSON allows these inside strings, line-splitting readers do not.
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def dumps_ascii(value: Any) -> str:
    """The same values in printable ASCII: nothing in it steers a terminal or hides, and it reads back exactly."""
    return _ASCII_ENCODER.encode(value).replace("\x7f", "\\u007f")


def _place(text: str, position: int) -> str:
    """Where an error is, in words; one in the blank rest is where that begins."""
    position = min(position, len(text.rstrip(" \t\r\n")))
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"column {column}" if line == 1 else f"line {line} column {column}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonError(f"duplicate key {key[:80]!r}")
            seen.add(key)
    return result


def _constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not allowed; only finite numbers are")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError("a number is out of range; only finite numbers are allowed")
    return value


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise JsonError(f"integer with {len(text)} digits; at most {MAX_DIGITS} are allowed")
    return int(text)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int, strict=True
)
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=lambda _: None, parse_float=_float, parse_int=_int, strict=True
)
_LONGEST_WORD = len("-Infinity")  # and of what else is an error before its end: an escape
