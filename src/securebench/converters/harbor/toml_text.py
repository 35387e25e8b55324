"""Plain data as TOML: tables of values, nothing else. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class NoToml(ValueError):
    """A value that TOML cannot hold."""


def toml_document(values: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Values of the document itself, then its tables; empty tables are left out. Raises NoToml."""
    parts = ["".join(f"{_key(name)} = {toml_value(value)}\n" for name, value in values.items())]
    for title, table in tables.items():
        if table:
            lines = "".join(f"{_key(name)} = {toml_value(value)}\n" for name, value in table.items())
            parts.append(f"[{_key(title)}]\n{lines}")
    return "\n".join(parts)


def toml_value(value: Any) -> str:
    """One value on one line. Raises NoToml."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise NoToml("a whole number of more than 64 bits")
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoToml("a number that is not finite")
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(name))} = {toml_value(one)}" for name, one in value.items()) + "}"
    raise NoToml("null" if value is None else type(value).__name__)


def _key(name: str) -> str:
    return name if name and _PLAIN.issuperset(name) else _text(name)


def _text(text: str) -> str:
    """A basic string. JSON's escapes are TOML's, but for the one character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
