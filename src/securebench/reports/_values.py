"""What a record says, whoever wrote it: a value of the form it should have, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LARGEST = 2**53


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text(value: Any, most: int | None = None) -> str:
    return value[:most] if isinstance(value, str) else ""


def number(value: Any) -> float | None:
    """Of a size that can be added up."""
    ours = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST
    return float(value) if ours else None


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else None


def share(value: Any) -> float | None:
    known = number(value)
    return known if known is not None and known <= 1 else None
